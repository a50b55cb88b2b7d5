"""Classifiers and regressors of scikit-learn by name, unfitted, and how they are fitted.

Four classifiers as in P3GM (ICDE 2021) §VI, histogram boosting standing in for XGBoost; ten kinds
as in PEARL (ICLR 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from core.message import Message

Floats = NDArray[np.floating]
Given = TypeVar("Given")
Made = TypeVar("Made")
LOGISTIC = "Logistic regression"


class Estimator(Protocol):
    """What scikit-learn's estimators share."""

    classes_: NDArray[np.generic]

    def fit(self, x: Floats, y: NDArray[np.generic]) -> Estimator: ...  # noqa: D102
    def predict(self, x: Floats) -> Floats: ...  # noqa: D102
    def predict_proba(self, x: Floats) -> Floats: ...  # noqa: D102
    def decision_function(self, x: Floats) -> Floats: ...  # noqa: D102


def logistic(seed: int = 0) -> Estimator:
    """Logistic regression on standardised coordinates."""
    # Scaled inputs converge in well under 1,000 steps; without scaling lbfgs stops early.
    return make_pipeline(  # type: ignore[no-any-return]
        StandardScaler(), LogisticRegression(max_iter=2000, random_state=seed)
    )


def classifiers(seed: int = 0) -> dict[str, Estimator]:
    """The four classifiers of the protocol, unfitted."""
    return {
        LOGISTIC: logistic(seed),
        "AdaBoost": AdaBoostClassifier(random_state=seed),
        Message("Gradient boosting"): GradientBoostingClassifier(
            max_features="sqrt",
            max_depth=8,
            min_samples_leaf=50,
            min_samples_split=200,
            random_state=seed,
        ),
        Message("Histogram boosting"): HistGradientBoostingClassifier(random_state=seed),
    }


def ten_classifiers(seed: int = 0) -> dict[str, Estimator]:
    """Ten kinds of classifiers, unfitted: three of the four, and seven more.

    Source: PEARL (ICLR 2022) §6, which does not list them; these are those of its forerunner
    DP-MERF that scikit-learn itself holds.
    """
    four = classifiers(seed)
    return {
        **{name: four[name] for name in (LOGISTIC, "AdaBoost", Message("Gradient boosting"))},
        Message("Gaussian naive Bayes"): GaussianNB(),
        Message("Bernoulli naive Bayes"): BernoulliNB(),
        Message("Linear support vectors"): make_pipeline(
            StandardScaler(), SGDClassifier(loss="hinge", alpha=1e-3, random_state=seed)
        ),
        Message("Decision tree"): DecisionTreeClassifier(min_samples_leaf=5, random_state=seed),
        Message("Linear discriminant"): LinearDiscriminantAnalysis(solver="lsqr", shrinkage=1e-3),
        Message("Bagged trees"): BaggingClassifier(random_state=seed),
        Message("Random forest"): RandomForestClassifier(min_samples_leaf=2, random_state=seed),
    }


def regressors(seed: int = 0) -> dict[str, Estimator]:
    """Regressors for a numeric target, unfitted."""
    return {
        Message("Ridge regression"): make_pipeline(StandardScaler(), Ridge()),
        Message("Histogram boosting"): HistGradientBoostingRegressor(random_state=seed),
    }


def fit(model: Estimator, x: Floats, y: NDArray[np.generic], *, numeric: bool = False) -> Estimator:
    """The model fitted without classes of one row, or a constant guess where nothing is taught."""
    if len(y) == 0:
        x, y = np.zeros((1, x.shape[1])), np.zeros(1, dtype=y.dtype)
    if not numeric and len(y) > 1:
        # A class with a single row cannot be stratified by the boosters' early stopping.
        _, label_index, counts = np.unique(y, return_inverse=True, return_counts=True)
        if (counts >= 2).sum() >= 2:
            repeated = counts[label_index] >= 2
            x, y = x[repeated], y[repeated]
    if len(np.unique(y)) < 2:
        model = DummyRegressor() if numeric else DummyClassifier(strategy="prior")
    return model.fit(x, y)


def positive_class(y: NDArray[np.generic]) -> int:
    """The rarer of the classes present; the first in code order on a tie."""
    labels, counts = np.unique(y, return_counts=True)
    return int(labels[counts.argmin()])


def class_scores(model: Estimator, x: Floats) -> Callable[[int], Floats]:
    """Predict once; then how much [n], as the model has it, speaks for a class; 0 for unseen."""
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(x)  # [n, classes seen]
    else:
        p = np.asarray(model.decision_function(x), dtype=np.float64)
        p = np.stack([-p, p], axis=1) if p.ndim == 1 else p
    column_of = {int(label): i for i, label in enumerate(model.classes_)}
    return lambda label: p[:, column_of[label]] if label in column_of else np.zeros(len(x))


def auroc(positive: NDArray[np.bool_], score: Floats) -> float:
    """Area under the ROC curve, by ranks [n]; both kinds must be there.

    As in scikit-learn, whose checks take thirty times as long for a few thousand rows.

    Source: Mann and Whitney, "On a test of whether one of two random variables is stochastically
    larger than the other", 1947.
    """
    many = int(positive.sum())
    ahead = rankdata(score)[positive].mean() - (many + 1) / 2.0
    return float(ahead / (len(score) - many))


def weighted_f1(truth: NDArray[np.integer], predicted: NDArray[np.integer]) -> float:
    """Mean F1 over the classes of `truth`, by how many rows each has; codes ≥ 0, [n]."""
    most = int(max(truth.max(), predicted.max())) + 1
    right, true, said = (
        np.bincount(one, minlength=most) for one in (truth[truth == predicted], truth, predicted)
    )
    return float((true * 2.0 * right / np.maximum(true + said, 1)).sum() / len(truth))


def side_by_side(do: Callable[[Given], Made], items: Iterable[Given]) -> Iterator[Made]:
    """What each item gives, in order, two at a time: while they compute, Python is free."""
    with one_thread(), ThreadPoolExecutor(2) as pool:
        yield from pool.map(do, items)


def one_thread() -> AbstractContextManager[object]:
    """Learn on one thread within the block.

    Here a second one gains little, and threads that wait for each other on busy cores make boosting
    more than ten times slower.
    """
    limits: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limits
