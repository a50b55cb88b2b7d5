"""Dimension-wise prediction: each column predicted from the others, on real test rows.

A model trained on the real table and one trained on the synthetic one predict the same rows.
Columns that even the real-trained model cannot predict are left out of the gap.

Columns of two labels are predicted by logistic regression and judged by AUROC, where guessing
scores ½; longer lists by F1 averaged over labels by frequency, where guessing names the commonest.
Numbers are predicted by boosted trees and judged by R²; guessing the mean scores 0. Source: Choi et
al. 2017; extended to mixed types in DP-auto-GAN (ICLR 2020 submission) §5.2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from core.message import Message
from core.quality.aligned_tables import HOT_LABELS, AlignedTable
from core.quality.comparison import Comparison, half_width_of
from core.quality.metrics.estimators import (
    Estimator,
    fit,
    logistic,
    side_by_side,
    weighted_f1,
)
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.metrics.train_synthetic_test_real import Predictions, Task, evaluate
from core.quality.report.types import PredictionPoint

Floats = NDArray[np.floating]
Values = NDArray[np.generic]
TRAIN_ROWS = 8_000
TEST_ROWS = 8_000
RESAMPLES = 20
BELOW_ALL = -1e18  # stands for a missing number, since no column may have only missing ones
RESAMPLED_ROWS = 2_000
# A real-trained score this little above guessing counts as "not predictable". R² starts at 0, F1 at
# what the commonest label scores, often near 1: there a small gain is already much of what is left.
MARGINS = {"R²": 0.05, "AUROC": 0.05, "F1": 0.02}

PREDICTION_GAP = Metric(
    key="prediction_gap",
    title="Predicting each column: gap",
    goal="lower",
    meaning="Each column is predicted from the others in real rows, after training on real and on "
    "synthetic rows: the average difference between the two scores.",
    source="Dimension-wise prediction, DP-auto-GAN (ICLR 2020 submission) §5.2; AUROC for two "
    "labels, F1 for longer lists, R² for numbers",
)


def dimension_prediction(
    real: AlignedTable,
    synthetic: AlignedTable,
    test: AlignedTable,
    *,
    seed: int = 0,
    on_progress: Callable[[float], None] | None = None,
) -> list[PredictionPoint]:
    """One point per column; scores in [0, 1], a worse-than-guessing R² counts as 0."""
    rng = np.random.default_rng(seed)
    real, synthetic = real.sample(TRAIN_ROWS, rng), synthetic.sample(TRAIN_ROWS, rng)
    test = test.sample(TEST_ROWS, rng)
    points, names = [], real.features.names
    tasks = [Task(real.features, name) for name in names]
    for point in side_by_side(lambda task: _point(task, real, synthetic, test, seed), tasks):
        points.append(point)
        if on_progress is not None:
            on_progress(len(points) / len(names))
    return points


def prediction_gap(points: list[PredictionPoint], *, every: bool = False) -> float | None:
    """Mean absolute difference of two scores; of every column, or of predictable ones alone."""
    gaps = [
        abs(point.real - point.synthetic)
        for point in points
        if (point.predictable or every) and point.real is not None and point.synthetic is not None
    ]
    return float(np.mean(gaps)) if gaps else None


@family(PREDICTION_GAP, text="Predicting each column from the others", order=150, cost=4.0)
def column_predictions(tables: Comparison, step: Step) -> Measured:
    """Each column predicted from the others."""
    points = dimension_prediction(
        tables.train,
        tables.synthetic,
        tables.test,
        seed=tables.seed,
        on_progress=lambda done: step(Message("Predicting each column from the others"), done),
    )
    gap = prediction_gap(points)
    note = (
        Message("No column can be predicted from the others, even after training on real rows.")
        if gap is None
        else ""
    )
    return Measured([PREDICTION_GAP.score(gap, note=note)], {"dimension_prediction": points})


def _point(
    task: Task, real: AlignedTable, synthetic: AlignedTable, test: AlignedTable, seed: int
) -> PredictionPoint:
    x_test, y_test = _data(task, test)
    classes = len(np.unique(y_test))
    metric = "R²" if task.numeric else "AUROC" if classes == 2 else "F1"
    scores: list[float | None] = [None, None]
    baseline, note = (
        0.0,
        Message("All real test rows have the same value here, so nothing can be measured."),
    )
    band = None
    if classes > 1:
        predicted = [
            evaluate(_fitted(task, train, seed), x_test, y_test, numeric=task.numeric)
            for train in (real, synthetic)
        ]
        scores = [_score(metric, one) for one in predicted]
        band = _half_width(metric, predicted, seed)
        baseline = {"R²": 0.0, "AUROC": 0.5}.get(metric, _majority(y_test))
        note = Message("Not even real rows predict this column, so it is left out of the gap.")
        if scores[0] is not None and scores[0] >= baseline + MARGINS[metric]:
            note = Message("")
    return PredictionPoint(
        column=task.target,
        metric=metric,
        real=scores[0],
        synthetic=scores[1],
        baseline=baseline,
        predictable=not note,
        half_width=band,
        note=note,
    )


def _data(task: Task, table: AlignedTable) -> tuple[Floats, Values]:
    """Predictors [n, ·] and target [n]; trees take codes of labels, at a third of the cost."""
    if not task.numeric or len(task.features) < 2:
        return task.data(table)
    values = table.take(np.flatnonzero(~table.missing(task.target))).values
    others = [one for one in task.features.items if one.name != task.target]
    most = [np.inf if one.numeric else HOT_LABELS for one in others]
    columns = [np.minimum(values[one.name], high) for one, high in zip(others, most, strict=True)]
    x = np.nan_to_num(np.stack(columns, axis=1).astype(np.float64), nan=BELOW_ALL)
    return x, values[task.target]


def _fitted(task: Task, train: AlignedTable, seed: int) -> Estimator:
    model: Estimator = logistic(seed)
    if task.numeric:
        lists = [not one.numeric for one in task.features.items if one.name != task.target]
        model = HistGradientBoostingRegressor(
            max_iter=60, random_state=seed, categorical_features=lists or None
        )
    return fit(model, *_data(task, train), numeric=task.numeric)


def _score(metric: str, one: Predictions) -> float:
    if metric == "F1":
        return weighted_f1(one.truth.astype(np.int64), one.predicted.astype(np.int64))
    return one.scores()[metric]


def _half_width(metric: str, predicted: list[Predictions], seed: int) -> float:
    """Of a 95 % interval of the difference of the two scores, by bootstrap of the test rows."""
    n, rng = len(predicted[0].truth), np.random.default_rng(seed)
    size = min(n, RESAMPLED_ROWS)
    gaps = []
    for _ in range(RESAMPLES):
        rows = rng.integers(n, size=size)
        if len(np.unique(predicted[0].truth[rows])) > 1:
            a, b = (_score(metric, one.take(rows)) for one in predicted)
            gaps.append(a - b)
    return half_width_of(gaps, size / n)


def _majority(y: Values) -> float:
    """Weighted F1 of always naming the commonest label, of share p: p · 2p / (1 + p)."""
    p = float(np.unique(y, return_counts=True)[1].max() / len(y))
    return p * 2 * p / (1 + p)
