"""Estimates against what can be counted by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.inference.estimates import MISSING, estimate
from core.inference.questions import Question, Statistic
from tests.inference.people import domain, people

DOMAIN = domain()
ROWS = pd.DataFrame(
    {
        "age": [20.0, 30.0, 40.0, None],
        "ward": pd.Series(["a", "a", "b", None], dtype="str"),
        "ill": pd.Series(["no", "yes", "yes", "no"], dtype="str"),
        "days": [2, 4, 4, 6],
    }
)


def values(statistic: str, rows: pd.DataFrame = ROWS, **asked) -> dict:
    found = estimate(Question(statistic=Statistic(statistic), **asked), rows, DOMAIN)
    return dict(zip(found.names, found.values.tolist(), strict=True))


def test_counts_shares_means_and_quantiles():
    assert values("count", where=("ill=yes", "days=4..")) == {(): 2}
    assert values("share", column="ill", value="yes") == {(): 0.5}
    assert values("share", column="age", value="25..", where=("ward=a",)) == {(): 0.5}
    assert values("mean", column="age") == {(): 30.0}  # of those who have one
    assert values("quantile", column="age", level=0.5) == {(): 30.0}


def test_a_cross_table_holds_all_rows():
    cells = values("table", column="ill", by=("ward",))
    assert cells["no", "a"] == cells["yes", "a"] == cells["no", MISSING] == 0.25
    assert cells["yes", "c"] == 0 and sum(cells.values()) == 1


def test_a_difference_is_the_first_less_the_second():
    asked = {"by": ("ward",), "groups": ("a", "b")}
    means = values("difference", column="age", **asked)
    assert means == {("first",): 25.0, ("second",): 40.0, ("difference",): -15.0}
    shares = values("difference", column="ill", value="yes", **asked)
    assert list(shares.values()) == [0.5, 1.0, -0.5]


def test_naive_errors_are_those_of_a_sample():
    rows = people(40_000, 1)
    share = estimate(Question(statistic=Statistic.SHARE, column="ill", value="yes"), rows, DOMAIN)
    assert share.errors[0] == pytest.approx(np.sqrt(0.3 * 0.7 / 40_000), rel=0.02)
    middle = estimate(Question(statistic=Statistic.QUANTILE, column="age"), rows, DOMAIN)
    mean = estimate(Question(statistic=Statistic.MEAN, column="age"), rows, DOMAIN)
    assert mean.errors[0] == pytest.approx(rows["age"].std() / 200, rel=1e-9)
    assert mean.errors[0] < middle.errors[0] < 2 * mean.errors[0]  # of a near-normal column


def test_regressions_find_what_rows_were_made_with():
    rows = people(20_000, 2)
    line = values("linear", rows, column="age", by=("ill", "ward"))
    assert line["ill", "yes"] == pytest.approx(12, abs=0.5)
    assert np.isnan(line["ward", "c"])  # nobody is there
    odds = values("logistic", rows, column="ill", value="yes", by=("age",))
    assert odds[("age",)] == pytest.approx(12 / 100, abs=0.01)  # effect / variance


def test_predictors_that_say_the_same_have_no_coefficient():
    rows = people(500, 3).assign(days=lambda rows: (rows["ill"] == "yes") * 1)
    same = values("linear", rows, column="age", by=("ill", "days"))
    assert all(np.isnan(value) for value in same.values())


def test_survival_counts_those_at_risk():
    rows = ROWS.assign(days=[2, 4, 6, 8])  # ended at 4 and 6, of 3 and 2 at risk
    curve = values("survival", rows, column="days", value="yes", by=("ill",))
    assert curve[("2",)] == 1 and curve[("4",)] == pytest.approx(2 / 3)
    assert curve[("24",)] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "asked",
    [
        {"statistic": "share", "column": "ill", "value": "yes"},
        {"statistic": "mean", "column": "age"},
        {"statistic": "quantile", "column": "age"},
        {"statistic": "table", "column": "ill", "by": ("ward",)},
        {"statistic": "difference", "column": "age", "by": ("ill",), "groups": ("no", "yes")},
        {"statistic": "linear", "column": "age", "by": ("days",)},
        {"statistic": "logistic", "column": "ill", "value": "yes", "by": ("age",)},
        {"statistic": "survival", "column": "days", "value": "yes", "by": ("ill",)},
    ],
)
def test_no_row_gives_no_figure_and_no_warning(asked):
    assert all(np.isnan(one) for one in values(**asked, where=("ward=c",)).values())
