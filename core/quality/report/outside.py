"""outside_report: what may be shown to people outside, made without opening the real table.

It takes the synthetic table, the declared domain, and histograms of real columns where a plan paid
to release them with noise. Bins come from the declaration, axes from the synthetic rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from core.encoding.bins import MAX_LABELS, REST_LABEL
from core.encoding.codec import Codec, Codes
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records, votes
from core.encoding.windows import FIRST, GAP, NUMBER
from core.message import Message, ReportedError
from core.privacy.mechanisms.histograms import Bins, Histograms
from core.quality.aligned_tables import AlignedTable, Features, sample_rows
from core.quality.event_table import EventTable
from core.quality.metrics.association import associations
from core.quality.metrics.columns import TVD_1WAY
from core.quality.metrics.histories import file_name, opened, pictures, states_of
from core.quality.metrics.marginals import tvd
from core.quality.metrics.principal_axes import POINTS, axes_of, drivers
from core.quality.report.types import (
    AssociationTable,
    ColumnPicture,
    Histories,
    Projection,
    ReleasedHistograms,
    Report,
    Score,
)
from core.schema.column import SchemaError
from core.schema.coverage import coverage
from core.schema.schema import Domain, Schema

Floats = NDArray[np.float64]
ROWS = 100_000
ASSOCIATION_ROWS = 20_000
NOT_SHOWN = Message("Nothing on this page was computed from real rows.")
WITH_NOISE = Message(
    "The real shares were released once with Gaussian noise, which the plan paid for. Everything "
    "else on this page comes from the synthetic table alone."
)
AS_SHIFTED = Message(
    "The real shares are shown as the released table shifts them: each record is weighted by the "
    "shift of the hidden columns, because the true shares would undo the shift. They were released "
    "once with Gaussian noise, which the plan paid for. Everything else on this page comes from "
    "the synthetic table alone."
)
ONE_VOTE = Message(
    "The figures of columns count people: all rows of a person have one vote together."
)


def outside_report(
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    released: ReleasedHistograms | None = None,
    modelled: pd.DataFrame | None = None,
    rows: int | None = None,
) -> Report:
    """The report for people outside.

    Args:
      synthetic: ≥ 1 row.
      released: what was released of real columns, if anything.
      modelled: synthetic rows in the columns that models see, of which the release counts; None
        where those are the table's.
      rows: how many the synthetic table has, where `synthetic` is a sample of it.
    """
    if not len(synthetic):
        raise ReportedError("A report needs at least one synthetic row.")
    domain = schema.domain()
    lacking = [column.name for column in domain.modelled if column.name not in synthetic]
    if lacking:
        raise SchemaError(
            "The synthetic table lacks columns of the schema: {columns}. Drop them from the "
            "schema.",
            columns=", ".join(lacking),
        )
    rng = np.random.default_rng(0)
    drawn = sample_rows(len(synthetic), ROWS, rng)
    frame, each = synthetic.iloc[drawn], votes(synthetic, schema.person)[drawn]
    _, (table,) = Features.fit(schema, frame)
    grouped = schema.person is not None and schema.person.grouped
    codes = Codec(domain).encode(frame)
    shown = _pictures(codes, each, domain, None if modelled is not None else released)
    if released is not None and modelled is not None:
        # counted as the release counts: by person, in the columns that were learned
        own = Layout(domain).domain
        seen = _pictures(Codec(own).encode(modelled), np.ones(len(modelled)), own, released)
        shown |= {name: seen[name] for name in shown if name in seen}
    found = coverage(schema)
    return Report(
        view="outside",
        complete=True,
        rows_real=0 if released is None else released.n,
        rows_synthetic=len(synthetic) if rows is None else rows,
        coverage=list(found.sentences),
        covered=found.complete,
        scores=_scores(shown, released),
        columns=shown,
        pca=_projection(table, rng),
        associations=_associations(table.sample(ASSOCIATION_ROWS, rng)),
        histories=_histories(synthetic, schema, released),
        notes=[_note(released), *([ONE_VOTE] if grouped else [])],
    )


def _note(released: ReleasedHistograms | None) -> str:
    if released is None:
        return NOT_SHOWN
    return AS_SHIFTED if released.shifted else WITH_NOISE


def _histories(
    synthetic: pd.DataFrame, schema: Schema, released: ReleasedHistograms | None
) -> list[Histories]:
    """Synthetic histories, and what was released of real ones beside them."""
    each = [(at, table) for at, (table,) in opened(schema, synthetic) if len(table.followed)]
    if not each:
        return []
    layout, counted = Layout(schema.domain()), dict[str, ColumnPicture]()
    if released is not None and layout.files:
        codes, people = encoded_records(synthetic, layout, schema.person)
        weights = np.ones(len(codes)) if people is None else people.weights.astype(np.float64)
        counted = _pictures(codes, weights, layout.domain, released)
    found = []
    for at, table in each:
        history = _synthetic_history(table, schema, at)
        if counted:
            windows = layout.files[at]
            roles = {"events": (NUMBER, ""), "gaps": (GAP, ""), "first": (FIRST, table.order)}
            shown = history.pictures | {
                key: counted[windows.by_role[role].column.name]
                for key, role in roles.items()
                if role in windows.by_role
            }
            history = history.model_copy(update={"pictures": shown})
        found.append(history)
    return found


def _synthetic_history(table: EventTable, schema: Schema, at: int) -> Histories:
    """Pictures of synthetic histories alone."""
    found = pictures(table, table, states_of([table, table], schema), file_name(schema, at))
    unseen: dict[str, Any] = {"real": [], "missing_real": None, "tvd": None}
    shown = {key: one.model_copy(update=unseen) for key, one in found.pictures.items()}
    states = [
        one.model_copy(
            update={"real": [], "real_not_yet": [], "runs": one.runs.model_copy(update=unseen)}
        )
        for one in found.states
    ]
    return found.model_copy(update={"pictures": shown, "states": states})


def _pictures(
    codes: Codes, each: Floats, domain: Domain, released: ReleasedHistograms | None
) -> dict[str, ColumnPicture]:
    """Every modelled column in its public bins; `each` is what rows count for."""
    codec = Codec(domain)
    histograms = Histograms.of(codec, [block.column.name for block in codec.blocks])
    counts = histograms.split(
        histograms.statistic(codes.to("cpu"), torch.from_numpy(each)).tolist()
    )
    return {
        bins.block.column.name: _picture(
            bins, np.array(counts[bins.block.column.name]), float(each.sum()), released
        )
        for bins in histograms.bins
    }


def _picture(
    bins: Bins, synthetic: Floats, rows: float, released: ReleasedHistograms | None
) -> ColumnPicture:
    """One column's counts [bins] in its public bins, beside what was released of it, if so."""
    column = bins.block.column
    labels = None
    if not bins.edges:
        every = column.categories or ()
        labels = [*every[:MAX_LABELS], *([REST_LABEL] if len(every) > MAX_LABELS else [])]
    shares, missing = _shares(synthetic, rows, bins.missing)
    real: list[float] = []
    missing_real = distance = noise = None
    if released is not None and column.name in released.counts:
        counts, total = np.array(released.counts[column.name]), released.total
        real, missing_real = _shares(counts, total.value, bins.missing)
        distance = tvd(np.clip(counts, 0.0, None), synthetic)
        widest = total.inflation(np.clip(counts / total.value, 0.0, 1.0)).max()
        noise = 1.96 * released.noise_std / total.value * float(widest)
    return ColumnPicture(
        kind=column.kind.value,
        scale=column.scale,
        labels=labels,
        edges=list(bins.edges) or None,
        step=column.step,
        real=real,
        synthetic=shares,
        missing_real=missing_real,
        missing_synthetic=missing,
        tvd=distance,
        noise=noise,
        shifted=bool(real) and released is not None and released.shifted,
    )


def _shares(counts: Floats, n: float, gaps: bool) -> tuple[list[float], float]:
    """Shares of the bins, and of missing values; noise below zero is cut off."""
    share = np.clip(counts / n, 0.0, None).tolist()
    return (share[:-1], share[-1]) if gaps else (share, 0.0)


def _scores(pictures: dict[str, ColumnPicture], released: ReleasedHistograms | None) -> list[Score]:
    """The mean distance of single columns, beside what the noise alone would show."""
    distances = [picture.tvd for picture in pictures.values() if picture.tvd is not None]
    if released is None or not distances:
        return []
    bins = np.mean([len(counts) for counts in released.counts.values()])
    # E|N| = σ √(2/π) in each bin; half of their sum is the distance of equal tables.
    alone = 0.5 * float(bins) * released.noise_std * math.sqrt(2 / math.pi) / released.total.value
    note = Message(
        "Measured against noisy shares. The distance given for real data is what the noise alone "
        "would show."
    )
    return [TVD_1WAY.score(float(np.mean(distances)), ceiling=min(1.0, alone), note=note)]


def _projection(table: AlignedTable, rng: np.random.Generator) -> Projection:
    axes = axes_of(table)
    dots = axes.project(table.sample(POINTS, rng).encode())
    return Projection(
        real=[],
        synthetic=np.round(dots, 4).tolist(),
        explained=(float(axes.explained[0]), float(axes.explained[1])),
        drivers=drivers(table.features, axes),
    )


def _associations(table: AlignedTable) -> AssociationTable:
    names, strengths = list(table.features.names), np.round(associations(table), 4)
    return AssociationTable(columns=names, real=[], synthetic=strengths.tolist())
