"""Sums, products and years of dates: told by counts, and kept in every row."""

from __future__ import annotations

import dataclasses
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding.codec import Codec
from core.models.steps.counting.counts import RelationCounts
from core.models.steps.counting.design import Design
from core.models.steps.counting.placing import Placing
from core.models.steps.counting.relation_candidates import (
    TotalCandidate,
    relation_candidates,
    strongest,
)
from core.models.steps.counting.relations import totals_kept
from core.models.steps.counting.releases import Releases
from core.models.steps.counting.scales import FineHistograms, fine_grids
from core.models.steps.training.column_bins import column_bins
from core.schema.calendar import DAY
from core.schema.column import Column, Kind
from core.schema.schema import Schema
from tests.models.tables import scales_of


def test_sums_are_kept_where_nearly_all_records_add_up():
    candidates = (TotalCandidate(2, 0, 1, 1.0), TotalCandidate(0, 1, 2, 1.0))
    release = torch.tensor([[990.0, 4.0], [20.0, 970.0]], dtype=torch.float64)
    assert totals_kept(release, candidates, 5.0) == candidates[:1]
    assert totals_kept(release, candidates, 120.0) == ()  # too much noise to believe anything
    few = torch.tensor([[90.0, 4.0], [20.0, 970.0]], dtype=torch.float64)  # but these are not zeros
    assert totals_kept(few, candidates, 2.0) == candidates[:1]
    assert totals_kept(few, candidates, 10.0) == ()


def test_totals_of_totals_are_made_in_turn_and_never_in_a_circle():
    amount, total = TotalCandidate(2, 0, 1, 0.0), TotalCandidate(4, 2, 3, 1.0)
    back, twice = TotalCandidate(0, 4, 1, 1.0), TotalCandidate(4, 1, 3, 1.0)
    kept = torch.tensor([[1000.0, 3.0], [1000.0, 1.0], [1000.0, 9.0], [1000.0, 5.0]]).double()
    assert totals_kept(kept, (amount, total, back, twice), 5.0) == (amount, total)


def orders(n: int, *, ranked: bool = False) -> tuple[Codec, pd.DataFrame]:
    """What is ordered, at what price, and carriage, which is a list of a few numbers."""
    random = np.random.default_rng(1)
    quantity, price = random.integers(0, 8, n), random.integers(1, 2000, n) / 100.0
    carriage = random.choice([0.0, 2.5, 4.9], n)
    amount = np.round(quantity * price, 2)
    money = {"kind": Kind.NUMBER, "low": 0.0, "step": 0.01, "dtype": "float64"}
    ordered = {"kind": Kind.INTEGER, "low": 0, "high": 10, "step": 1, "dtype": "int64"}
    ranks = {"kind": Kind.ORDERED, "categories": tuple(map(str, range(8))), "dtype": "int64"}
    columns = (
        Column(name="quantity", **(ranks if ranked else ordered)),
        Column(name="price", high=20.0, **money),
        Column(name="amount", high=200.0, **money),
        Column(name="carriage", kind=Kind.ORDERED, categories=("0.0", "2.5", "4.9")),
        Column(name="total", high=200.0, **money),
    )
    frame = pd.DataFrame(
        {"quantity": quantity, "price": price, "amount": amount, "carriage": carriage.astype(str)}
    )
    codec = Codec(Schema(columns=columns).domain())
    return codec, frame.assign(total=np.round(amount + carriage, 2))


@pytest.mark.parametrize("ranked", [False, True])
def test_products_and_sums_are_found_and_kept(ranked):
    codec, frame = orders(3000, ranked=ranked)
    codes, design = codec.encode(frame), Design.of(codec, 3)
    mechanism = RelationCounts(codec.blocks, design.related.totals, ())
    release = mechanism.split(mechanism.statistic(codes, torch.ones(len(codes))))[0]
    kept = totals_kept(release, design.related.totals, 20.0)
    assert {(one.total, one.unit) for one in kept} == {(2, 0.0), (4, 1.0)}
    drawn = codec.encode(frame.apply(lambda c: c.sample(frac=1.0, random_state=len(c.name)).values))
    values = {"compared": [], "totals": [list(dataclasses.astuple(one)) for one in kept]}
    made = codec.decode_codes(Placing({}, values).settled(codec, drawn))
    product = made["quantity"].astype(float) * made["price"]
    assert np.abs(made["amount"] - product).max() < 0.006
    assert np.abs(made["total"] - made["amount"] - made["carriage"].astype(float)).max() < 0.006


@pytest.mark.parametrize("cut", ["amount", "price"])
def test_numbers_that_bounds_cut_off_break_no_total(cut: str) -> None:
    codec, frame = orders(3000)
    columns = [
        column.model_copy(update={"high": 12.0}) if column.name == cut else column
        for column in codec.domain.columns
    ]
    codec = Codec(codec.domain.model_copy(update={"columns": tuple(columns)}))
    wrong = TotalCandidate(2, 0, 3, 1.0)  # which is broken, whatever bounds cut off
    mechanism = RelationCounts(codec.blocks, (TotalCandidate(2, 0, 1, 0.0), wrong), ())
    statistic = mechanism.statistic(codec.encode(frame), torch.ones(len(frame)))
    (keeps, broken), (few, most) = mechanism.split(statistic)[0].tolist()
    assert broken == 0.0 and 0.2 * len(frame) < keeps < 0.9 * len(frame)
    assert few < 0.1 * most


@pytest.mark.parametrize(("hidden", "kept"), [("", {2, 4}), ("price", {4}), ("total", {2})])
def test_no_total_tells_of_a_hidden_column(hidden, kept):
    codec, frame = orders(3000)
    known, codes = Releases.__new__(Releases), codec.encode(frame)
    histograms = FineHistograms(fine_grids(codec, 10.0, 3000))
    counts = histograms.split(histograms.statistic(codes.to("cpu"), torch.ones(len(codes))))
    known.scales = scales_of(histograms.grids, counts, 1e-3)
    known.shares = [scale.shares(scale.counts) for scale in known.scales]
    known.codec, design = codec, Design.of(codec, 3)
    known.design = dataclasses.replace(
        design, related=dataclasses.replace(design.related, compared=())
    )
    known.plan = SimpleNamespace(protection=SimpleNamespace(groups={"g": (hidden,)}))
    known.table = SimpleNamespace(n=len(codes))
    known.noise_multiplier = lambda phase: 1.0
    asked = []

    def release(phase, mechanism):
        asked.extend((one.first, one.second) for one in mechanism.differences)
        return mechanism.statistic(codes, torch.ones(len(codes)))

    known.release = release
    known._independent_pairs = None
    seen = {pair: (1.0, 0.9) for pair in design.pairs}
    known.scanned = SimpleNamespace(together=lambda pairs, expected: seen)
    known._count_relations()
    assert {one.total for one in known.totals} == kept
    names = [block.column.name for block in codec.blocks]
    assert asked and hidden not in {names[i] for i in chain(*asked)}


def test_columns_repeat_the_fields_of_a_date_as_they_do():
    """A year, a month as a list of numbers, and a weekday that begins with Sunday as 1."""
    random, n = np.random.default_rng(2), 3000
    day = pd.Series(pd.Timestamp("2015-01-01") + pd.to_timedelta(random.integers(0, 2000, n), "D"))
    low, high = (pd.Timestamp(f"{year}-01-01").timestamp() for year in (2015, 2021))
    whole = {"kind": Kind.INTEGER, "step": 1.0, "dtype": "int64"}
    months = {"kind": Kind.ORDERED, "categories": tuple(map(str, range(1, 13))), "dtype": "int64"}
    columns = (
        Column(name="sold", kind=Kind.DATETIME, low=low, high=high - DAY, step=DAY),
        Column(name="year_sold", low=2010.0, high=2030.0, **whole),
        Column(name="Verkaufsmonat", **months),
        Column(name="weekday", low=0.0, high=10.0, **whole),
        Column(name="days_open", low=0.0, high=50.0, **whole),
    )
    frame = pd.DataFrame(
        {
            "sold": day.dt.strftime("%Y-%m-%d"),
            "year_sold": day.dt.year,
            "Verkaufsmonat": day.dt.month,
            "weekday": (day.dt.day_of_week + 1) % 7 + 1,
            "days_open": random.integers(0, 40, n),
        }
    )
    codec = Codec(Schema(columns=columns).domain())
    codes, design = codec.encode(frame), Design.of(codec, 3)
    mechanism = RelationCounts(codec.blocks, design.related.totals, ())
    release = mechanism.split(mechanism.statistic(codes, torch.ones(n)))[0]
    kept = totals_kept(release, design.related.totals, 20.0)
    fields = {(one.total, one.field) for one in kept}
    assert fields == {(1, "year"), (2, "month"), (3, "Sunday 1")}
    drawn = codec.encode(frame.apply(lambda c: c.sample(frac=1.0, random_state=len(c.name)).values))
    values = {"compared": [], "totals": [list(dataclasses.astuple(one)) for one in kept]}
    made = codec.decode_codes(Placing({}, values).settled(codec, drawn))
    sold = pd.to_datetime(made["sold"])
    assert (made["year_sold"] == sold.dt.year).all()
    assert (made["Verkaufsmonat"] == sold.dt.month).all()
    assert (made["weekday"] == (sold.dt.day_of_week + 1) % 7 + 1).all()


def test_a_weekday_stays_as_drawn_and_its_date_moves():
    """Whoever computes the day alone from drawn dates unties it from what goes with it."""
    low = pd.Timestamp("2015-01-01").timestamp()
    columns = (
        Column(name="sold", kind=Kind.DATETIME, low=low, high=low + 1999 * DAY, step=DAY),
        Column(name="weekday", kind=Kind.INTEGER, low=0.0, high=6.0, step=1.0, dtype="int64"),
    )
    codec, random, n = Codec(Schema(columns=columns).domain()), np.random.default_rng(2), 3000
    day = pd.Series(pd.Timestamp("2015-01-01") + pd.to_timedelta(random.integers(0, 2000, n), "D"))
    weekday = pd.Series(random.integers(0, 7, n))
    plain = Placing.plain(column_bins(codec))
    date_total = list(dataclasses.astuple(TotalCandidate(1, 0, 0, 0.0, "Monday 0")))
    placing = dataclasses.replace(plain, values={**plain.values, "totals": [date_total]})
    drawn = codec.encode(pd.DataFrame({"sold": day, "weekday": weekday}))
    cells = [placing.cells(codec, drawn, i) for i in range(2)]
    made = codec.decode_codes(placing.codes(codec, cells, torch.Generator().manual_seed(0)))
    sold = pd.to_datetime(made["sold"])
    assert (made["weekday"] == sold.dt.day_of_week).all()
    assert (made["weekday"] == weekday).mean() > 0.99  # but beyond the first and last days
    alone = plain.codes(codec, cells, torch.Generator().manual_seed(0))
    before = pd.to_datetime(codec.decode_codes(alone)["sold"])
    assert (sold - before).dt.days.abs().max() <= 3


def test_of_many_relations_the_strongest_are_counted():
    """Of thirty amounts, 435 pairs: two in order, and one that is the sum of these."""
    whole = {"kind": Kind.INTEGER, "step": 1.0, "low": 0.0}
    columns = tuple(
        Column(name=f"x{i}", high=200.0 if i == 20 else 100.0, **whole) for i in range(30)
    )
    codec = Codec(Schema(columns=columns).domain())
    every, near = relation_candidates(codec), {frozenset(p) for p in ((4, 9), (4, 20), (9, 20))}
    assert every.many and every.totals == () and len(every.compared) == 435

    def strength(one: int, other: int) -> float:
        return 9.0 if {one, other} in near else (one * other) % 7 / 7.0

    asked = strongest(codec, every, strength, lambda _: True)
    assert set(asked.compared[:3]) == {(4, 9), (4, 20), (9, 20)} and len(asked.compared) == 60
    sums = [one for one in asked.totals if one.unit]
    assert any((one.total, {one.left, one.right}) == (20, {4, 9}) for one in sums)
    assert len(asked.totals) <= 15 and not asked.many
    assert asked.differences == every.differences
    assert strongest(codec, asked, strength, lambda _: True) is asked
    none = strongest(codec, every, strength, lambda _: False)
    assert not none.totals and none.compared == asked.compared
