"""Sums of a paid question: Δ = 1 is reached, broken twins are caught, plans pay for them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from core.encoding.codec import Codec
from core.encoding.person_rows import PersonRows
from core.inference import measured
from core.inference.measured import QuestionSums, terms
from core.inference.questions import check, question_words, read_words
from core.privacy.accounting.accountant import guarantee
from core.privacy.guarded import PrivateTable
from core.runs.execution.paid_release import MeasureQuestion
from core.runs.request import RunRequest
from core.schema.person import Person
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

PLAIN = schema().model_copy(update={"sensitive": {}})
CODEC = Codec(PLAIN.domain())
ASKED = {
    "count": "count --where=age=40..",
    "share": "share ill=True",
    "part": "share cost=100..2000 --where=ward=a|b --where=age=..60",
    "mean": "mean cost --where=ill=True",
    "gap": "difference age --by=ward=a|c",
    "shares": "difference ill=True --by=ward=a|b --where=age=30..",
}


def sums(key, kind=QuestionSums):
    question = read_words(ASKED[key], CODEC.domain)
    check(question, CODEC.domain)
    return kind(question, CODEC)


def codes(n, seed):
    return CODEC.encode(rows(n, seed))


@pytest.mark.parametrize("key", ASKED)
def test_sensitivity_is_one_and_is_reached(key):
    mechanism = sums(key)
    for seed in range(20):
        check_promises(mechanism, codes(8, seed), codes(8, seed + 100))
    least = 0.95 if key != "gap" else 0.8  # nobody here is near the bounds of age
    check_tight(mechanism, codes(400, 0), least)


@pytest.mark.parametrize("key", ASKED)
def test_a_record_left_out_moves_the_sums_by_one_at_most(key):
    """Left out of the table, not masked in place: what the others add must not change."""
    mechanism, whole = sums(key), codes(60, 3)
    full, own = mechanism.statistic(whole, torch.ones(60)), terms(mechanism.question, CODEC, whole)
    for left_out in range(60):
        rest = whole.take(np.delete(np.arange(60), left_out))
        moved = (full - mechanism.statistic(rest, torch.ones(59))).numpy()
        assert np.linalg.norm(moved) <= 1.0 + 1e-9
        assert moved == pytest.approx(own[left_out], abs=1e-9)


def test_all_rows_of_a_person_move_the_sums_by_one_at_most():
    plan = make_plan(
        PLAIN.model_copy(update={"person": Person(columns=("key",), rows=3)}),
        1000,
        RunRequest(model="scan_focus", epsilon=1.0, pay=("mean age",)),
    )
    (step,) = MeasureQuestion.bought(plan)
    question = read_words(step.text, CODEC.domain)
    counts = np.arange(1000) % 3 + 1
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    encoded, people = codes(int(offsets[-1]), 5), PersonRows(offsets)
    noise = plan.phase(step.phase).noise_multiplier
    table = PrivateTable(encoded, CODEC.domain, plan, people=people)
    released = table.release(step.phase, QuestionSums(question, CODEC)).numpy()
    each = people.weights[:, None] * terms(question, CODEC, encoded)
    mine = np.add.reduceat(each, offsets[:-1])
    assert np.linalg.norm(mine, axis=1).max() <= 1.0 + 1e-6
    assert np.abs(released - mine.sum(axis=0)).max() < 6 * noise


class Unclipped(QuestionSums):
    """Broken: a number counts as far as it lies."""

    def statistic(self, rows, mask):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(measured.np, "clip", lambda x, *_: 1.5 * x)
            return super().statistic(rows, mask)


class BothGroups(QuestionSums):
    """Broken: whoever is in one group counts in the other too."""

    def statistic(self, rows, mask):
        found = super().statistic(rows, mask)
        return found + found.roll(2)


class Ratio(QuestionSums):
    """Broken: divides by the records that are there."""

    def statistic(self, rows, mask):
        found = super().statistic(rows, mask)
        return found / found.sum().clamp(min=1e-3)


@pytest.mark.parametrize(("kind", "key"), [(Unclipped, "mean"), (BothGroups, "shares")])
def test_a_wrong_sensitivity_is_caught(kind, key):
    with pytest.raises(Caught):
        check_sensitivity(sums(key, kind), codes(200, 1))


def test_a_share_instead_of_sums_is_caught():
    with pytest.raises(Caught):
        check_additive(sums("share", Ratio), codes(8, 1), codes(8, 2))


def test_a_plan_pays_for_questions_and_keeps_its_epsilon():
    pay = (ASKED["share"], ASKED["gap"], "share  'ill=True'")  # the last is the first again
    plan = make_plan(PLAIN, 2000, RunRequest(model="pearl", epsilon=1.0, delta=1e-6, pay=pay))
    bought = MeasureQuestion.bought(plan)
    asked = [read_words(step.text, CODEC.domain) for step in bought]
    words = [question_words(read_words(text, CODEC.domain)) for text in pay[:2]]
    assert [question_words(question) for question in asked] == words
    assert [plan.phase(step.phase).share for step in bought] == [0.02, 0.02]
    assert len({step.file for step in bought}) == 2
    assert sum(phase.share for phase in plan.phases) == pytest.approx(1.0)
    assert plan.guarantee.epsilon == guarantee(plan.charged, 1e-6).epsilon <= 1.0
    never = RunRequest(model="pearl", epsilon=math.inf, pay=pay)
    assert MeasureQuestion.bought(make_plan(PLAIN, 2000, never)) == ()


def test_what_cannot_be_measured_is_refused_before_anything():
    person = PLAIN.model_copy(update={"person": Person(columns=("key",), rows=2)})
    refused = [(PLAIN, "quantile age"), (PLAIN, "linear age --by=cost"), (schema(), ASKED["share"])]
    for table, text in [*refused, (PLAIN, "table ill --by=ward"), (person, ASKED["count"])]:
        with pytest.raises(ValueError, match="Cannot be measured with noise"):
            make_plan(table, 2000, RunRequest(model="pearl", epsilon=1.0, pay=(text,)))
    for text in ("share", "foo ill", "share ill=True --of=age", "", "mean age 'cost"):
        with pytest.raises(ValueError, match=r"no question|Choose"):
            make_plan(PLAIN, 2000, RunRequest(model="pearl", epsilon=1.0, pay=(text,)))


def test_the_release_carries_the_planned_noise():
    request = RunRequest(model="pearl", epsilon=1.0, delta=1e-5, pay=(ASKED["gap"],))
    plan, mechanism, encoded = make_plan(PLAIN, 400, request), sums("gap"), codes(400, 9)
    (step,) = MeasureQuestion.bought(plan)
    exact = mechanism.statistic(encoded.to("cpu"), torch.ones(400)).numpy()
    errors = np.concatenate([
        PrivateTable(encoded, CODEC.domain, plan).release(step.phase, mechanism).numpy() - exact
        for _ in range(200)
    ])  # fmt: skip
    std = plan.phase(step.phase).noise_multiplier
    assert np.std(errors) == pytest.approx(std, rel=5 / math.sqrt(2 * len(errors)))
