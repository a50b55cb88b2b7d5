"""Small tables to learn domains of, plans for that alone, and what changes without a record."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch

from core.privacy.discovery.open_domain import OpenDomain, open_domain
from core.privacy.discovery.planning import FAILURES, discovery_phases
from core.privacy.discovery.raw_rows import read_raw
from core.privacy.discovery.release import Released, release_domain
from core.privacy.mechanisms.domain_release import LabelCounts
from core.privacy.meter import Meter
from core.privacy.plan import Budget, Plan
from core.privacy.planning import planned as plan_phases
from core.schema.column import MAX_CATEGORIES, DomainSource, Kind, SchemaColumn
from core.schema.person import Person
from core.schema.rules.rules import Combinations, Determines
from core.schema.schema import Schema
from tests.privacy.deterministic_noise import DeterministicNoise

KINDS = {"x": Kind.NUMBER, "k": Kind.INTEGER, "day": Kind.DATETIME}
DELTA = 1e-6


def to_learn(name: str, kind: Kind, **more: object) -> SchemaColumn:
    """A column of which nothing is known but its kind."""
    dtype = {Kind.NUMBER: "float64", Kind.INTEGER: "int64", Kind.DATETIME: "datetime64[us]"}
    step = {Kind.INTEGER: 1.0, Kind.DATETIME: 86_400.0}.get(kind, 0.0)
    column = SchemaColumn(
        name=name,
        kind=kind,
        source=DomainSource.LEARNED,
        dtype=dtype.get(kind, "str"),
        step=step,
        proposal="none",
    )
    return column.model_copy(update=more)


def schema_for(frame: pd.DataFrame, **kinds: Kind) -> Schema:
    """Every column to be learned: numbers and dates by dtype, text as categories."""
    columns = []
    for name in frame.columns:
        dtype = frame[name].dtype
        kind = Kind.CATEGORY
        if pd.api.types.is_datetime64_any_dtype(dtype):
            kind = Kind.DATETIME
        elif pd.api.types.is_integer_dtype(dtype):
            kind = Kind.INTEGER
        elif pd.api.types.is_float_dtype(dtype):
            kind = Kind.NUMBER
        columns.append(to_learn(name, kinds.get(name, kind)))
    return Schema(columns=tuple(columns))


def planned(schema: Schema, n: int, epsilon: float, rows: int = 1) -> tuple[OpenDomain, Plan]:
    wanted = open_domain(schema)
    unit = None if rows == 1 else Person(columns=("who",), rows=rows)
    budget = Budget(epsilon=epsilon, delta=DELTA)
    each = 1.0 / (2 * len(wanted.names))
    plan = plan_phases(
        "learned",
        n,
        budget,
        lambda scale: discovery_phases(wanted, scale, each=each, failure=FAILURES * DELTA),
        unit=unit,
    )
    return wanted, plan


def learn(frame: pd.DataFrame, schema: Schema, epsilon: float, seed: int = 1) -> Released:
    """What learning everything releases, with repeatable noise."""
    wanted, plan = planned(schema, len(frame), epsilon)
    return release_domain(frame, wanted, plan, Meter(plan), noise_source=DeterministicNoise(seed))


def by_name(released: Released) -> dict[str, SchemaColumn]:
    return {column.name: column for column in released.columns}


def label_sums(
    frame: pd.DataFrame,
    wanted: OpenDomain,
    weights: np.ndarray,
    mechanism: Callable[[tuple[int, ...], int], LabelCounts] = LabelCounts,
) -> dict[tuple[int, tuple[str, ...]], float]:
    """The statistic by list and key, as it comes from exactly these rows."""
    raw, keys = read_raw(frame, wanted)
    counted = mechanism(tuple(len(own) for own in keys), MAX_CATEGORIES)
    sums = counted.statistic(raw.to("cpu"), torch.from_numpy(weights)).tolist()
    keys_in_order = [(i, key) for i, own in enumerate(keys) for key in (*own, ("missing", ""))]
    return dict(zip(keys_in_order, sums, strict=True))


def apart(one: dict, other: dict) -> float:
    """The L2 distance of two statistics; what does not occur counts as zero."""
    gaps = [one.get(key, 0.0) - other.get(key, 0.0) for key in one.keys() | other.keys()]
    return float(np.linalg.norm(gaps))


def labelled(n: int, seed: int) -> tuple[pd.DataFrame, Schema]:
    """Three lists, a mapping and combinations; some cells are missing, some labels are single."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "code": rng.choice(["a", "b", "c", None], n),
            "label": [f"own {i}" if rng.random() < 0.2 else "shared" for i in range(n)],
            "other": rng.choice(["u", "v"], n),
        }
    ).astype("str")
    schema = schema_for(frame)
    rules = (Determines(source="code", result="label"), Combinations(names=("code", "other")))
    return frame, schema.model_copy(update={"rules": rules})


def numbers(n: int, seed: int) -> tuple[pd.DataFrame, Schema]:
    """A heavy tail with zeros and missing cells, integers with codes, days."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(n) < 0.3, 0.0, rng.standard_t(1, n) * 10.0 ** rng.integers(-9, 9, n))
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, x),
            "k": rng.choice([-999, -1, 0, 17, 1951, 10**18], n),
            "day": pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), "D"),
        }
    )
    frame["day"] = frame["day"].astype("datetime64[us]")
    return frame, schema_for(frame)
