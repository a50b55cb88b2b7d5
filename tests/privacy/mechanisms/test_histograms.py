"""The histograms people outside may see: Δ = √m, honest bins, and broken twins that are caught."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding.bins import MAX_LABELS
from core.encoding.codec import Codec
from core.models.registry import cards
from core.privacy.accounting.accountant import guarantee
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.histograms import Histograms
from core.privacy.plan import Budget, Plan
from core.runs.execution.paid_release import shown_columns
from core.runs.execution.review_histograms import ReviewHistograms
from core.runs.request import RunRequest
from core.schema.schema import Column, Domain, Kind
from core.services.planning import make_plan
from tests.models.tables import rows, schema
from tests.privacy.harness import (
    Caught,
    check_additive,
    check_promises,
    check_sensitivity,
    check_tight,
)

DOMAIN = schema().domain()
CODEC = Codec(DOMAIN)
NAMES = [column.name for column in DOMAIN.modelled]


def codes(n: int, seed: int):
    return CODEC.encode(rows(n, seed))


def test_sensitivity_is_root_of_columns_and_is_reached():
    mechanism = Histograms.of(CODEC, NAMES)
    assert mechanism.sensitivity == math.sqrt(5)
    for seed in range(20):
        check_promises(mechanism, codes(8, seed), codes(8, seed + 100))
    check_tight(mechanism, codes(2, 0))


class CountsTwice(Histograms):
    """Broken: a record also counts in the bin beside its own."""

    def statistic(self, rows, mask):
        counts = super().statistic(rows, mask)
        return counts + counts.roll(1)


class StatesOne(Histograms):
    """Broken: claims that one record moves one bin of one column."""

    @property
    def sensitivity(self) -> float:
        return 1.0


class Shares(Histograms):
    """Broken: divides by the records that are there, which is no sum over records."""

    def statistic(self, rows, mask):
        return super().statistic(rows, mask) / mask.sum().clamp(min=1.0)


@pytest.mark.parametrize("broken", [CountsTwice, StatesOne])
def test_a_wrong_sensitivity_is_caught(broken):
    mechanism = broken.of(CODEC, NAMES)
    with pytest.raises(Caught):
        check_sensitivity(mechanism, codes(8, 1))


def test_a_statistic_that_is_no_sum_is_caught():
    with pytest.raises(Caught):
        check_additive(Shares.of(CODEC, NAMES), codes(8, 1), codes(8, 2))


def test_every_record_lies_in_the_bin_that_pandas_says():
    frame = rows(3000, 4)
    mechanism = Histograms.of(CODEC, NAMES)
    found = mechanism.split(
        mechanism.statistic(CODEC.encode(frame).to("cpu"), torch.ones(3000)).tolist()
    )
    by_name = {one.block.column.name: one for one in mechanism.bins}
    assert all(sum(counts) == 3000 for counts in found.values())
    # a stepped column on a line
    edges = np.array(by_name["age"].edges)
    assert found["age"] == np.histogram(frame["age"], bins=edges)[0].tolist()
    # a heavy tail with an atom at 0 and gaps
    cost, edges = frame["cost"], by_name["cost"].edges
    assert edges[0] == edges[1] == 0.0
    assert found["cost"][0] == (cost == 0).sum()
    assert found["cost"][-1] == cost.isna().sum()
    present = cost.dropna().astype(float).to_numpy()
    rest = present[present > 0]
    expected = np.bincount(
        np.clip(np.searchsorted(edges, rest, side="right") - 1, 0, len(edges) - 2),
        minlength=len(edges) - 1,
    )
    assert found["cost"][1:-1] == expected[1:].tolist()
    # lists
    counted = frame["ward"].value_counts()
    assert found["ward"] == [counted["a"], counted["b"], counted["c"], frame["ward"].isna().sum()]


def test_long_lists_and_constants_have_bins_too():
    labels = tuple(f"v{i:02}" for i in range(MAX_LABELS + 5))
    domain = Domain(
        columns=(
            Column(name="list", kind=Kind.CATEGORY, categories=labels),
            Column(name="one", kind=Kind.NUMBER, low=3, high=3, dtype="float64"),
        )
    )
    codec = Codec(domain)
    mechanism = Histograms.of(codec, ["list", "one"])
    frame = pd.DataFrame({"list": list(labels), "one": 3.0})
    counts = mechanism.statistic(codec.encode(frame).to("cpu"), torch.ones(len(frame)))
    found = mechanism.split(counts.tolist())
    assert found["list"] == [1.0] * MAX_LABELS + [5.0]
    assert found["one"] == [len(frame)]


def test_the_bins_do_not_depend_on_any_row():
    assert Histograms.of(Codec(DOMAIN), NAMES) == Histograms.of(Codec(DOMAIN), NAMES)
    with pytest.raises(ValueError, match="no column"):
        Histograms.of(CODEC, [])


def test_hidden_columns_are_not_shown_and_share_is_of_precision():
    assert shown_columns(DOMAIN) == ["cost", "ill"]
    budget = Budget(epsilon=1.0, delta=1e-5)
    half, tenth = (
        ReviewHistograms(budget, share).phases(DOMAIN, 1, 1.0)[0] for share in (0.4, 0.1)
    )
    assert tenth.noise_multiplier == pytest.approx(2 * half.noise_multiplier)
    with pytest.raises(ValueError, match="share"):
        ReviewHistograms(budget, 0.9).phases(DOMAIN, 1, 1.0)[0]
    hidden = DOMAIN.model_copy(update={"sensitive": {"all": tuple(NAMES)}})
    with pytest.raises(ValueError, match="Every column is hidden"):
        ReviewHistograms(budget, 0.05).phases(hidden, 1, 1.0)[0]


def plan_of(**more) -> Plan:
    plain = schema().model_copy(update={"sensitive": {}})
    return make_plan(plain, 400, RunRequest(model="pearl", epsilon=1.0, delta=1e-5, **more))


def test_the_plan_pays_for_it_and_keeps_its_epsilon():
    without, bought = plan_of(), plan_of(review=0.1)
    assert [p.name for p in bought.phases] == [*(p.name for p in without.phases), "review"]
    assert bought.guarantee.epsilon <= 1.0 + 1e-9
    assert bought.guarantee.epsilon == pytest.approx(1.0, abs=0.01)
    for phase in without.phases:  # what is bought is missing elsewhere
        assert bought.phase(phase.name).noise_multiplier > phase.noise_multiplier
    assert sum(phase.share for phase in bought.phases) == pytest.approx(1.0)
    assert all(p.name != "review" for p in make_plan(
        schema().model_copy(update={"sensitive": {}}), 400, RunRequest(model="pearl",
        epsilon=math.inf, review=0.1)).phases)  # fmt: skip


def test_the_release_carries_the_planned_noise():
    plan = plan_of(review=0.1)
    plain = schema().model_copy(update={"sensitive": {}}).domain()
    codec = Codec(plain)
    mechanism = Histograms.of(codec, shown_columns(plain))
    encoded = codec.encode(rows(400, 9))
    exact = mechanism.statistic(encoded.to("cpu"), torch.ones(400))
    # One release has few coordinates: many tables' worth of them.
    errors = np.concatenate([
        PrivateTable(encoded, plain, plan).release("review", mechanism).numpy() - exact.numpy()
        for _ in range(60)
    ])  # fmt: skip
    std = plan.phase("review").noise_multiplier * mechanism.sensitivity
    assert np.std(errors) == pytest.approx(std, rel=5 / math.sqrt(2 * len(errors)))
    assert abs(np.mean(errors)) < 5 * std / math.sqrt(len(errors))


@pytest.mark.parametrize("model", [card.id for card in cards()])
def test_every_model_can_share_its_budget_with_the_release(model):
    plain = schema().model_copy(update={"sensitive": {}})
    plan = make_plan(plain, 2000, RunRequest(model=model, epsilon=1.0, delta=1e-6, review=0.05))
    assert plan.phases[-1].name == "review" and plan.phases[-1].share == 0.05
    assert 0.99 < plan.guarantee.epsilon <= 1.0
    assert plan.guarantee.epsilon == guarantee(plan.charged, 1e-6).epsilon


def test_certificates_attempts_and_the_release_are_paid_together():
    more = {"certificate": 0.05, "attempts": 2, "review": 0.1}
    plan = make_plan(schema(), 4000, RunRequest(model="pearl", epsilon=2.0, delta=1e-6, **more))
    names = [phase.name for phase in plan.phases]
    assert "review" in names and sum(name.startswith("certificate") for name in names) == 2
    assert plan.guarantee.epsilon <= 2.0
    alone = make_plan(
        schema(), 4000, RunRequest(model="pearl", epsilon=2.0, delta=1e-6, review=0.1)
    )
    ratio = plan.phase("review").noise_multiplier / alone.phase("review").noise_multiplier
    assert ratio == pytest.approx(math.sqrt(2))  # charged once an attempt
