"""Dimension-wise prediction: each column predicted from the others, on real test rows.

A model trained on the real table and one trained on the synthetic table predict the same real rows.
Where the synthetic table kept the dependences between columns, both score alike. Columns that even
the real-trained model cannot predict say nothing and are left out of the gap.
Source: Choi et al. 2017; extended to mixed types in DP-auto-GAN (ICLR 2020 submission) §4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.metrics import r2_score

from core.quality.prepare import Cells, Features, sample_rows
from core.quality.types import PredictionPoint
from core.quality.utility import Learner, Task, auroc, fit

__all__ = ["dimension_prediction", "prediction_gap"]

TRAIN_ROWS = 8_000
TEST_ROWS = 8_000
MARGIN = 0.05  # a real-trained score this little above guessing counts as "not predictable"


def dimension_prediction(
    features: Features,
    real: Cells,
    synthetic: Cells,
    test: Cells,
    *,
    seed: int = 0,
    observe: Callable[[float], None] | None = None,
) -> list[PredictionPoint]:
    """One point per column; scores in [0, 1], a worse-than-guessing R² counts as 0.

    Args:
      features: all columns; each is predicted from the others.
      real: rows to learn from, subsampled to 8,000.
      synthetic: the same.
      test: real rows to predict, none of them in `real`.
      seed: of subsamples and forests.
      observe: told the fraction done.
    """
    rng = np.random.default_rng(seed)
    real = real.take(sample_rows(real.n, TRAIN_ROWS, rng))
    synthetic = synthetic.take(sample_rows(synthetic.n, TRAIN_ROWS, rng))
    test = test.take(sample_rows(test.n, TEST_ROWS, rng))
    points = []
    for done, name in enumerate(features.names):
        points.append(_point(Task(features, name), real, synthetic, test, seed))
        if observe is not None:
            observe((done + 1) / len(features))
    return points


def prediction_gap(points: list[PredictionPoint]) -> float | None:
    """Mean absolute difference of the two scores over predictable columns; None without any."""
    gaps = [
        abs(point.real - point.synthetic)
        for point in points
        if point.predictable and point.real is not None and point.synthetic is not None
    ]
    return float(np.mean(gaps)) if gaps else None


def _point(task: Task, real: Cells, synthetic: Cells, test: Cells, seed: int) -> PredictionPoint:
    metric, baseline = ("R²", 0.0) if task.numeric else ("AUROC", 0.5)
    values = [_trained(task, train, test, seed) for train in (real, synthetic)]
    note = ""
    if values[0] is None:
        note = "The real test rows hold one value here, so nothing can be measured."
    elif values[0] < baseline + MARGIN:
        note = "Even the real table does not predict this column; left out of the gap."
    return PredictionPoint(
        column=task.target,
        metric=metric,
        real=values[0],
        synthetic=values[1],
        baseline=baseline,
        predictable=not note,
        note=note,
    )


def _trained(task: Task, train: Cells, test: Cells, seed: int) -> float | None:
    x_test, y_test = task.data(test)
    if len(np.unique(y_test)) < 2:
        return None
    model: Learner
    if task.numeric:
        model = HistGradientBoostingRegressor(max_iter=60, random_state=seed)
    else:
        model = RandomForestClassifier(
            n_estimators=60, min_samples_leaf=5, random_state=seed, n_jobs=1
        )
    fitted = fit(model, *task.data(train), numeric=task.numeric)
    if task.numeric:
        return max(0.0, float(r2_score(y_test, fitted.predict(x_test))))
    return auroc(fitted, x_test, y_test)
