"""Small tables and domains shared by tests of models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from core.encoding.codec import Codec, Codes
from core.models.events import FitEvent, Signal
from core.models.steps.counting.scales import ColumnScale, FineCounts
from core.models.steps.training.column_bins import ColumnBins
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.noise import NoiseSource
from core.privacy.plan import Plan
from core.schema.column import Column, Kind
from core.schema.schema import Domain, Schema


def schema(target: str | None = "ill") -> Schema:
    return Schema(
        target=target,
        sensitive={"hidden": ("age", "ward"), "more": ("day",)},  # models without α-LMDP ignore it
        columns=(
            Column(name="key", kind=Kind.IDENTIFIER, dtype="int64"),
            Column(name="age", kind=Kind.INTEGER, low=0, high=99, step=1, dtype="int64"),
            Column(
                name="cost", kind=Kind.INTEGER, low=0, high=50_000, step=1, scale="log",
                spikes=(0.0,), missing=True, dtype="Int64",
            ),
            Column(name="ward", kind=Kind.CATEGORY, categories=("a", "b", "c"), missing=True),
            Column(
                name="day", kind=Kind.DATETIME, low=0, high=86_400.0 * 365, step=86_400,
                dtype="datetime64[us]",
            ),
            Column(
                name="ill", kind=Kind.BOOLEAN, categories=("False", "True"), dtype="bool"
            ),
        ),
    )  # fmt: skip


def scales_of(
    grids: Sequence[ColumnBins], counts: Sequence[np.ndarray], noise: float
) -> tuple[ColumnScale, ...]:
    """Of columns whose fine cells were counted once."""
    each = zip(grids, counts, strict=True)
    return tuple(ColumnScale.of(grid, FineCounts(count, noise)) for grid, count in each)


def rows(n: int, seed: int = 0) -> pd.DataFrame:
    """n dependent rows: the ill are old and cost more."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.3
    age = np.clip(rng.normal(np.where(ill, 65, 40), 12), 0, 99).astype(int)
    cost = np.where(rng.random(n) < 0.6, 0, rng.lognormal(np.where(ill, 8, 6), 1)).astype(int)
    cost_series = pd.Series(np.minimum(cost, 50_000)).astype("Int64")
    cost_series[rng.random(n) < 0.1] = pd.NA
    ward = pd.Series(rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]), dtype="str")
    ward[rng.random(n) < 0.05] = None
    day = pd.Series(pd.to_datetime(rng.integers(0, 366, n), unit="D")).astype("datetime64[us]")
    return pd.DataFrame(
        {
            "key": rng.permutation(n) + 10_000,
            "age": age,
            "cost": cost_series,
            "ward": ward,
            "day": day,
            "ill": ill,
        }
    )


def coded(n: int, seed: int = 0, target: str | None = "ill") -> tuple[Codec, Codes]:
    codec = Codec(schema(target).domain())
    return codec, codec.encode(rows(n, seed))


def domain(target: str | None = "ill") -> Domain:
    return schema(target).domain()


def door(
    plan: Plan,
    seed: int = 0,
    target: str | None = "ill",
    noise_source: NoiseSource | None = None,
) -> PrivateTable:
    codec, codes = coded(plan.n, seed, target)
    return PrivateTable(codes, codec.domain, plan, noise_source=noise_source)


class Watcher:
    """An observer that keeps events and asks for something once a phase has gone far enough."""

    def __init__(self, signal: Signal = Signal.GO_ON, phase: str = "", step: int = 0):
        self.events: list[FitEvent] = []
        self.signal, self.phase, self.step = signal, phase, step

    def __call__(self, event: FitEvent) -> Signal:
        self.events.append(event)
        here = event.kind == "progress" and event.data["phase"] == self.phase
        return self.signal if here and event.data["step"] >= self.step else Signal.GO_ON

    def kinds(self) -> set[str]:
        return {event.kind for event in self.events}
