"""Intervals: they cover what they claim to, and broken replicas do not."""

from __future__ import annotations

import numpy as np
import pytest

from core.export.answer_sentences import clear, sentence
from core.inference.estimates import estimate
from core.inference.intervals import BELOW_NOISE, BEYOND, GUESSED, NO_REPLICAS, UNCOUNTED, answer
from core.inference.questions import Question, Statistic
from core.inference.replicas import Replica
from tests.inference.people import EFFECT, ILL, domain, people, run

pytestmark = pytest.mark.slow

DOMAIN = domain()
SHARE = Question(statistic=Statistic.SHARE, column="ill", value="yes")
GAP = Question(statistic=Statistic.DIFFERENCE, column="age", by=("ill",), groups=("yes", "no"))


def coverage(runs: int, **broken) -> np.ndarray:
    """Shares of runs whose 90 % intervals hold the truth: [share, gap] × [table, population]."""
    hits = np.zeros((2, 2))
    for seed in range(1, runs + 1):
        real, made, replicas = run(400, seed, 12, **broken)
        for at, (question, truth) in enumerate(((SHARE, ILL), (GAP, EFFECT))):
            figure = answer(question, made, replicas, DOMAIN, level=0.9).figures[-1]
            own = estimate(question, real, DOMAIN).values[-1]
            hits[at, 0] += figure.table.low <= own <= figure.table.high
            hits[at, 1] += figure.population.low <= truth <= figure.population.high
    return hits / runs


def test_intervals_cover_table_and_population():
    assert (coverage(80) >= 0.8).all()  # three standard errors below .9


def test_replicas_without_noise_cover_too_little():
    assert (coverage(40, noise=0.0) < 0.75).any()


def test_replicas_of_one_seed_cover_too_little():
    assert (coverage(40, one_seed=True) < 0.8).any()


def test_the_bias_of_the_mechanism_is_allowed_for():
    made = people(4_000, 1, ill=0.2)
    pairs = [(people(4_000, 2 * i, ill=0.2), people(4_000, 2 * i + 1, ill=0.1)) for i in range(12)]
    figure = answer(SHARE, made, [Replica(*pair) for pair in pairs], DOMAIN).figures[0]
    assert figure.table.low < 0.32 < figure.table.high  # it takes some of the ill


def test_shares_stay_shares_and_counts_stay_counts():
    rare = Question(statistic=Statistic.SHARE, column="days", value="24", where=("ill=yes",))
    _, made, replicas = run(150, 5, 8)
    for asked in (rare, Question(statistic=Statistic.COUNT, where=("ward=c",))):
        for figure in answer(asked, made, replicas, DOMAIN).figures:
            for interval in (figure.table, figure.population):
                assert 0 <= interval.low <= interval.high <= (1 if asked is rare else 150)


def test_only_a_difference_is_tested_and_a_large_one_is_found():
    _, made, replicas = run(400, 3, 12)
    figures = answer(GAP, made, replicas, DOMAIN).figures
    assert [figure.chance for figure in figures[:2]] == [None, None]
    assert figures[-1].chance < 0.05 and answer(GAP, made, (), DOMAIN).figures[-1].chance is None
    assert clear(figures[-1])
    shuffled = made.assign(ill=made["ill"].sample(frac=1.0, random_state=1).to_numpy())
    found = answer(GAP, shuffled, replicas, DOMAIN)
    assert not clear(found.figures[-1]) and "chance and noise would produce" in sentence(found)


def test_refusals_say_why():
    _, made, replicas = run(150, 6, 8)
    assert answer(SHARE, made, (), DOMAIN).reason == NO_REPLICAS
    assert answer(SHARE, made, (), DOMAIN).figures[0].table is None
    three = SHARE.model_copy(update={"where": ("ward=a", "age=60..")})
    assert answer(three, made, replicas, DOMAIN).caution == GUESSED
    four = SHARE.model_copy(update={"where": ("ward=a", "age=60..", "days=3..")})
    assert answer(four, made, replicas, DOMAIN).reason == BEYOND
    nobody = Question(statistic=Statistic.COUNT, where=("ward=c",))
    assert answer(nobody, made, replicas, DOMAIN).figures[0].reason == BELOW_NOISE


def test_pairs_that_were_not_counted_are_named():
    _, made, replicas = run(150, 6, 8)
    for measured, caution in (((), UNCOUNTED), ([frozenset({"age", "ill"})], "")):
        known = {"measured": measured, "all_pairs": False}
        assert answer(GAP, made, replicas, DOMAIN, **known).caution == caution
        assert answer(SHARE, made, replicas, DOMAIN, **known).caution == ""
    assert answer(GAP, made, replicas, DOMAIN).caution == ""


def test_a_higher_level_is_wider():
    _, made, replicas = run(150, 7, 8)
    narrow, wide = (
        answer(GAP, made, replicas, DOMAIN, level=level).figures[-1] for level in (0.9, 0.99)
    )
    assert narrow.table.half < wide.table.half and narrow.naive.half < wide.naive.half
