"""Histograms and marginals: Δ is reached, broken twins are caught, plans pay for them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from core.encoding.codec import Codec
from core.models.registry import cards
from core.privacy.accounting.accountant import guarantee
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.histograms import Histograms
from core.privacy.mechanisms.marginals import Marginals
from core.runs.execution.noisy_scores import ScoreCounts
from core.runs.execution.paid_release import ReviewHistograms, shown_columns
from core.runs.request import RunRequest
from core.services.planning import make_plan
from tests.models.tables import rows, schema
from tests.privacy.harness import (
    Caught,
    check_additive,
    check_promises,
    check_sensitivity,
    check_tight,
)

pytestmark = pytest.mark.slow

CODEC = Codec(schema().domain())
NAMES = [column.name for column in CODEC.domain.modelled]
PLAIN = schema().model_copy(update={"sensitive": {}})
COUNTS = [Histograms, Marginals]


def codes(n: int, seed: int):
    return CODEC.encode(rows(n, seed))


@pytest.mark.parametrize(
    ("kind", "counted"), [(Histograms, len(NAMES)), (Marginals, math.comb(len(NAMES) + 1, 2))]
)
def test_sensitivity_is_root_of_marginals_and_is_reached(kind, counted):
    mechanism = kind.of(CODEC, NAMES)
    assert mechanism.sensitivity == math.sqrt(counted)
    for seed in range(20):
        check_promises(mechanism, codes(8, seed), codes(8, seed + 100))
    check_tight(mechanism, codes(2, 0))


@pytest.mark.parametrize("kind", COUNTS)
def test_record_left_out_moves_only_its_own_cells(kind):
    """Left out of the table, not masked in place: what the others add must not change."""
    mechanism, whole = kind.of(CODEC, NAMES), codes(50, 3)
    full = mechanism.statistic(whole, torch.ones(50))
    for left_out in (0, 17, 49):
        rest = whole.take(np.delete(np.arange(50), left_out))
        moved = full - mechanism.statistic(rest, torch.ones(49))
        assert moved.min() == 0.0 and moved.max() == 1.0
        assert torch.linalg.vector_norm(moved) == pytest.approx(mechanism.sensitivity)


class CountsTwice:
    """Broken: a record also counts in the cell beside its own."""

    def statistic(self, rows, mask):
        counts = super().statistic(rows, mask)
        return counts + counts.roll(1)


class DeclaresOne:
    """Broken: claims that one record moves one cell."""

    sensitivity = 1.0


class ForgetsPairs:
    """Broken: Δ for the single columns alone."""

    sensitivity = property(lambda self: math.sqrt(len(self.bins)))


class Unreached:
    """Broken: as if a record moved twice as much, which only wastes budget."""

    sensitivity = property(lambda self: 2.0 * super().sensitivity)


class Shares:
    """Broken: divides by the records that are there, which is no sum over records."""

    def statistic(self, rows, mask):
        return super().statistic(rows, mask) / mask.sum().clamp(min=1.0)


def broken_twin(fault: type, kind: type):
    return type(fault.__name__, (fault, kind), {}).of(CODEC, NAMES)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(CountsTwice, Histograms), (CountsTwice, Marginals), (DeclaresOne, Histograms),
     (DeclaresOne, Marginals), (ForgetsPairs, Marginals)],
)  # fmt: skip
def test_a_wrong_sensitivity_is_caught(fault, kind):
    with pytest.raises(Caught):
        check_sensitivity(broken_twin(fault, kind), codes(8, 1))


@pytest.mark.parametrize("kind", COUNTS)
def test_unreached_sensitivity_and_non_additivity_are_caught(kind):
    with pytest.raises(Caught):
        check_tight(broken_twin(Unreached, kind), codes(2, 0))
    with pytest.raises(Caught):
        check_additive(broken_twin(Shares, kind), codes(8, 1), codes(8, 2))


@pytest.mark.parametrize("model", [card.id for card in cards()])
def test_every_plan_pays_for_counts_and_keeps_its_epsilon(model):
    without = make_plan(PLAIN, 2000, RunRequest(model=model, epsilon=1.0, delta=1e-6))
    plan = make_plan(
        PLAIN, 2000, RunRequest(model=model, epsilon=1.0, delta=1e-6, review=0.05, score=0.05)
    )
    own = [phase.name for phase in without.phases]
    assert [phase.name for phase in plan.phases] == [*own, ReviewHistograms.name, ScoreCounts.name]
    assert plan.phase(ReviewHistograms.name).share == plan.phase(ScoreCounts.name).share == 0.05
    assert sum(phase.share for phase in plan.phases) == pytest.approx(1.0)
    assert plan.guarantee.epsilon == guarantee(plan.charged, 1e-6).epsilon
    assert 0.99 < plan.guarantee.epsilon <= 1.0
    for phase in without.phases:  # what is bought is missing elsewhere
        if phase.rho is None:
            assert plan.phase(phase.name).noise_multiplier > phase.noise_multiplier
    never = RunRequest(model=model, epsilon=math.inf, review=0.05, score=0.05)
    assert not {ReviewHistograms.name, ScoreCounts.name} & {
        p.name for p in make_plan(PLAIN, 2000, never).phases
    }


@pytest.mark.parametrize(
    ("kind", "phase"), [(Histograms, ReviewHistograms), (Marginals, ScoreCounts)]
)
def test_the_release_carries_the_planned_noise(kind, phase):
    request = RunRequest(model="pearl", epsilon=1.0, delta=1e-5, review=0.1, score=0.1)
    plan, codec = make_plan(PLAIN, 400, request), Codec(PLAIN.domain())
    mechanism = kind.of(codec, shown_columns(codec.domain))
    encoded = codec.encode(rows(400, 9))
    exact = mechanism.statistic(encoded.to("cpu"), torch.ones(400)).numpy()
    # one release has few coordinates: many tables' worth of them
    errors = np.concatenate([
        PrivateTable(encoded, codec.domain, plan).release(phase.name, mechanism).numpy() - exact
        for _ in range(60)
    ])  # fmt: skip
    std = plan.phase(phase.name).noise_multiplier * mechanism.sensitivity
    assert np.std(errors) == pytest.approx(std, rel=5 / math.sqrt(2 * len(errors)))
    assert abs(np.mean(errors)) < 5 * std / math.sqrt(len(errors))
