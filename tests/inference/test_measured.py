"""Measured figures: the same as asked of the rows, with intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest

from core.encoding.codec import Codec
from core.inference.estimates import estimate
from core.inference.measured import FEWEST, Measured, synthetic_figure, terms
from core.inference.questions import check, read_words
from tests.inference.people import domain, people

ASKED = (
    "share ill=yes", "share ill=yes --where=age=50..60", "share ward=a|b --where=days=3..",
    "mean age", "mean days --where=ward=a", "difference age --by=ill=yes|no",
    "difference ill=yes --by=ward=a|b", "share ill=yes --where=age=",
)  # fmt: skip


def holes(n, seed):
    """Rows in which some ages and wards are missing."""
    frame = people(n, seed)
    return frame.assign(age=frame["age"].mask(frame.index % 7 == 0), ward=frame["ward"].where(
        frame.index % 5 > 0))  # fmt: skip


@pytest.mark.parametrize("text", ASKED)
def test_figures_without_noise_are_those_of_ask(text):
    rows, asked = holes(2000, 1), read_words(text, domain())
    check(asked, domain())
    ends = {"mean age": (0, 150), "mean days --where=ward=a": (0, 24)}.get(text, (0, 1))
    if text == "difference age --by=ill=yes|no":
        ends = (0, 150)
    found = Measured(question=asked, low=ends[0], high=ends[1], noise_std=0, sums=())
    value = estimate(asked, rows, domain()).values[-1]
    assert synthetic_figure(found, rows, domain()) == pytest.approx(value, abs=1e-6)


def test_a_count_is_scaled_to_the_records_measured():
    asked = read_words("count --where=ill=yes", domain())
    found = Measured(question=asked, low=0, high=500, noise_std=0, sums=())
    rows = people(2000, 2)
    expected = 500 * (rows["ill"] == "yes").mean()
    assert synthetic_figure(found, rows, domain()) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["share ill=yes", "difference ill=yes --by=ward=a|b"])
@pytest.mark.parametrize("n", [300, 3000])
def test_intervals_hold_the_real_figure_as_often_as_they_say(text, n):
    rows, asked = people(n, 4), read_words(text, domain())
    codec, noise = Codec(domain()), 9.0
    exact = terms(asked, codec, codec.encode(rows)).sum(axis=0)
    real = estimate(asked, rows, domain()).values[-1]
    rng, inside = np.random.default_rng(0), []
    for _ in range(4000):
        sums = tuple(exact + rng.normal(0, noise, len(exact)))
        found = Measured(question=asked, low=0, high=1, noise_std=noise, sums=sums)
        value, error = found.figure(sums)
        if np.isfinite(error):  # else nothing is said
            inside.append(abs(value - real) <= 1.96 * error)
    assert len(inside) > 3000 and np.mean(inside) > 0.94


def test_groups_that_noise_hides_have_no_figure():
    asked = read_words("share ill=yes", domain())
    for size, told in ((FEWEST - 1, False), (FEWEST + 1, True)):
        found = Measured(question=asked, low=0, high=1, noise_std=10, sums=(1, size * 10))
        assert np.isfinite(found.figure(found.sums)[1]) == told
