"""How far the figures of a report for people outside may be off, from a run's replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.bins import bin_counts
from core.inference.estimates import MISSING, Estimates, Scale, label_codes, label_names
from core.inference.intervals import FEWEST, interval_ends
from core.inference.replicas import Replica
from core.message import Message
from core.schema.column import DomainColumn, Kind
from core.schema.labels import is_absent, to_numbers
from core.schema.schema import Schema

Floats = NDArray[np.float64]
Report = Mapping[str, Any]

FIGURES = {"mean": Message("mean"), "median": Message("median")}
MOST_COLUMNS = 40  # whose associations are computed for every replica
ASSOCIATION_ROWS = 20_000


def report_intervals(
    report: Report, published: pd.DataFrame, replicas: Sequence[Replica], schema: Schema
) -> dict[str, Any]:
    """Halves of 95 % intervals for the real table, as JSON.

    Args:
      report: `Report.model_dump()` for people outside; its bins are taken.

    Returns:
      "columns": by name "shares" and "missing" (a half for each share of the picture), and
      "figures" as [of, value, half, scale]; "associations": [m, m]. Empty without replicas.
    """
    if len(replicas) < FEWEST:
        return {}
    tables = [published, *(r.source for r in replicas), *(r.drawn for r in replicas)]
    columns = {
        column.name: _column(report["columns"][column.name], column, tables)
        for column in schema.domain().modelled
        if column.name in report["columns"]
    }
    return {"columns": columns, "associations": _associations(tables, schema)}


def _column(
    picture: Report, column: DomainColumn, tables: Sequence[pd.DataFrame]
) -> dict[str, Any]:
    cells = [table[[column.name]] for table in tables]
    shares = [_shares(picture, column, one) for one in cells]
    halves = _halves(shares, "share")
    kept: dict[str, Any] = {"shares": halves[:-1], "missing": halves[-1], "figures": []}
    if column.kind in (Kind.INTEGER, Kind.NUMBER):
        values = [_middle(column, one) for one in cells]
        both = zip(("mean", "median"), values[0], _halves(values, "number"), strict=True)
        kept["figures"] = [[of, float(value), half, "number"] for of, value, half in both]
    elif picture["labels"] is not None:
        every = zip(picture["labels"], shares[0], halves, strict=False)
        kept["figures"] = [[label, float(value), half, "share"] for label, value, half in every]
    return kept


def _halves(tables: Sequence[Floats], scale: Scale) -> list[float]:
    """Halves of the intervals of [k] values of the published table, its sources and its draws."""
    k, b = len(tables[0]), (len(tables) - 1) // 2
    nothing, names = np.zeros(k), tuple((str(i),) for i in range(k))
    own, *others = (Estimates(names, one, nothing, (scale,) * k, 1, 1) for one in tables)
    low, high = interval_ends(own, others[:b], others[b:])[0]
    return [float(half) for half in np.nan_to_num((high - low) / 2)]


def _middle(column: DomainColumn, rows: pd.DataFrame) -> Floats:
    values = to_numbers(rows[column.name], column)
    values = values[~(is_absent(rows[column.name], column) | np.isnan(values))]
    return np.array([values.mean(), np.median(values)]) if len(values) else np.full(2, np.nan)


def _shares(picture: Report, column: DomainColumn, rows: pd.DataFrame) -> Floats:
    """Shares of all rows in the picture's bins or labels, and of missing values last."""
    absent = is_absent(rows[column.name], column)
    if picture["labels"] is not None:
        codes = label_codes(rows, column)
        labels = [label for label in label_names(column) if label != MISSING]
        most = len(picture["labels"])
        counts = np.bincount(codes[(codes >= 0) & ~absent], minlength=len(labels))
        rest = [counts[most - 1 :].sum()] if most < len(labels) else list(counts[most - 1 : most])
        bins = np.array([*counts[: most - 1], *rest], dtype=np.float64)
    else:
        values, edges = to_numbers(rows[column.name], column), np.array(picture["edges"])
        atoms = edges[:-1][edges[:-1] == edges[1:]]
        bins = bin_counts(values[~absent & ~np.isnan(values)], edges, atoms).astype(np.float64)
    return np.append(bins, absent.sum()) / max(1, len(rows))


def _associations(tables: Sequence[pd.DataFrame], schema: Schema) -> list[list[float]]:
    # scikit-learn: pages import this room
    from core.quality.aligned_tables import Features
    from core.quality.metrics.association import associations

    features, aligned = Features.fit(schema, *tables)
    m, rng = len(features), np.random.default_rng(0)
    if m > MOST_COLUMNS:
        return []
    found = [associations(one.sample(ASSOCIATION_ROWS, rng)).ravel() for one in aligned]
    rounded: list[list[float]] = np.round(_halves(found, "number"), 4).reshape(m, m).tolist()
    return rounded


def figures_words(column: Mapping[str, Any]) -> list[Message]:
    """A column's figures with ±, but for those that no replica changed.

    >>> figures_words({"figures": [["yes", 0.182, 0.011, "share"], ["median", 1, 0, "number"]]})
    ['yes 18.2% ± 1.1%']
    """
    return [_with_half(*figure) for figure in column.get("figures", ()) if figure[2] > 0]


def _with_half(of: str, value: float, half: float, scale: str) -> Message:
    if scale == "share":
        return Message("{of} {x:.1%} ± {half:.1%}", of=of, x=value, half=half)
    return Message("{of} {x:.4g} ± {half:.2g}", of=FIGURES[of], x=value, half=half)
