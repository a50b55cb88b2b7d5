"""Drawn numbers are as round as a run learned that people write them, and stay where they lie."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding.codec import Codec, Codes, Line
from core.encoding.heaping import MOST_WITHIN, WITHIN, heaped
from core.schema.calendar import DAY, Calendar
from core.schema.column import DomainColumn, DomainSource, Kind, Learned, SchemaColumn
from core.schema.schema import Domain
from tests.privacy.learned_tables import by_name, learn, schema_for

N = 20_000


def wages(seed: int = 0, n: int = N) -> pd.Series:
    """Multiples of 100: half of them are rounded to 1,000, a fifth to 10,000."""
    rng = np.random.default_rng(seed)
    x = rng.gamma(4.0, 12_000.0, n)
    step = rng.choice([100.0, 1000.0, 10_000.0], n, p=[0.3, 0.5, 0.2])
    return pd.Series(np.maximum(np.round(x / step) * step, 100.0).astype(np.int64))


def multiples(x: pd.Series, step: float) -> float:
    return float((x % step == 0).mean())


def column_of(heaps: tuple[tuple[float, float], ...], **more: object) -> SchemaColumn:
    known = {"low": 0.0, "high": 200_000.0, "step": 100.0, "dtype": "int64", **more}
    known = {"kind": Kind.INTEGER, **known}
    column = SchemaColumn(name="wage", source=DomainSource.LEARNED, **known)
    learned = Learned(domain=column.domain_digest, heaps=heaps)
    return column.model_copy(update={"learned": learned})


def rounded(frame: pd.DataFrame, *columns: SchemaColumn, seed: int) -> pd.DataFrame:
    """A model's rows as numbers are rounded."""
    codec = Codec(Domain(columns=columns))
    random = torch.Generator().manual_seed(seed)
    return codec.decode_codes(heaped(codec, codec.encode(frame), random))


def blurred(seed: int = 1) -> pd.DataFrame:
    """As models draw: heaps show in the histogram, spread over one part in 256 of the line."""
    noise = np.random.default_rng(seed).integers(-4, 5, N) * 100
    return pd.DataFrame({"wage": (wages(seed) + noise).clip(100, 200_000)})


def test_a_run_learns_how_round_numbers_are() -> None:
    frame = pd.DataFrame({"wage": wages(), "noise": np.arange(N) * 7 % 9973})
    found = by_name(learn(frame, schema_for(frame), 1.0))
    heaps = dict(found["wage"].learned.heaps)
    assert found["wage"].step == 100.0 and found["noise"].learned.heaps == ()
    real = frame["wage"]
    for step, coarser in ((100.0, 500.0), (1000.0, 5000.0)):
        share = multiples(real, step) - multiples(real, coarser)
        assert heaps[step] == pytest.approx(share, abs=0.02)
    assert sum(heaps.values()) == pytest.approx(1.0)


def test_drawn_numbers_are_as_round_as_real_ones() -> None:
    frame = pd.DataFrame({"wage": wages()})
    heaps = by_name(learn(frame, schema_for(frame), 1.0))["wage"].learned.heaps
    before, column = blurred(), column_of(heaps)
    after = rounded(before, column, seed=3)["wage"]
    assert multiples(before["wage"], 1000) < 0.25
    for step in (500, 1000, 5000, 10_000):
        assert multiples(after, step) == pytest.approx(multiples(frame["wage"], step), abs=0.06)
    assert after.dtype == np.int64
    line = Line.of(column)
    moved = np.abs(
        line.position(after.to_numpy(float)) - line.position(before["wage"].to_numpy(float))
    )
    assert moved.max() <= MOST_WITHIN / 2 + 100 / 200_000
    assert abs(moved.mean()) < WITHIN


def test_ages_with_decimals_are_whole_as_often_as_real_ones() -> None:
    """Ages in years, but for an eighth in months' tenths: whole ones lie far from one another."""
    heaps = ((0.1, 0.12), (1.0, 0.7), (5.0, 0.09), (10.0, 0.09))
    ages = {"low": 0.0, "high": 100.0, "step": 0.1, "dtype": "float64", "kind": Kind.NUMBER}
    column = column_of(heaps, **ages)
    drawn = pd.DataFrame({"wage": np.random.default_rng(4).uniform(2.0, 98.0, N).round(1)})
    after = rounded(drawn, column, seed=3)["wage"]
    assert multiples(after, 1.0) == pytest.approx(0.88, abs=0.04)
    assert np.abs(after - drawn["wage"]).max() <= 100.0 * MOST_WITHIN / 2 + 0.1


def test_numbers_of_no_column_that_learned_nothing_move() -> None:
    plain = DomainColumn(name="wage", kind=Kind.INTEGER, low=0.0, high=200_000.0, dtype="int64")
    before = blurred()
    pd.testing.assert_frame_equal(rounded(before, plain, seed=3), before)


def test_missing_cells_spikes_and_bounds_stay() -> None:
    heaps = ((100.0, 0.1), (500.0, 0.0), (1000.0, 0.0), (5000.0, 0.0), (10_000.0, 0.9))
    column = column_of(heaps, dtype="Int64", missing=True, spikes=(99_900.0,), high=99_900.0)
    cells = pd.Series([None, 99_900, 100, 99_800, 50_100] * 50, dtype="Int64", name="wage")
    after = rounded(cells.to_frame(), column, seed=0)["wage"]
    assert after.isna().sum() == 50 and (after == 99_900).sum() >= 50
    assert after.dtype == "Int64" and after.max() <= 99_900 and after.min() >= 100
    assert ((after == 50_000).sum() > 25) and ((after == 0).sum() == 0)


def test_rounding_follows_from_the_seed() -> None:
    column = column_of(((100.0, 0.5), (1000.0, 0.5)))
    first, same, other = (rounded(blurred(), column, seed=i)["wage"] for i in (1, 1, 2))
    assert first.equals(same) and not first.equals(other)


def test_equal_numbers_of_a_row_stay_equal() -> None:
    column = column_of(((100.0, 0.3), (1000.0, 0.5), (10_000.0, 0.2)))
    twin = column.model_copy(update={"name": "paid"})
    frame = blurred().assign(paid=lambda rows: rows["wage"])
    after = rounded(frame, column, twin, seed=2)
    assert after["wage"].equals(after["paid"].rename("wage"))
    assert (after["wage"] != frame["wage"]).mean() > 0.2


def test_people_keep_one_constant_however_many_events_they_have() -> None:
    heaps = ((100.0, 0.3), (1000.0, 0.5), (10_000.0, 0.2))
    column, own = column_of(heaps), column_of(heaps).model_copy(update={"name": "paid"})
    who = np.repeat(np.arange(N // 4), 4)
    frame = pd.DataFrame({"wage": blurred()["wage"].to_numpy()[who], "paid": blurred()["wage"]})
    codec = Codec(Domain(columns=(column, own)))
    random = torch.Generator().manual_seed(0)
    codes = heaped(codec, codec.encode(frame), random, who, {"wage"})
    after = codec.decode_codes(codes)
    assert (after["wage"].groupby(who).nunique() == 1).all()
    for name in ("wage", "paid"):
        assert multiples(after[name], 1000) > multiples(frame[name], 1000) + 0.2


def test_dates_of_people_are_compared_as_people_count() -> None:
    """Half of the people have one visit, on a Monday, all others nine, on Tuesdays."""
    low = pd.Timestamp("2024-01-01").timestamp()  # a Monday
    column = column_of((), kind=Kind.DATETIME, low=low, high=low + 363 * DAY, step=DAY)
    calendar = Calendar(weekday=(0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0), noise=0.001)
    learned = column.learned.model_copy(update={"calendar": calendar})
    codec = Codec(Domain(columns=(column.model_copy(update={"learned": learned}),)))
    visits = np.tile([1, 9], 200)
    who, week = np.repeat(np.arange(400), visits), np.random.default_rng(0).integers(0, 52, 2000)
    days = 7 * week + (visits[who] > 1)
    codes = Codes(np.zeros((2000, 1), dtype=np.int32), days[:, None] / 363.0)
    same = heaped(codec, codes, torch.Generator().manual_seed(0), who)
    moved = heaped(codec, codes, torch.Generator().manual_seed(0))
    assert np.array_equal(same.values, codes.values)
    assert (moved.values != codes.values).mean() > 0.3
