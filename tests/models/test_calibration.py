"""Rows fitted to counts: what is counted is planned, and all that follows reads releases alone."""

from __future__ import annotations

import dataclasses
import functools
import math
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding.codec import Codec, Codes
from core.models.events import SignificantSets
from core.models.planning import plan_fit
from core.models.registry import load_fitted, synthesizer
from core.models.saved_model import REWEIGH, SavedModel
from core.models.step import FitContext, State, planned_phases, run_steps
from core.models.steps.calibration import calibration
from core.models.steps.calibration.calibrated import FILE, SHARE
from core.models.steps.calibration.calibration import Counts, calibrate, counts_of
from core.models.steps.calibration.coupling import carried, coupling, goal_of
from core.models.steps.calibration.row_weights import (
    CellTable,
    cells_of,
    fit_row_weights,
    systematic,
)
from core.models.steps.counting.design import PAIRS, SCALES, TOGETHER
from core.models.steps.counting.releases import Releases
from core.models.steps.counting.steps import counting_steps
from core.privacy.guarded import PrivateTable
from core.privacy.meter import UnplannedReleaseError
from core.privacy.plan import Budget, Plan
from core.schema.column import Column, Kind
from core.schema.schema import Domain, Schema
from tests.contract.fits import QUICK, fit
from tests.models.tables import Watcher, coded, domain
from tests.privacy.deterministic_noise import DeterministicNoise
from tests.privacy.omission import OmittingTable, leaving_out

pytestmark = pytest.mark.slow

N = 300
MODELS = ("p3gm", "dp_gan", "dp_auto_gan", "ppem", "pgb")
COUNTING = {"scales", "columns", "scan", "relations", "pairs", "pairs_again"}


def untagged() -> Domain:
    return domain().model_copy(update={"sensitive": {}})


@functools.cache
def planned(
    model: str, kind: str = "untagged", *, epsilon: float = 1.0, share: float = 0.4
) -> Plan:
    chosen = {**QUICK[model], SHARE: share}
    budget = Budget(epsilon=epsilon, delta=1e-5)
    return plan_fit(synthesizer(model), DOMAINS[kind](), N, budget, chosen)


def guarded(plan: Plan, where: Domain | None = None, seed: int = 0) -> PrivateTable:
    return PrivateTable(coded(plan.n, seed)[1], where or untagged(), plan)


@functools.cache
def fitted(model: str = "p3gm", epsilon: float = 1.0) -> tuple[Plan, PrivateTable, SavedModel]:
    plan = planned(model, epsilon=epsilon)
    table = guarded(plan)
    with tempfile.TemporaryDirectory() as folder:
        made = fit(table, plan, Path(folder))
    assert isinstance(made, SavedModel) and made.transform(REWEIGH)
    return plan, table, made


# -- the plan --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_counts_and_the_model_share_one_budget(model):
    plan = planned(model)
    shares = {phase.name: phase.share for phase in plan.phases}
    assert shares.keys() >= COUNTING
    boosted = shares.get("boosting", 0.0)
    assert sum(shares[name] for name in COUNTING) == pytest.approx(0.4 * (1.0 - boosted))
    assert sum(shares.values()) == pytest.approx(1.0)
    assert 0.98 < plan.guarantee.epsilon <= 1.0


@pytest.mark.parametrize("model", MODELS)
def test_record_left_out_moves_no_access_beyond_sensitivity(model, tmp_path, monkeypatch):
    plan = planned(model)
    with leaving_out(monkeypatch) as (streams, _):
        source = DeterministicNoise(3)
        table = OmittingTable(coded(N)[1], untagged(), plan, noise_source=source)
        table.streams, table.checked = streams, set()
        made = fit(table, plan, tmp_path)
    assert table.checked == {phase.name for phase in plan.phases} >= COUNTING
    assert {p.name: table.meter.runs(p.name) for p in plan.phases} == {
        p.name: p.count for p in plan.phases
    }
    assert isinstance(made, SavedModel) and made.transform(REWEIGH)


def test_tagged_columns_that_training_bends_are_never_counted():
    """Nor are columns beside them, whose counts would pull the tagged ones along."""
    for model, base in (("ppem", {}), ("pgb", {"base": "ppem"}), ("p3gm", {})):
        one = synthesizer(model)
        settings = one.configure({**base, SHARE: 0.4}, private=True)
        for where in (domain(), untagged()):
            counted = COUNTING & {
                phase.name for phase in planned_phases(one.steps(where, settings), where, N)
            }
            bent = model != "p3gm" and where.sensitive  # P3GM's output is shifted afterwards
            assert counted == (set() if bent else COUNTING)
    assert planned("ppem", "tagged").settings[SHARE] == 0.0  # as the certificate tells


def test_a_bent_model_stays_as_it_trained(tmp_path):
    plan = planned("ppem", "tagged")
    made = fit(guarded(plan, domain()), plan, tmp_path)
    assert made.transforms == () and made.baseline is None


def test_a_base_that_is_boosted_is_not_calibrated_inside():
    _, _, made = fitted("pgb")
    assert type(made.base).__name__ == "BoostedFitted"
    assert made.baseline == SavedModel(made.base.baseline)  # what the review compares with


# -- what is read ----------------------------------------------------------------------------------


def count(table: PrivateTable, plan: Plan, context: FitContext) -> Counts:
    """The releases that a plan has for calibration."""
    steps = counting_steps(table.domain, TOGETHER, FILE, share=plan.settings["count_share"])
    return counts_of(run_steps(steps, table, State(plan=plan), context).measured)


def factors_after(folder: Path, seed: int, *, leak: bool = False) -> np.ndarray:
    """λ of a fit that goes on from the releases in a folder, with the rows of that seed."""
    plan = planned("p3gm")
    table = guarded(plan, seed=seed)
    context = FitContext(on_event=Watcher(), folder=folder, seed=1, resume=True)
    counts = count(table, plan, context)
    if leak:
        counts = from_true_counts(counts, coded(N, seed)[1])
    return np.concatenate(calibrate(fitted()[2].base, counts).factors)


def from_true_counts(counts: Counts, codes: Codes) -> Counts:
    """The broken twin: matches what was never released."""
    columns = [
        dataclasses.replace(table, shares=np.bincount(cell, minlength=len(table.shares)) / N)
        for table, cell in zip(
            counts.columns, (s.index(codes.to("cpu")).numpy() for s in counts.scales), strict=True
        )
    ]
    return dataclasses.replace(counts, columns=tuple(columns))


def test_weights_follow_from_releases_and_generated_rows_alone(tmp_path):
    factors_after(tmp_path, seed=0)  # makes the releases
    same = [factors_after(tmp_path, seed=seed) for seed in (0, 5)]
    assert np.array_equal(*same)
    leaking = [factors_after(tmp_path, seed=seed, leak=True) for seed in (0, 5)]
    assert not np.array_equal(*leaking)  # so a twin that looks at rows is caught


def test_a_count_that_is_not_in_the_plan_is_refused(tmp_path, monkeypatch):
    """The broken twin counts its pairs twice and pays once."""
    once = Releases.count_pairs

    def twice(self: Releases, phase: str) -> None:
        once(self, phase)
        del self.checkpoint.state[PAIRS]
        once(self, phase)

    monkeypatch.setattr(Releases, "count_pairs", twice)
    plan = planned("p3gm")
    with pytest.raises(UnplannedReleaseError):
        fit(guarded(plan), plan, tmp_path)


def test_what_was_released_is_never_released_again(tmp_path):
    plan = planned("p3gm")
    table = guarded(plan)
    context = FitContext(on_event=Watcher(), folder=tmp_path, seed=1)
    first = count(table, plan, context)
    runs = {phase.name: table.meter.runs(phase.name) for phase in plan.phases}
    again = count(table, plan, dataclasses.replace(context, resume=True))
    assert {phase.name: table.meter.runs(phase.name) for phase in plan.phases} == runs
    for one, other in zip(
        (*first.columns, *first.pairs), (*again.columns, *again.pairs), strict=True
    ):
        assert np.array_equal(one.shares, other.shares)
    assert first.seed == again.seed


def test_significant_pairs_are_reported(tmp_path):
    plan = planned("p3gm")
    watcher = Watcher()
    count(guarded(plan), plan, FitContext(on_event=watcher, folder=tmp_path, seed=1))
    assert [e for e in watcher.events if isinstance(e, SignificantSets)]


# -- weights ---------------------------------------------------------------------------------------


def test_two_cells_by_hand():
    """Half of the pool in each cell, .8 was released, so q = .65 and .35."""
    cells = [np.repeat([0, 1], 500)]
    table = CellTable((0,), (2,), np.array([0.8, 0.2]), np.full(2, 0.1))
    (free,) = fit_row_weights([table], cells, trust=0.0)
    assert free[0] - free[1] == pytest.approx(math.log(4.0), abs=1e-3)
    (held,) = fit_row_weights([table], cells, trust=10.0)
    share = 1.0 / (1.0 + math.exp(held[1] - held[0]))
    assert share == pytest.approx(0.8 - 10.0 * 0.01 / 0.65 * held[0], abs=1e-3)
    assert 1.0 - share == pytest.approx(0.2 - 10.0 * 0.01 / 0.35 * held[1], abs=1e-3)
    assert 0.55 < share < 0.75  # between the model and the count


def test_cells_that_the_model_never_fills_get_no_factor():
    table = CellTable((0,), (3,), np.array([0.5, 0.3, 0.2]), np.full(3, 0.01))
    (factors,) = fit_row_weights([table], [np.repeat([0, 1], 50)], trust=1.0)
    assert factors[2] == 0.0 and np.isfinite(factors).all()


def test_weighted_rows_agree_with_a_pair_that_the_pool_lacks():
    random = np.random.default_rng(0)
    cells = [random.integers(0, 3, 6000) for _ in range(2)]
    goal = np.array([0.3, 0.02, 0.02, 0.02, 0.3, 0.02, 0.02, 0.02, 0.28])
    table = CellTable((0, 1), (3, 3), goal, np.full(9, 1e-3))
    (factors,) = fit_row_weights([table], cells, trust=1.0)
    joint = cells_of((0, 1), (3, 3), cells)
    weights = np.exp(factors[joint])
    shares = np.bincount(joint, weights) / weights.sum()
    assert np.abs(shares - goal).max() < 2e-3


def test_rows_are_chosen_by_weight_and_none_twice():
    random = np.random.default_rng(1)
    weights = np.concatenate([random.uniform(0.5, 2.0, 59), [60.0]])  # the last one beyond 1/20
    often = np.zeros(60)
    for _ in range(1000):
        chosen = systematic(weights, 20, random.random())
        assert len(np.unique(chosen)) == 20
        often[chosen] += 1.0 / 1000
    expected = 19.0 * weights[:59] / weights[:59].sum()
    assert often[59] == pytest.approx(1.0)
    assert np.abs(often[:59] - expected).max() < 0.05
    assert systematic(np.ones(5), 5, 0.3).tolist() == [0, 1, 2, 3, 4]


def test_rows_reach_their_target_and_numbers_keep_their_rank():
    random = np.random.default_rng(2)
    for line in (0, 5, 9):
        pool, goal = random.dirichlet(np.ones(9), 2)
        pool[2] = 0.0  # a cell that the model never fills
        pool /= pool.sum()
        moves = coupling(pool, goal, line)
        assert np.allclose(moves.sum(axis=1), 1.0) and (moves >= 0.0).all()
        assert np.allclose(pool @ moves, goal)
    cells = random.choice(9, 4000, p=pool)
    there = carried(cells, moves, torch.Generator().manual_seed(0))
    assert np.abs(np.bincount(there, minlength=9) / 4000 - goal).max() < 0.03
    means = [there[cells == cell].mean() for cell in np.unique(cells)]
    assert (np.diff(means) >= 0).all()  # all nine lie on the line here
    assert np.array_equal(carried(cells, np.eye(9), torch.Generator().manual_seed(0)), cells)


def test_a_goal_lies_between_the_model_and_the_counts():
    pool, released = np.array([0.5, 0.5]), np.array([0.8, 0.2])
    for noise, expected in ((0.0, 0.8), (10.0, 0.5)):
        goal = goal_of(pool, released, np.full(2, noise), 4.0)
        assert goal[0] == pytest.approx(expected, abs=1e-3)


# -- drawing and keeping ---------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 17, 9000])
def test_any_number_of_rows_comes_again_for_a_seed(rows):
    _, _, made = fitted()
    first = made.sample(rows, seed=4)
    assert len(first) == rows
    pd.testing.assert_frame_equal(first, made.sample(rows, seed=4))
    assert rows == 1 or not first.equals(made.sample(rows, seed=5))


def test_what_is_saved_draws_the_same_rows(tmp_path):
    _, _, made = fitted()
    made.save(tmp_path / "m")
    pd.testing.assert_frame_equal(
        load_fitted("p3gm", tmp_path / "m").sample(40, seed=2), made.sample(40, seed=2)
    )


def test_without_a_share_nothing_is_counted_or_weighed(tmp_path):
    plan = planned("p3gm", share=0.0)
    assert not COUNTING & {phase.name for phase in plan.phases}
    made = fit(guarded(plan), plan, tmp_path)
    assert made.transforms == () and made.base.settings[SHARE] == 0.0


def test_without_privacy_rows_come_close_to_the_counts():
    plan, table, made = fitted("p3gm", math.inf)
    assert table.meter.executed == plan.phases and math.isinf(plan.guarantee.epsilon)
    real = Codec(untagged()).decode_codes(coded(N)[1])
    gaps = [
        abs(one.sample(4000, seed=1)["ill"].mean() - real["ill"].mean())
        for one in (made.base, made)
    ]
    assert gaps[1] < 0.5 * gaps[0]


ONE = Schema(columns=(Column(name="a", kind=Kind.CATEGORY, categories=("x", "y")),)).domain()
GAPS = Schema(
    columns=(
        Column(name="a", kind=Kind.NUMBER, low=0, high=1, missing=True),
        Column(name="b", kind=Kind.CATEGORY, categories=("x", "y"), missing=True),
        Column(name="c", kind=Kind.INTEGER, low=0, high=3, step=1),
    )
).domain()


DOMAINS = {
    "untagged": untagged,
    "tagged": domain,
    "one column": lambda: ONE,
    "no target, all missing": lambda: GAPS,
}


@pytest.mark.parametrize("kind", ["one column", "no target, all missing"])
def test_odd_tables_can_be_counted_and_drawn(kind, tmp_path):
    where = DOMAINS[kind]()
    rows = pd.DataFrame(
        {"a": ["x"] * N} if where is ONE else {"a": np.nan, "b": None, "c": [1] * N}
    )
    plan = planned("p3gm", kind)
    table = PrivateTable(Codec(where).encode(rows), where, plan)
    made = fit(table, plan, tmp_path)
    assert SCALES in {phase.name for phase in plan.phases}
    assert len(made.sample(20, seed=1)) == 20


def test_the_pool_is_small_where_there_are_few_records():
    sizes = []
    _, _, made = fitted()

    class Counting(type(made.base)):  # type: ignore[misc]
        def draw(self, rows, random):
            sizes.append(rows)
            return super().draw(rows, random)

    inner = object.__new__(Counting)
    inner.__dict__.update(made.base.__dict__)
    one = CellTable((0,), (made.transforms[0].scales[0].size,), np.zeros(0), np.zeros(0))
    share = np.full(one.sizes[0], 1.0 / one.sizes[0])
    table = dataclasses.replace(one, shares=share, noise=np.full(len(share), 0.1))
    counts = Counts(N, made.transforms[0].scales[:1], (table,), (), (), (), (), (), seed=1)
    calibrate(inner, counts)
    few = calibration.FEWEST_POOL
    assert sizes == [few, calibration.SETTLING * few]
