"""Buying a schema, by somebody who wants it false: sensitivities, thresholds, what shows."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from core.privacy.accounting.accountant import epsilon, guarantee
from core.privacy.discovery.grids import fine_grid, grid_of
from core.privacy.discovery.open_domain import OpenDomain, open_domain
from core.privacy.discovery.planning import BOUNDS, LISTS, Levels, most_keys
from core.privacy.discovery.raw_rows import read_raw
from core.privacy.discovery.release import first_counts, release_domain
from core.privacy.discovery.thresholds import label_threshold
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.domain_release import CellCounts, LabelCounts
from core.privacy.mechanisms.noise import gaussian
from core.privacy.meter import Meter, UnplannedReleaseError
from core.privacy.plan import Plan
from core.schema.rules.rules import Combinations
from core.schema.schema import Domain, Schema
from tests.mutants import broken_discovery as broken
from tests.privacy import toys
from tests.privacy.harness import Caught
from tests.privacy.learned_tables import (
    apart,
    by_name,
    label_sums,
    labelled,
    learn,
    numbers,
    planned,
    schema_for,
    to_learn,
)

pytestmark = pytest.mark.slow

SLACK = 1.0 + 1e-9
FALSE_POSITIVE_RATE = 1e-8


# -- sensitivity: units are left out, not masked --------------------------------------------------


def cell_moves(mechanism: CellCounts, frame: pd.DataFrame, wanted, owner, weights) -> list[float]:
    """How far leaving each unit's rows out moves the cells, as a share of Δ."""
    raw = read_raw(frame, wanted)[0].to("cpu")
    whole = mechanism.statistic(raw, torch.from_numpy(weights))
    moved = []
    for unit in np.unique(owner):
        rest = np.flatnonzero(owner != unit)
        part = mechanism.statistic(raw.take(rest), torch.from_numpy(weights[rest]))
        moved.append(float((whole - part).norm()) / mechanism.sensitivity)
    return moved


def bounds_counts(wanted: OpenDomain) -> CellCounts:
    """What the first look releases, with no less noise than is stated."""
    mechanism = first_counts(wanted)
    stated = Levels.of(planned_for(wanted), wanted).std[BOUNDS]
    multiplier = planned_for(wanted).phase(BOUNDS).noise_multiplier
    assert stated >= multiplier * mechanism.sensitivity * (1.0 - 1e-9)
    return mechanism


def check_delta(frame: pd.DataFrame, schema: Schema) -> None:
    """One of two records moves the first look by Δ, which noise covers; twins are caught."""
    wanted, owner, weights = open_domain(schema), np.arange(2), np.ones(2)
    mechanism = first_counts(wanted)
    assert max(cell_moves(mechanism, frame, wanted, owner, weights)) == pytest.approx(1.0)
    plan = planned(schema, 1000, 1.0)[1]
    noise = plan.phase(BOUNDS).noise_multiplier * mechanism.sensitivity
    assert Levels.of(plan, wanted).std[BOUNDS] >= noise * (1.0 - 1e-9)
    for twin in (broken.CellsStateOne, broken.CellsForgetGridsBeside):
        wrong = twin(mechanism.grids, mechanism.scales, mechanism.columns)
        assert max(cell_moves(wrong, frame, wanted, owner, weights)) > SLACK


def planned_for(wanted: OpenDomain) -> Plan:
    return planned(Schema(columns=wanted.numeric), 1000, 1.0)[1]


def label_moves(frame: pd.DataFrame, wanted, owner, weights, mechanism=LabelCounts) -> list[float]:
    """The same of labels, whose lists are made anew from the rows that are left."""
    lists = len(wanted.listed) + len(wanted.rules)
    delta = mechanism((1,) * lists, 1).sensitivity
    whole = label_sums(frame, wanted, weights, mechanism)
    moved = []
    for unit in np.unique(owner):
        rest = owner != unit
        part = label_sums(frame[rest].reset_index(drop=True), wanted, weights[rest], mechanism)
        moved.append(apart(whole, part) / delta)
    return moved


def units(n: int, most: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Whose row each is, and its weight: one over the unit's rows, of which it has up to `most`."""
    sizes = np.random.default_rng(seed).integers(1, most + 1, n)
    owner = np.repeat(np.arange(n), sizes)[:n]
    counts = np.bincount(owner)
    return owner, 1.0 / counts[owner]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 5))
def test_no_unit_moves_counts_beyond_their_sensitivity(seed, most):
    owner, weights = units(12, most, seed)
    frame, schema = numbers(12, seed)
    wanted = open_domain(schema)
    fine = (fine_grid(-5.0, 5.0, 0.0), fine_grid(0.0, 2000.0, 1.0), fine_grid(0.0, 1e9, 0.0))
    some = CellCounts(fine[:2], (1.0, 1.0), columns=(2, 0))  # numbers that need a second look
    for mechanism in (bounds_counts(wanted), CellCounts(fine, (1.0,) * 3), some):
        assert max(cell_moves(mechanism, frame, wanted, owner, weights)) <= SLACK
    frame, schema = labelled(12, seed)
    assert max(label_moves(frame, open_domain(schema), owner, weights)) <= SLACK


@pytest.mark.parametrize("most", [1, 4])
def test_sensitivity_is_reached_and_broken_twins_are_caught(most):
    owner, weights = np.array([0] * most + [1]), np.array([1.0 / most] * most + [1.0])
    frame, schema = numbers(1, 0)
    frame = pd.concat([frame] * (most + 1), ignore_index=True)
    wanted = open_domain(schema)
    fine = CellCounts((fine_grid(-1.0, 1.0, 0.0),) * 3, (1.0,) * 3)
    some = CellCounts(fine.grids[:2], (1.0, 1.0), columns=(2, 0))
    assert max(cell_moves(some, frame, wanted, owner, weights)) >= 0.95
    wrong = broken.CellsStateOne(some.grids, some.scales, some.columns)
    assert max(cell_moves(wrong, frame, wanted, owner, weights)) > SLACK
    for mechanism in (bounds_counts(wanted), fine):
        assert max(cell_moves(mechanism, frame, wanted, owner, weights)) >= 0.95
        for twin in (broken.CellsStateOne, broken.CellsForgetGridsBeside):
            if twin is broken.CellsStateOne or mechanism is not fine:
                wrong = twin(mechanism.grids, mechanism.scales, mechanism.columns)
                assert max(cell_moves(wrong, frame, wanted, owner, weights)) > SLACK
    frame, schema = labelled(1, 1)
    frame = pd.concat([frame] * (most + 1), ignore_index=True).fillna("a")
    wanted = open_domain(schema)
    assert max(label_moves(frame, wanted, owner, weights)) >= 0.95
    assert max(label_moves(frame, wanted, owner, weights, broken.LabelsStateOne)) > SLACK
    if most > 1:
        assert max(label_moves(frame, wanted, owner, weights, broken.CountsRows)) > SLACK


def test_a_table_without_records_has_empty_counts():
    frame, schema = labelled(5, 0)
    assert set(label_sums(frame, open_domain(schema), np.zeros(5)).values()) == {0.0}


def test_combinations_are_told_apart_however_many_there_could_be():
    """64 labels in each of twelve columns could make 2⁷² of them, more than an integer counts."""
    names = tuple(f"c{i}" for i in range(12))
    index = np.random.default_rng(0).permutation(np.tile(np.arange(64), 2))
    frame = pd.DataFrame({name: [f"{name}-{k}" for k in index] for name in names})
    frame.loc[0, "c3"] = None
    schema = schema_for(frame).model_copy(update={"rules": (Combinations(names=names),)})
    raw, keys = read_raw(frame, open_domain(schema))
    assert keys[-1] == tuple(dict.fromkeys(map(tuple, frame[1:].to_numpy())))
    found = [tuple(row) for row in frame[1:].to_numpy()]
    assert [keys[-1][at] for at in raw.key_indices[1:, -1]] == found
    assert raw.key_indices[0, -1] == len(keys[-1])  # a cell is missing


def test_every_number_lies_in_one_cell():
    values = [0.0, -0.0, -999.0, 5e-31, -5e-31, 1e150, -1e150, 7.0, math.nan, 1e-30]
    wanted = open_domain(schema_for(pd.DataFrame({"x": values})))
    raw = read_raw(pd.DataFrame({"x": values}), wanted)[0].to("cpu")
    grid = grid_of(wanted.numeric[0])
    counts = CellCounts((grid,), (1.0,)).statistic(raw, torch.ones(len(values)))
    assert counts.sum() == len(values) and len(counts) == grid.size
    assert counts[-1] == 1 and counts[grid.bins + 2] == 2  # missing, and zero


def test_a_rule_of_many_columns_with_many_labels_can_be_learned():
    """That 301⁸ is beyond 64 bits once ended a purchase after it was paid for."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{i}": random.permutation(301).astype(str) for i in range(8)})
    rule = Combinations(names=tuple(frame.columns))
    raw, keys = read_raw(frame, OpenDomain(rules=(rule,)))
    assert keys == (tuple(frame.itertuples(index=False, name=None)),)
    assert raw.key_indices[:, 0].tolist() == list(range(301))


def test_the_noise_does_not_depend_on_how_many_labels_occur():
    """The length of the statistic is a count of rows' labels; its noise is that of a public one."""
    frame, schema = labelled(40, 3)
    wanted, plan = planned(schema, 40, 20.0)
    raw, keys = read_raw(frame, wanted)
    stds = []

    class Spy:
        private = False

        def generator(self):
            return self

        def standard_normal(self, shape):
            return np.ones(shape)

    most = most_keys(wanted, 40, 1)
    for lengths in (tuple(map(len, keys)), tuple(len(own) + 3 for own in keys)):
        table = PrivateTable(raw, Domain(columns=()), plan, noise_source=Spy())
        counted = LabelCounts(lengths, most)
        noisy = table.release(LISTS, counted).numpy()
        exact = counted.statistic(raw.to("cpu"), torch.ones(40)).numpy()
        stds.append(np.unique(np.round(noisy - exact, 9)))
    assert len(stds[0]) == 1 and np.array_equal(stds[0], stds[1])
    planned_std = Levels.of(plan, wanted).std[LISTS]  # which thresholds are made of
    assert stds[0][0] / 2.0 == pytest.approx(planned_std, rel=1e-9)
    with pytest.raises(ValueError, match="public bound"):
        table = PrivateTable(raw, Domain(columns=()), plan)
        table.release(LISTS, LabelCounts((10**4,) * 5, most))


# -- thresholds: what one unit alone holds --------------------------------------------------------

SHARES = {1: [(1.0,)], 3: [(1.0,), (0.5, 0.5), (2 / 3, 1 / 3), (1 / 3, 1 / 3, 1 / 3)]}


def check_threshold(make, *, rows: int, lists: int, std: float, failure: float) -> None:
    """However a unit spreads its weight over labels of its own, none is shown but with δ_h."""
    draws = 200_000
    for shares in SHARES[rows]:
        shown = np.zeros(draws, dtype=bool)
        for share in shares * lists:
            shown |= share + gaussian(draws, std) > make(std, failure, lists, rows)
        least = (
            beta.ppf(FALSE_POSITIVE_RATE, shown.sum(), draws - shown.sum() + 1)
            if shown.any()
            else 0.0
        )
        if least > failure:
            raise Caught(f"shown in {shown.mean():.4f} of the draws, δ is {failure}")


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("std", [0.3, 2.0])
def test_label_of_one_unit_is_shown_no_more_often_than_declared(rows, std):
    check_threshold(label_threshold, rows=rows, lists=2, std=std, failure=0.05)


def test_the_threshold_is_not_idly_high():
    """One row, one label in each list: the stated probability is reached."""
    with pytest.raises(Caught):
        check_threshold(
            lambda *a: label_threshold(*a) - 0.1, rows=1, lists=2, std=1.0, failure=0.05
        )


@pytest.mark.parametrize(
    ("make", "rows", "std"),
    [
        (broken.without_the_one, 1, 2.0),
        (broken.for_one_row, 3, 3.0),
        (broken.for_one_list, 1, 2.0),
    ],
)
def test_a_threshold_that_is_too_low_is_caught(make, rows, std):
    with pytest.raises(Caught):
        check_threshold(make, rows=rows, lists=3, std=std, failure=0.05)


def test_failures_are_part_of_delta():
    plain = toys.phase(noise_multiplier=4.0)
    failing = plain.model_copy(update={"failure": 4e-7})
    assert epsilon([failing], 1e-6) == epsilon([plain], 6e-7)
    assert epsilon([failing], 1e-6, "replace-one") == epsilon([plain], 2e-7, "replace-one")
    assert not guarantee([failing], 4e-7).private
    stored = type(failing).model_validate_json(failing.model_dump_json())
    assert stored == failing and epsilon([stored], 1e-6) == epsilon([plain], 6e-7)


def test_a_plan_keeps_what_was_asked_and_says_its_failure():
    frame, schema = labelled(500, 0)
    _, plan = planned(schema, len(frame), 2.0)
    assert plan.guarantee.epsilon == pytest.approx(2.0, rel=1e-6) and plan.guarantee.delta == 1e-6
    assert plan.guarantee.epsilon_replace < math.inf and 0 < plan.failure < 1e-6
    assert epsilon(plan.phases, 1e-6)[0] <= 2.0
    _, plan = planned(numbers(500, 0)[1], 500, 5.0)
    assert plan.failure == 0.0  # public cells need no threshold


# -- what shows -----------------------------------------------------------------------------------


def names_and_phrases() -> pd.DataFrame:
    """20,000 names of one record each among 400 phrases that repeat."""
    names = [f"name {i:05}" for i in range(20_000)]
    phrases = [f"phrase {i:03}" for i in range(400)] * 60
    text = pd.Series([*names, *phrases], dtype="str")
    return pd.DataFrame({"text": text.sample(frac=1.0, random_state=0).reset_index(drop=True)})


def check_no_name(make) -> None:
    frame = names_and_phrases()
    column = by_name(make(frame, schema_for(frame), 1.0))["text"]
    text = column.model_dump_json()
    if "name 0" in text or "name 1" in text:
        raise Caught("a label of one record shows")
    if column.other != "OTHER" or len(column.categories or ()) < 390:
        raise Caught("phrases that 60 records share are lost")


def check_order(make) -> None:
    frame = pd.DataFrame({"text": ["b"] * 300 + ["a"] * 200 + ["c"] * 400})
    upside_down = frame[::-1].reset_index(drop=True)
    one, other = (by_name(make(f, schema_for(f), 3.0))["text"] for f in (frame, upside_down))
    if one.categories != other.categories:
        raise Caught("the order of labels shows the order of rows")


def check_extremes(make) -> None:
    """One record far away is not seen in the bounds."""
    frame = pd.DataFrame({"x": np.linspace(20.0, 90.0, 3000)})
    for far in (1e12, -1e12):
        frame.loc[7, "x"] = far
        column = by_name(make(frame, schema_for(frame), 1.0))["x"]
        if abs(column.low) > 1e6 or abs(column.high) > 1e6:
            raise Caught("one record moves a bound")


CHECKS = (check_no_name, check_order, check_extremes)


@pytest.mark.parametrize("check", CHECKS)
def test_nothing_of_single_records_shows(check):
    check(learn)


@pytest.mark.parametrize(
    ("check", "make"),
    [
        (check_no_name, broken.rest_by_name),
        (check_order, broken.in_order_of_rows),
        (check_extremes, broken.exact_extremes),
    ],
)
def test_what_shows_single_records_is_caught(check, make):
    with pytest.raises(Caught):
        check(make)


def test_nothing_is_counted_that_is_not_charged(monkeypatch):
    frame, schema = labelled(200, 0)
    wanted, plan = planned(schema, 200, 20.0)
    spent = Meter(plan)
    spent.charge(LISTS)
    monkeypatch.setattr(LabelCounts, "statistic", None)  # whoever counts stumbles
    with pytest.raises(UnplannedReleaseError):
        release_domain(frame, wanted, plan, spent)
    other = planned(schema_for(numbers(200, 0)[0]), 200, 20.0)[1]
    with pytest.raises((UnplannedReleaseError, ValueError)):
        release_domain(frame, wanted, other.model_copy(update={"n": 200}), Meter(other))


def test_known_labels_need_no_threshold():
    frame = pd.DataFrame({"text": ["a"] * 900 + ["b"] * 100})
    schema = schema_for(frame).replace(
        to_learn("text", schema_for(frame)["text"].kind, categories=("z", "a"))
    )
    wanted, plan = planned(schema, 1000, 0.5)
    assert Levels.of(plan, wanted).label > 40
    column = by_name(learn(frame, schema, 0.5))["text"]
    assert {"z", "a"} <= set(column.categories or ())


def test_the_bound_on_entries_holds_where_all_keys_differ() -> None:
    """The noise is widened for so many entries, and a longer release would be refused once paid."""
    rows, lists = 50, 2
    mechanism = LabelCounts((rows,) * lists, rows)
    raw = SimpleNamespace(key_indices=np.tile(np.arange(rows)[:, None], (1, lists)))
    assert len(mechanism.statistic(raw, torch.ones(rows))) == mechanism.entries
