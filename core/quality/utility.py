"""Train on synthetic, test on real: does a model learnt from the synthetic table work?

Four classifiers as in P3GM (ICDE 2021) §VI, histogram boosting standing in for XGBoost. The rarer
class is the positive one. A numeric target is predicted by regression and judged by R²; worse than
guessing the mean counts as 0. A synthetic table with one class teaches nothing and scores as
guessing does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from core.quality.prepare import HOT_LABELS, Cells, Features
from core.quality.types import UtilityRow

__all__ = ["LOGISTIC", "Task", "classifiers", "logistic", "pmse", "tstr", "utility_rows"]

Floats = NDArray[np.float64]
LOGISTIC = "Logistic regression"
BOOSTED_CLASSES = 10  # gradient boosters grow a tree per class and round: minutes beyond this


class Learner(Protocol):
    """What scikit-learn's estimators share."""

    classes_: NDArray[np.generic]

    def fit(self, x: Floats, y: NDArray[np.generic]) -> Learner: ...  # noqa: D102
    def predict(self, x: Floats) -> Floats: ...  # noqa: D102
    def predict_proba(self, x: Floats) -> Floats: ...  # noqa: D102


@dataclass(frozen=True)
class Task:
    """Predict one column from the others.

    Attributes:
      features: all columns; `target` names the one to predict.
    """

    features: Features
    target: str

    @property
    def numeric(self) -> bool:
        """Whether the target is a number (R²) rather than a label (AUROC)."""
        return self.features[self.target].numeric

    def data(self, cells: Cells) -> tuple[Floats, NDArray[np.generic]]:
        """Encoded predictors [n, width] and target [n] of the rows whose target is present."""
        rows = np.flatnonzero(~cells.missing(self.target))
        kept = cells.take(rows)
        y = kept.values[self.target]
        if not self.numeric:
            y = np.minimum(y.astype(np.int64), HOT_LABELS)  # rarer labels count as one class
        x = self.features.without(self.target).encode(kept)
        # A table of one column leaves nothing to learn from; a constant teaches just that.
        return x if x.shape[1] else np.zeros((kept.n, 1)), y


def logistic(seed: int = 0) -> Learner:
    """Logistic regression on standardised coordinates."""
    # Scaled inputs converge in well under 1,000 steps; without scaling lbfgs stops early.
    return make_pipeline(  # type: ignore[no-any-return]
        StandardScaler(), LogisticRegression(max_iter=2000, random_state=seed)
    )


def classifiers(seed: int = 0) -> dict[str, Learner]:
    """The four classifiers of the protocol, unfitted.

    Source: P3GM (ICDE 2021) §VI for kinds and settings.
    """
    return {
        LOGISTIC: logistic(seed),
        "AdaBoost": AdaBoostClassifier(random_state=seed),
        "Gradient boosting": GradientBoostingClassifier(
            max_features="sqrt",
            max_depth=8,
            min_samples_leaf=50,
            min_samples_split=200,
            random_state=seed,
        ),
        "Histogram boosting": HistGradientBoostingClassifier(random_state=seed),
    }


def regressors(seed: int = 0) -> dict[str, Learner]:
    """Regressors for a numeric target, unfitted."""
    return {
        "Ridge regression": make_pipeline(StandardScaler(), Ridge()),
        "Histogram boosting": HistGradientBoostingRegressor(random_state=seed),
    }


def fit(model: Learner, x: Floats, y: NDArray[np.generic], *, numeric: bool = False) -> Learner:
    """The model fitted, or a constant guess where fewer than two values teach nothing.

    Classes with a single row are left out while two others remain.
    """
    if len(y) == 0:
        x, y = np.zeros((1, x.shape[1])), np.zeros(1, dtype=y.dtype)
    if not numeric and len(y) > 1:
        # A class with a single row cannot be stratified by the boosters' early stopping.
        _, place, counts = np.unique(y, return_inverse=True, return_counts=True)
        if (counts >= 2).sum() >= 2:
            kept = counts[place] >= 2
            x, y = x[kept], y[kept]
    if len(np.unique(y)) < 2:
        model = DummyRegressor() if numeric else DummyClassifier(strategy="prior")
    return model.fit(x, y)


def positive_class(y: NDArray[np.generic]) -> int:
    """The rarer of the classes present; the first in code order on a tie."""
    labels, counts = np.unique(y, return_counts=True)
    return int(labels[counts.argmin()])


def class_scores(model: Learner, x: Floats) -> Callable[[int], Floats]:
    """Predict once; then the probability [n] of any class, 0 for one the model never saw."""
    p = model.predict_proba(x)  # [n, classes seen]
    place = {int(label): i for i, label in enumerate(model.classes_)}
    return lambda label: p[:, place[label]] if label in place else np.zeros(len(x))


def auroc(model: Learner, x: Floats, y: NDArray[np.generic]) -> float | None:
    """Area under the ROC curve: of the rarer class of two, else one-vs-rest weighted by class size.

    None when the test rows hold one class only.
    """
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) < 2:
        return None
    score = class_scores(model, x)
    if len(labels) == 2:
        rare = positive_class(y)
        return float(roc_auc_score(y == rare, score(rare)))
    areas = [roc_auc_score(y == label, score(int(label))) for label in labels]
    return float(np.average(areas, weights=counts))


def auprc(model: Learner, x: Floats, y: NDArray[np.generic]) -> float | None:
    """Average precision for the rarest class; None when the test rows hold one class only."""
    if len(np.unique(y)) < 2:
        return None
    rare = positive_class(y)
    return float(average_precision_score(y == rare, class_scores(model, x)(rare)))


def tstr(
    task: Task,
    train: Cells,
    test: Cells,
    *,
    only: tuple[str, ...] | None = None,
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """Scores on real test rows of models trained on `train`, by model, then by metric.

    Args:
      task: what to predict from what.
      train: rows to learn from.
      test: real rows to predict.
      only: names of the models to use, all by default.
      seed: of the models that draw at random.

    Returns:
      {"Logistic regression": {"AUROC": …, "AUPRC": …, "Accuracy": …}, …}, or
      {"Ridge regression": {"R²": …}, …};
      empty when the test rows cannot tell models apart (one class, or fewer than two rows).
    """
    x, y = task.data(train)
    x_test, y_test = task.data(test)
    if len(np.unique(y_test)) < 2:
        return {}
    models = regressors(seed) if task.numeric else classifiers(seed)
    if not task.numeric and len(np.unique(y)) > BOOSTED_CLASSES:
        models = {name: models[name] for name in (LOGISTIC, "AdaBoost")}
    with one_thread():
        return {
            name: _scores(fit(model, x, y, numeric=task.numeric), x_test, y_test, task)
            for name, model in models.items()
            if only is None or name in only
        }


def _scores(fitted: Learner, x: Floats, y: NDArray[np.generic], task: Task) -> dict[str, float]:
    if task.numeric:
        return {"R²": max(0.0, float(r2_score(y, fitted.predict(x))))}
    area, precision = auroc(fitted, x, y), auprc(fitted, x, y)
    assert area is not None and precision is not None  # the caller checked for two classes
    right = float((np.asarray(fitted.predict(x)) == y).mean())
    return {"AUROC": area, "AUPRC": precision, "Accuracy": right}


def one_thread() -> AbstractContextManager[object]:
    """Learn on one thread within the block.

    On tables of this size a second thread gains little, and when other processes keep the cores
    busy, threads that wait for each other make boosting more than ten times slower.
    """
    limits: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limits


def utility_rows(
    task: Task,
    *,
    real: dict[str, dict[str, float]],
    synthetic: dict[str, dict[str, float]],
    test: Cells,
) -> list[UtilityRow]:
    """Real-trained and synthetic-trained scores side by side, with what guessing scores."""
    _, y = task.data(test)
    base = {"R²": 0.0, "AUROC": 0.5}
    if not task.numeric and len(y):
        base["AUPRC"] = float((y == positive_class(y)).mean())
        base["Accuracy"] = float(np.unique(y, return_counts=True)[1].max() / len(y))
    return [
        UtilityRow(
            model=model,
            metric=metric,
            real=value,
            synthetic=synthetic[model][metric],
            baseline=base[metric],
        )
        for model, metrics in real.items()
        for metric, value in metrics.items()
    ]


def mean_score(scores: dict[str, dict[str, float]], metric: str) -> float | None:
    """Mean of one metric over the models that report it; None when none does."""
    found = [metrics[metric] for metrics in scores.values() if metric in metrics]
    return float(np.mean(found)) if found else None


def pmse(features: Features, real: Cells, synthetic: Cells) -> tuple[float, float]:
    """Propensity mean squared error and the AUROC of telling the two tables apart.

    A logistic regression predicts which table a row is from; pMSE = mean((p − c)²), c the
    synthetic share of rows. 0 is indistinguishable, c(1 − c) fully distinguishable. Being linear,
    it cannot see a column shuffle.
    Source: Snoke et al. 2018, "General and specific utility measures for synthetic data".
    """
    x = np.concatenate([features.encode(real), features.encode(synthetic)])
    y = np.repeat([0, 1], [real.n, synthetic.n])
    if len(np.unique(y)) < 2:
        return 0.0, 0.5
    with one_thread():
        p = class_scores(fit(logistic(), x, y), x)(1)
    return float(np.mean((p - y.mean()) ** 2)), float(roc_auc_score(y, p))
