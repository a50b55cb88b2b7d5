"""Train on synthetic, test on real: does a model learnt from the synthetic table work?

Four classifiers as in P3GM (ICDE 2021) §VI, histogram boosting standing in for XGBoost. The rarer
class is the positive one. A numeric target is predicted by regression and judged by R²; worse than
guessing the mean counts as 0. A synthetic table with one class teaches nothing and scores as
guessing does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, r2_score, roc_auc_score

from core.quality.aligned_tables import HOT_LABELS, Cells, Features
from core.quality.metrics.learners import (
    LOGISTIC,
    Learner,
    class_scores,
    classifiers,
    fit,
    more_classifiers,
    one_thread,
    positive_class,
    regressors,
)
from core.quality.report.types import UtilityRow

__all__ = [
    "Answers",
    "Task",
    "answers",
    "ask",
    "half_width",
    "mean_score",
    "scores_of",
    "ten_auroc",
    "tstr",
    "utility_rows",
]

Floats = NDArray[np.float64]
Scores = dict[str, dict[str, float]]
BOOSTED_CLASSES = 10  # gradient boosters grow a tree per class and round: minutes beyond this
FOUR_OF_TEN = (LOGISTIC, "AdaBoost", "Gradient boosting")  # of the four, those among the ten
RESAMPLES = 60
RESAMPLED_ROWS = 4_000


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


@dataclass(frozen=True)
class Answers:
    """What one fitted model says of the real test rows.

    Attributes:
      truth: the target [n].
      guess: the predicted target [n].
      support: how much speaks for each class present in `truth`, [n, classes]; empty for numbers.
    """

    truth: NDArray[np.generic]
    guess: NDArray[np.generic]
    support: Floats

    def take(self, rows: NDArray[np.int64]) -> Answers:
        """The answers on these rows; the columns of `support` stay those of all rows."""
        return Answers(self.truth[rows], self.guess[rows], self.support[rows])

    def scores(self, labels: NDArray[np.generic]) -> dict[str, float]:
        """R² for numbers, else AUROC, AUPRC and accuracy.

        Args:
          labels: the classes in `support`; at least two of them stand in `truth`.
        """
        if not len(labels):
            return {"R²": max(0.0, float(r2_score(self.truth, self.guess)))}
        found, counts = np.unique(self.truth, return_counts=True)
        rare = positive_class(self.truth)
        column = {label: self.support[:, i] for i, label in enumerate(labels.tolist())}
        if len(found) == 2:
            area = float(roc_auc_score(self.truth == rare, column[rare]))
        else:
            areas = [roc_auc_score(self.truth == one, column[one]) for one in found.tolist()]
            area = float(np.average(areas, weights=counts))
        return {
            "AUROC": area,
            "AUPRC": float(average_precision_score(self.truth == rare, column[rare])),
            "Accuracy": float((self.guess == self.truth).mean()),
        }


def answers(
    task: Task,
    train: Cells,
    test: Cells,
    *,
    only: tuple[str, ...] | None = None,
    ten: bool = False,
    seed: int = 0,
) -> dict[str, Answers]:
    """What models trained on `train` say of real test rows, by the model's name.

    Args:
      task: what to predict from what.
      train: rows to learn from.
      test: real rows to predict.
      only: names of the models to use, all by default.
      ten: the further seven kinds that complete the ten, instead of the four.
      seed: of the models that draw at random.

    Returns:
      Nothing when the test rows cannot tell models apart (one class, or fewer than two rows).
    """
    x, y = task.data(train)
    x_test, y_test = task.data(test)
    labels = np.unique(y_test)
    if len(labels) < 2:
        return {}
    if task.numeric:
        models = regressors(seed)
        labels = labels[:0]
    else:
        models = more_classifiers(seed) if ten else classifiers(seed)
        if not ten and len(np.unique(y)) > BOOSTED_CLASSES:
            models = {name: models[name] for name in (LOGISTIC, "AdaBoost")}
    found = {}
    with one_thread():
        for name, model in models.items():
            if only is not None and name not in only:
                continue
            fitted = fit(model, x, y, numeric=task.numeric)
            found[name] = ask(fitted, x_test, y_test, labels)
    return found


def ask(model: Learner, x: Floats, y: NDArray[np.generic], labels: NDArray[np.generic]) -> Answers:
    """What a fitted model says of the rows x [n, width] whose target is y [n].

    Args:
      model: fitted.
      x, y: the test rows.
      labels: the classes in y, ascending; empty for a number.
    """
    support = np.zeros((len(y), 0))
    if len(labels):
        score = class_scores(model, x)
        support = np.stack([score(int(one)) for one in labels.tolist()], axis=1)
    return Answers(y, np.asarray(model.predict(x)), support)


def ten_auroc(task: Task, train: Cells, test: Cells, *, seed: int = 0) -> float | None:
    """Mean AUROC of ten kinds of classifiers; None where the test rows hold one class."""
    scores = {
        **tstr(task, train, test, only=FOUR_OF_TEN, seed=seed),
        **scores_of(task, answers(task, train, test, ten=True, seed=seed)),
    }
    return mean_score(scores, "AUROC")


def tstr(
    task: Task,
    train: Cells,
    test: Cells,
    *,
    only: tuple[str, ...] | None = None,
    seed: int = 0,
) -> Scores:
    """Scores on real test rows of models trained on `train`, by model, then by metric.

    Returns:
      {"Logistic regression": {"AUROC": …, "AUPRC": …, "Accuracy": …}, …}, or
      {"Ridge regression": {"R²": …}, …}; empty as for `answers`, which see.
    """
    return scores_of(task, answers(task, train, test, only=only, seed=seed))


def scores_of(task: Task, found: Mapping[str, Answers]) -> Scores:
    """Every model's scores."""
    return {name: one.scores(_labels(task, one)) for name, one in found.items()}


def half_width(task: Task, found: Mapping[str, Answers], metric: str, *, seed: int = 0) -> float:
    """Half the width of a 95 % interval of the mean score over models, in the metric's unit.

    By bootstrap: the test rows are drawn anew with replacement, the same for every model. What the
    choice of training rows adds is not in it.
    Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993 (standard error).
    """
    if not found:
        return 0.0
    n = len(next(iter(found.values())).truth)
    size, rng = min(n, RESAMPLED_ROWS), np.random.default_rng(seed)
    means = []
    for _ in range(RESAMPLES):
        rows = rng.integers(n, size=size)
        drawn = [one.take(rows) for one in found.values()]
        if len(np.unique(drawn[0].truth)) < 2:
            continue  # a draw without the rarer class has no score
        means.append(
            np.mean(
                [
                    one.scores(_labels(task, all_)).get(metric, np.nan)
                    for one, all_ in zip(drawn, found.values(), strict=True)
                ]
            )
        )
    if len(means) < 2:
        return 0.0
    # Fewer rows were drawn than there are: errors shrink with the root of their number.
    return float(1.96 * np.std(means, ddof=1) * np.sqrt(size / n))


def _labels(task: Task, one: Answers) -> NDArray[np.generic]:
    return one.truth[:0] if task.numeric else np.unique(one.truth)


def utility_rows(
    task: Task,
    *,
    real: Scores,
    synthetic: Scores,
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


def mean_score(scores: Scores, metric: str) -> float | None:
    """Mean of one metric over the models that report it; None when none does."""
    found = [metrics[metric] for metrics in scores.values() if metric in metrics]
    return float(np.mean(found)) if found else None
