"""Learning from one table and testing on another."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from core.quality.prediction import _majority, dimension_prediction, prediction_gap
from core.quality.prepare import Features
from core.quality.types import PredictionPoint
from core.quality.utility import (
    LOGISTIC,
    Task,
    auprc,
    auroc,
    classifiers,
    fit,
    logistic,
    mean_score,
    pmse,
    tstr,
    utility_rows,
)


class Fixed:
    """A "model" whose one input is the probability of class 1."""

    classes_ = np.array([0, 1])

    def predict_proba(self, x):
        return np.column_stack([1 - x[:, 0], x[:, 0]])


def test_auroc_by_counting_pairs():
    x = np.array([[0.9], [0.8], [0.3], [0.2], [0.1]])
    y = np.array([1, 0, 1, 0, 0])
    # Rarer class 1 at .9 and .3 against .8, .2, .1: 3 + 2 of 6 pairs in order.
    assert auroc(Fixed(), x, y) == pytest.approx(5 / 6)
    # Precision 1/1 at the first hit, 2/3 at the second, recall ½ each.
    assert auprc(Fixed(), x, y) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert auroc(Fixed(), x, np.ones(5)) is None


def test_the_rarer_class_is_positive_even_when_it_is_class_0():
    x = np.array([[0.1], [0.8], [0.9]])
    y = np.array([0, 1, 1])
    assert auroc(Fixed(), x, y) == 1
    assert auprc(Fixed(), x, y) == 1


def test_a_class_never_seen_scores_zero_and_several_are_weighted():
    x = np.array([[1.0], [1.0], [0.0], [0.5]])
    y = np.array([1, 1, 0, 2])
    # One-vs-rest: class 1 perfect (1), class 0 perfect (1), class 2 unseen, constant 0 (½).
    assert auroc(Fixed(), x, y) == pytest.approx((2 * 1 + 1 * 1 + 1 * 0.5) / 4)


@pytest.fixture(scope="module")
def cells(schema, tables):
    names = ("real", "test", "fresh", "shuffled", "collapsed")
    features, read = Features.fit(schema, *(tables[name] for name in names))
    return features, dict(zip(names, read, strict=True))


def test_the_protocol_has_four_classifiers():
    found = classifiers()
    assert len(found) == 4
    boosting = found["Gradient boosting"].get_params()
    published = {"max_features": "sqrt", "max_depth": 8, "min_samples_leaf": 50}
    assert published.items() <= boosting.items()
    assert boosting["min_samples_split"] == 200


def test_tstr_ranks_tables(cells):
    features, tables = cells
    task = Task(features, "rich")
    found = {name: tstr(task, tables[name], tables["test"]) for name in tables if name != "test"}
    area = {name: mean_score(scores, "AUROC") for name, scores in found.items()}
    assert area["real"] > 0.9
    assert area["fresh"] == pytest.approx(area["real"], abs=0.03)
    assert area["shuffled"] < 0.65
    assert area["collapsed"] == 0.5  # one class teaches nothing
    rows = utility_rows(task, real=found["real"], synthetic=found["shuffled"], test=tables["test"])
    assert len(rows) == 12
    share = (np.bincount(tables["test"].values["rich"]) / 600).min()
    base = {row.metric: row.baseline for row in rows}
    expected = {"AUROC": 0.5, "AUPRC": share, "Accuracy": 1 - share}
    assert base == pytest.approx(expected)


def test_only_names_the_models_wanted(cells):
    features, tables = cells
    found = tstr(Task(features, "rich"), tables["real"], tables["test"], only=(LOGISTIC,))
    assert list(found) == [LOGISTIC]


def test_a_numeric_target_is_judged_by_r2(cells):
    features, tables = cells
    task = Task(features, "age")
    good = tstr(task, tables["real"], tables["test"])
    bad = tstr(task, tables["shuffled"], tables["test"])
    assert mean_score(good, "R²") > 0.6
    assert mean_score(bad, "R²") < 0.1
    assert min(metrics["R²"] for metrics in bad.values()) >= 0
    assert mean_score(good, "AUROC") is None


def test_nothing_to_test_on_gives_nothing(cells):
    features, tables = cells
    none = tables["test"].take(np.array([], dtype=int))
    assert tstr(Task(features, "rich"), tables["real"], none) == {}


def test_a_class_with_one_row_is_left_out():
    x = np.arange(21.0)[:, None]
    y = np.array([0] * 10 + [1] * 10 + [2])
    assert fit(logistic(), x, y).classes_.tolist() == [0, 1]
    # ... unless nothing but single rows is there.
    assert fit(logistic(), x[:2], np.array([0, 1])).classes_.tolist() == [0, 1]


def test_pmse_finds_shifted_rows_and_not_shuffled_ones(cells):
    features, tables = cells
    same, blind = pmse(features, tables["real"], tables["real"])
    assert same == pytest.approx(0, abs=1e-9)
    assert blind == pytest.approx(0.5)
    assert pmse(features, tables["real"], tables["shuffled"])[0] < 1e-6
    assert pmse(features, tables["real"], tables["collapsed"])[0] > 0.1


def test_dimension_prediction_drops_what_real_rows_cannot_predict(cells):
    features, tables = cells
    same = dimension_prediction(features, tables["real"], tables["real"], tables["test"])
    by_name = {point.column: point for point in same}
    assert by_name["age"].predictable and by_name["job"].predictable
    assert not by_name["since"].predictable  # drawn independently of the rest
    assert not by_name["same"].predictable and by_name["same"].real is None
    assert prediction_gap(same) == 0
    shuffle = dimension_prediction(features, tables["real"], tables["shuffled"], tables["test"])
    assert prediction_gap(shuffle) > 0.3
    assert prediction_gap(shuffle, every=True) < prediction_gap(shuffle)


def point(real, synthetic, predictable=True):
    return PredictionPoint(
        column="x",
        metric="R²",
        real=real,
        synthetic=synthetic,
        baseline=0,
        predictable=predictable,
    )


def test_gap_by_hand():
    points = [point(0.5, 0.3), point(0.2, 0.6), point(0.0, 0.3, False), point(None, None, False)]
    assert prediction_gap(points) == pytest.approx((0.2 + 0.4) / 2)
    assert prediction_gap(points, every=True) == pytest.approx((0.2 + 0.4 + 0.3) / 3)
    assert prediction_gap([]) is None


def test_majority_baseline_is_what_f1_gives_it():
    y = np.array([0] * 6 + [1] * 3 + [2])
    guess = np.zeros(10, dtype=int)
    assert _majority(y) == pytest.approx(f1_score(y, guess, average="weighted"))
