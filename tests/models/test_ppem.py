"""PPEM beyond the contract: what is planned, what each phase learns, and what tags change."""

import math

import numpy as np
import pytest
import torch

from core.encoding.codec import Codec
from core.lmdp.inside import inside_check
from core.models.planning import plan_fit
from core.models.ppem.plan import CONDITIONAL, CRITICAL, MARGINAL, STATISTIC, Ppem, PpemSettings
from core.models.ppem.tagged_first import TaggedFirst
from core.models.step import FitContext
from core.privacy.dpsgd.gradient import ClippedGradient
from core.privacy.dpsgd.penalty import PenalisedGradient
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget
from core.schema.column import Column, Kind
from core.schema.schema import Domain
from tests.models.tables import Watcher, coded, domain, door
from tests.privacy.deterministic_noise import DeterministicNoise

pytestmark = pytest.mark.slow

SMALL = {
    "marginal_steps": 15, "steps": 15, "energy_steps": 2, "batch": 64, "fakes": 32, "hidden": 16,
    "latent": 4, "energy_hidden": 16, "count_share": 0.0,
}  # fmt: skip
N = 400


def plan_for(dom, epsilon=1.0, n=N, **settings):
    return plan_fit(Ppem(), dom, n, Budget(epsilon=epsilon, delta=1e-5), {**SMALL, **settings})


def test_both_energies_are_counted_and_share_the_budget():
    plan = plan_for(domain())
    assert [phase.name for phase in plan.phases] == [MARGINAL, CONDITIONAL]
    assert [phase.count for phase in plan.phases] == [30, 30]
    assert plan.phases[0].share == pytest.approx(0.2)
    assert plan.guarantee.epsilon <= 1.0


def test_without_tags_there_is_one_phase_and_no_penalty(tmp_path):
    plain = Domain(columns=domain().columns)
    plan = plan_for(plain)
    assert [phase.name for phase in plan.phases] == [MARGINAL]
    table = PrivateTable(coded(N)[1], plain, plan)
    watcher = Watcher()
    fitted = Ppem().fit(table, plan, FitContext(on_event=watcher, folder=tmp_path, seed=1))
    assert list(fitted.sample(20).columns) == ["key", "age", "cost", "ward", "day", "ill"]
    assert not any(STATISTIC in event.data for event in watcher.events)


def test_the_penalty_is_clipped_apart_and_counted(tmp_path):
    model = TaggedFirst(Codec(domain()), PpemSettings(**SMALL), seed=1)
    plan = plan_for(domain())
    table = door(plan)
    mechanism = model.marginal(table).critic_optimizer.mechanism
    assert isinstance(mechanism, PenalisedGradient)
    assert mechanism.sensitivity == pytest.approx(math.hypot(1.0 + 2 * 0.25, 0.1))
    assert isinstance(model.conditional(table).critic_optimizer.mechanism, ClippedGradient)


def test_the_conditional_generator_never_sees_a_real_record():
    """What it is given comes from the marginal generator: no gradient of real rows reaches it."""
    model = TaggedFirst(Codec(domain()), PpemSettings(**SMALL), seed=1)
    plan = plan_for(domain())
    tables = [door(plan, seed=s) for s in (0, 1)]
    given = []
    for table in tables:
        model.marginal(table)
        trainer = model.conditional(table)
        given.append(trainer._given(16, torch.Generator().manual_seed(5)))
    assert torch.equal(given[0], given[1])  # the same for another table


def test_the_live_statistic_comes_with_its_critical_value(tmp_path):
    watcher = Watcher()
    plan = plan_for(domain())
    Ppem().fit(door(plan), plan, FitContext(on_event=watcher, folder=tmp_path, seed=1))
    metrics = [e.data for e in watcher.events if e.kind == "metrics" and STATISTIC in e.data]
    assert metrics
    assert metrics[0][CRITICAL] == pytest.approx(3.84, abs=0.01)
    assert all(math.isfinite(data[STATISTIC]) for data in metrics)


def mixture_table(n, seed):
    """One column: two hills."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(n) < 0.5, rng.normal(3, 0.5, n), rng.normal(7, 0.7, n))
    import pandas as pd

    return pd.DataFrame({"x": x.clip(0, 10)})


EASY = Domain(
    columns=(Column(name="x", kind=Kind.NUMBER, low=0, high=10, dtype="float64"),),
    sensitive={"g": ("x",)},
)
LEARN = {
    "marginal_steps": 250, "energy_steps": 5, "batch": 64, "fakes": 64, "hidden": 32,
    "latent": 8, "energy_hidden": 32, "rate": 1e-3, "count_share": 0.0,
}  # fmt: skip


def checked(penalty, seed, folder):
    """The check of a column learnt without noise, with a penalty of that weight."""
    codec = Codec(EASY)
    codes = codec.encode(mixture_table(4000, 1))
    plan = plan_fit(
        Ppem(), EASY, 4000, Budget(epsilon=math.inf, delta=1e-5), {**LEARN, "penalty": penalty}
    )
    assert [phase.name for phase in plan.phases] == [MARGINAL]
    table = PrivateTable(codes, EASY, plan, noise_source=DeterministicNoise(seed))  # fixed batches
    fitted = Ppem().fit(table, plan, FitContext(on_event=Watcher(), folder=folder, seed=seed))
    released = codec.encode(fitted.sample(6000, seed=1))
    return inside_check(codec, ("x",), real=codes, released=released, permutations=299)


def test_with_the_penalty_the_check_tells_the_column_apart(tmp_path):
    assert checked(5.0, 3, tmp_path).rejects(0.01)


def test_without_the_penalty_the_check_sees_no_difference(tmp_path):
    # A short training ends badly about once in ten times, and sums of floats differ between
    # machines, so a seed does not help: one of four must end well.
    assert not all(checked(0.0, seed, tmp_path / str(seed)).rejects(0.01) for seed in range(4))
