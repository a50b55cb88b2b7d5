"""Learning from one table and testing on another."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from core.quality.aligned_tables import Features
from core.quality.metrics.estimators import (
    LOGISTIC,
    auroc,
    classifiers,
    fit,
    logistic,
    ten_classifiers,
    weighted_f1,
)
from core.quality.metrics.prediction import _majority, dimension_prediction, prediction_gap
from core.quality.metrics.train_synthetic_test_real import (
    Task,
    evaluate,
    half_widths,
    mean_score,
    predict,
    tstr,
    utility_rows,
)
from core.quality.report.types import PredictionPoint
from tests.quality.conftest import make

pytestmark = pytest.mark.slow


class Fixed:
    """A "model" whose one input is the probability of class 1."""

    classes_ = np.array([0, 1])

    def predict_proba(self, x):
        return np.column_stack([1 - x[:, 0], x[:, 0]])

    def predict(self, x):
        return (x[:, 0] > 0.5).astype(int)


def judged(x, y):
    return evaluate(Fixed(), x, y).scores()


def test_auroc_by_counting_pairs():
    x = np.array([[0.9], [0.8], [0.3], [0.2], [0.1]])
    y = np.array([1, 0, 1, 0, 0])
    # Rarer class 1 at .9 and .3 against .8, .2, .1: 3 + 2 of 6 pairs in order.
    assert judged(x, y)["AUROC"] == pytest.approx(5 / 6)
    # Precision 1/1 at the first hit, 2/3 at the second, recall ½ each.
    assert judged(x, y)["AUPRC"] == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)


def test_the_rarer_class_is_positive_even_when_it_is_class_0():
    x = np.array([[0.1], [0.8], [0.9]])
    y = np.array([0, 1, 1])
    assert judged(x, y)["AUROC"] == 1
    assert judged(x, y)["AUPRC"] == 1


def test_a_class_never_seen_scores_zero_and_several_are_weighted():
    x = np.array([[1.0], [1.0], [0.0], [0.5]])
    y = np.array([1, 1, 0, 2])
    # One-vs-rest: class 1 perfect (1), class 0 perfect (1), class 2 unseen, constant 0 (½).
    assert judged(x, y)["AUROC"] == pytest.approx((2 * 1 + 1 * 1 + 1 * 0.5) / 4)


@pytest.fixture(scope="module")
def cells(schema, tables):
    names = ("real", "test", "fresh", "shuffled", "collapsed")
    features, read = Features.fit(schema, *(tables[name] for name in names))
    return features, dict(zip(names, read, strict=True))


def test_the_protocol_has_four_classifiers():
    four = classifiers()
    assert len(four) == 4
    boosting = four["Gradient boosting"].get_params()
    published = {"max_features": "sqrt", "max_depth": 8, "min_samples_leaf": 50}
    assert published.items() <= boosting.items()
    assert boosting["min_samples_split"] == 200


def test_tstr_ranks_tables(cells):
    features, tables = cells
    task = Task(features, "rich")
    scores = {name: tstr(task, tables[name], tables["test"]) for name in tables if name != "test"}
    area = {name: mean_score(one, "AUROC") for name, one in scores.items()}
    assert area["real"] > 0.9
    assert area["fresh"] == pytest.approx(area["real"], abs=0.03)
    assert area["shuffled"] < 0.65
    assert area["collapsed"] == 0.5  # one class teaches nothing
    rows = utility_rows(
        task, real=scores["real"], synthetic=scores["shuffled"], test=tables["test"]
    )
    assert len(rows) == 12
    share = (np.bincount(tables["test"].values["rich"]) / 600).min()
    base = {row.metric: row.baseline for row in rows}
    expected = {"AUROC": 0.5, "AUPRC": share, "Accuracy": 1 - share}
    assert base == pytest.approx(expected)


def test_only_names_the_models_wanted(cells):
    features, tables = cells
    models = {LOGISTIC: logistic()}
    scores = tstr(Task(features, "rich"), tables["real"], tables["test"], models=models)
    assert list(scores) == [LOGISTIC]


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


def test_ten_classifiers_learn_nothing_from_shuffled_rows(cells):
    features, tables = cells
    task = Task(features, "rich")
    assert len(ten_classifiers()) == 10 and "Histogram boosting" not in ten_classifiers()

    def mean_auroc(train, test):
        return mean_score(tstr(task, train, test, models=ten_classifiers()), "AUROC")

    assert mean_auroc(tables["real"], tables["test"]) > 0.85
    assert abs(mean_auroc(tables["shuffled"], tables["test"]) - 0.5) < 0.1
    none = tables["test"].take(np.array([], dtype=int))
    assert mean_auroc(tables["real"], none) is None


def test_the_band_of_a_score_covers_what_other_test_rows_say(schema):
    train, pool = make(800, 50), make(12_000, 51)
    features, (learn, tests) = Features.fit(schema, train, pool)
    task, areas = Task(features, "rich"), []
    band = None
    for start in range(0, 12_000, 600):
        test = tests.take(np.arange(start, start + 600))
        predictions = predict(task, learn, test, models={LOGISTIC: logistic()})
        areas.append(predictions[LOGISTIC].scores()["AUROC"])
        band = band or half_widths(predictions)["AUROC"]
    # The spread over twenty fresh sets of test rows is what the band claims to know from one.
    assert 0.5 < band / (1.96 * np.std(areas, ddof=1)) < 2.0


def test_interval_is_of_one_class_where_two_are_as_frequent():
    rng, y = np.random.default_rng(4), np.arange(1_999) % 2
    sure = (y == 1) & (rng.random(len(y)) < 0.5)  # found without fail, so AUPRC is that class's own
    x = np.where(sure, 1.0, 0.9 * rng.random(len(y)))[:, None]
    predictions = evaluate(Fixed(), x, y)
    of_zero = replace(predictions, positive=0).scores()["AUPRC"]
    assert predictions.positive == 1 and predictions.scores()["AUPRC"] > of_zero + 0.05
    area = predictions.scores()["AUPRC"]
    eighths = [predictions.take(rows) for rows in np.array_split(np.arange(1_999), 8)]
    apart = np.std([one.scores()["AUPRC"] for one in eighths], ddof=1) / np.sqrt(8)
    band = half_widths({"one": predictions})["AUPRC"]
    assert 0.4 < band / (1.96 * apart) < 2.0 and band < (area - of_zero) / 2


def test_dimension_prediction_drops_unpredictable_columns(cells):
    _, tables = cells
    same = dimension_prediction(tables["real"], tables["real"], tables["test"])
    by_name = {point.column: point for point in same}
    assert by_name["age"].predictable and by_name["job"].predictable
    assert not by_name["since"].predictable  # drawn independently of the rest
    assert not by_name["same"].predictable and by_name["same"].real is None
    assert prediction_gap(same) == 0
    shuffle = dimension_prediction(tables["real"], tables["shuffled"], tables["test"])
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


def test_the_measure_follows_the_kind_of_column(cells):
    features, tables = cells
    points = dimension_prediction(tables["real"], tables["fresh"], tables["test"])
    by_name = {point.column: point for point in points}
    kinds = {name: by_name[name].metric for name in ("rich", "job", "age")}
    assert kinds == {"rich": "AUROC", "job": "F1", "age": "R²"}
    rich = by_name["rich"]
    assert rich.baseline == 0.5 and rich.real > 0.85
    assert 0 < rich.half_width < 0.1
    # a second sample of the same people is as good a teacher, as far as the band can tell
    assert abs(rich.real - rich.synthetic) < 3 * rich.half_width
    task = Task(features, "rich")
    models = {LOGISTIC: logistic()}
    logistic_alone = tstr(task, tables["real"], tables["test"], models=models)
    assert rich.real == pytest.approx(logistic_alone[LOGISTIC]["AUROC"])


def test_majority_baseline_is_what_f1_gives_it():
    y = np.array([0] * 6 + [1] * 3 + [2])
    guess = np.zeros(10, dtype=int)
    assert _majority(y) == pytest.approx(f1_score(y, guess, average="weighted"))


def test_areas_and_f1_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(3)
    truth, score = random.random(500) < 0.2, random.integers(0, 30, 500) / 30.0
    assert auroc(truth, score) == pytest.approx(roc_auc_score(truth, score), abs=1e-12)
    classes, said = random.integers(0, 5, 500), random.integers(1, 7, 500)
    expected = f1_score(classes, said, average="weighted")
    assert weighted_f1(classes, said) == pytest.approx(expected, abs=1e-12)
