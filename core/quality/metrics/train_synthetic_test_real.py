"""Train on synthetic, test on real (TSTR): does a model learnt from the synthetic table work?

Four classifiers as in P3GM (ICDE 2021) §VI; the rarer class is the positive one. A numeric target
is judged by R², at least 0. A synthetic table with one class scores as guessing does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, r2_score

from core.message import Message, to_say
from core.quality.aligned_tables import HOT_LABELS, AlignedTable, Features
from core.quality.comparison import Comparison, half_width_of
from core.quality.metrics.estimators import (
    Estimator,
    auroc,
    class_scores,
    classifiers,
    fit,
    one_thread,
    positive_class,
    regressors,
    side_by_side,
    ten_classifiers,
)
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.report.types import Score, UtilityRow

Floats = NDArray[np.floating]
Values = NDArray[np.generic]
Scores = dict[str, dict[str, float]]

ACCURACY = to_say("Accuracy")
BOOSTED_CLASSES = 10  # gradient boosters grow a tree per class and round: minutes beyond this
BOOSTERS = ("Gradient boosting", "Histogram boosting")
RESAMPLES = 60
RESAMPLED_ROWS = 2_000
ROWS = 20_000  # rows to learn from: with twice as many AUROC moves by less than its error
TEST_ROWS = 20_000
TEN_ROWS = 10_000  # rows that each of ten kinds learns from, and is tested on

AUROC = Metric(
    key="tstr_auroc",
    title="Predicting the target: AUROC",
    goal="higher",
    meaning="Four classifiers are trained on synthetic rows to predict the target, then tested on "
    "real rows: 0.5 is guessing, 1 is perfect.",
    source="Train on synthetic, test on real; P3GM (ICDE 2021) §VI",
)
AUPRC = Metric(
    key="tstr_auprc",
    title="Predicting the target: AUPRC",
    goal="higher",
    meaning="The same classifiers, judged by how precisely they find the rarer class. Guessing "
    "scores that class's share.",
    source="Train on synthetic, test on real; P3GM (ICDE 2021) §VI",
)
R2 = Metric(
    key="tstr_r2",
    title="Predicting the target: R²",
    goal="higher",
    meaning="Regressions are trained on synthetic rows to predict the numeric target, then tested "
    "on real rows: 0 is guessing the mean, 1 is perfect.",
    source="Train on synthetic, test on real",
)
TEN_AUROC = Metric(
    key="tstr_ten",
    title="Predicting the target with ten classifiers: AUROC",
    goal="higher",
    meaning="Ten kinds of classifiers are trained on synthetic rows to predict the target, then "
    "tested on real rows.",
    source="PEARL (ICLR 2022) §6: ten scikit-learn classifiers",
)


@dataclass(frozen=True)
class Task:
    """Predict one column from the others."""

    features: Features
    target: str

    @property
    def numeric(self) -> bool:
        """Whether the target is a number (R²) rather than a label (AUROC)."""
        return self.features[self.target].numeric

    def data(self, table: AlignedTable, *, exact: bool = False) -> tuple[Floats, Values]:
        """Encoded predictors [n, width] and target [n] of the rows whose target is present.

        Float32, which trees take without copies, is not `exact` enough for variances.
        """
        table = table.take(np.flatnonzero(~table.missing(self.target)))
        y = table.values[self.target]
        if not self.numeric:
            y = np.minimum(y.astype(np.int64), HOT_LABELS)  # rarer labels count as one class
        x: Floats = table.without(self.target).encode()
        x = x if exact else x.astype(np.float32)
        # A table of one column leaves nothing to learn from; a constant teaches just that.
        return x if x.shape[1] else np.zeros((table.n, 1)), y


@dataclass(frozen=True)
class Predictions:
    """What one fitted model says of the real test rows.

    labels: the classes in the test rows, ascending [classes]; empty for numbers.
    class_scores: how much speaks for each of `labels`, [n, classes].
    positive: the rarer class of all test rows, and of rows drawn from them; any number for numbers.
    """

    truth: Values
    predicted: Values
    labels: Values
    class_scores: Floats
    positive: int

    def take(self, rows: NDArray[np.int64]) -> Predictions:
        """The predictions on these rows, with the classes of all rows."""
        return replace(
            self,
            truth=self.truth[rows],
            predicted=self.predicted[rows],
            class_scores=self.class_scores[rows],
        )

    @property
    def scored(self) -> bool:
        """Whether the rows have scores: two numbers, or the rarer class and another."""
        if not len(self.labels):
            return len(np.unique(self.truth)) > 1
        rare = self.truth == self.positive
        return bool(rare.any() and not rare.all())

    def scores(self) -> dict[str, float]:
        """R² for numbers, else AUROC, AUPRC and accuracy; needs `scored`."""
        if not len(self.labels):
            return {"R²": max(0.0, float(r2_score(self.truth, self.predicted)))}
        present, counts = np.unique(self.truth, return_counts=True)
        rare = self.positive
        column = {label: self.class_scores[:, i] for i, label in enumerate(self.labels.tolist())}
        if len(present) == 2:
            area = auroc(self.truth == rare, column[rare])
        else:
            ranked = ((self.truth == label, column[label]) for label in present.tolist())
            areas = [auroc(one, scores) for one, scores in ranked]
            area = float(np.average(areas, weights=counts))
        return {
            "AUROC": area,
            "AUPRC": float(average_precision_score(self.truth == rare, column[rare])),
            ACCURACY: float((self.predicted == self.truth).mean()),
        }


def predict(
    task: Task,
    train: AlignedTable,
    test: AlignedTable,
    *,
    models: Mapping[str, Estimator] | None = None,
    seed: int = 0,
) -> dict[str, Predictions]:
    """What models trained on `train` say of real test rows, by name; nothing of one class.

    Args:
      models: unfitted; by default the four classifiers or the regressors. Boosters are left out
        where the training rows hold more than ten classes.
    """
    (x, y), (x_test, y_test) = (task.data(one, exact=models is not None) for one in (train, test))
    if len(np.unique(y_test)) < 2:
        return {}
    if models is None:
        models = regressors(seed) if task.numeric else classifiers(seed)
    many = not task.numeric and len(np.unique(y)) > BOOSTED_CLASSES
    with one_thread():
        return {
            name: evaluate(
                fit(model, x, y, numeric=task.numeric), x_test, y_test, numeric=task.numeric
            )
            for name, model in models.items()
            if not (many and name in BOOSTERS)
        }


def evaluate(model: Estimator, x: Floats, y: Values, *, numeric: bool = False) -> Predictions:
    """What a fitted model says of the rows x [n, width] whose target is y [n]."""
    labels = np.unique(y)[:0] if numeric else np.unique(y)
    class_score = None if numeric else class_scores(model, x)
    columns = [] if class_score is None else [class_score(int(label)) for label in labels.tolist()]
    support = np.stack(columns, axis=1) if columns else np.zeros((len(y), 0))
    positive = 0 if numeric else positive_class(y)
    return Predictions(y, np.asarray(model.predict(x)), labels, support, positive)


def tstr(
    task: Task,
    train: AlignedTable,
    test: AlignedTable,
    *,
    models: Mapping[str, Estimator] | None = None,
    seed: int = 0,
) -> Scores:
    """Scores on real test rows of models trained on `train`, by model, then by metric."""
    return scores_of(predict(task, train, test, models=models, seed=seed))


def scores_of(predictions: Mapping[str, Predictions]) -> Scores:
    """Every model's scores."""
    return {name: one.scores() for name, one in predictions.items()}


def half_widths(predictions: Mapping[str, Predictions], *, seed: int = 0) -> dict[str, float]:
    """Half a 95 % interval of each metric's mean over models, by bootstrap of the test rows."""
    n = max((len(one.truth) for one in predictions.values()), default=1)
    size, rng = min(n, RESAMPLED_ROWS), np.random.default_rng(seed)
    draws = []
    for _ in range(RESAMPLES):
        rows = rng.integers(n, size=size)
        drawn = {name: one.take(rows) for name, one in predictions.items()}
        if all(one.scored for one in drawn.values()):
            draws.append(scores_of(drawn))
    metrics = {metric for scores in draws for one in scores.values() for metric in one}
    return {
        metric: half_width_of([mean_score(scores, metric) or 0.0 for scores in draws], size / n)
        for metric in metrics
    }


def utility_rows(
    task: Task, *, real: Scores, synthetic: Scores, test: AlignedTable
) -> list[UtilityRow]:
    """Real-trained and synthetic-trained scores side by side, with what guessing scores."""
    _, y = task.data(test)
    guessing = {"R²": 0.0, "AUROC": 0.5}
    if not task.numeric and len(y):
        guessing["AUPRC"] = float((y == positive_class(y)).mean())
        guessing[ACCURACY] = float(np.unique(y, return_counts=True)[1].max() / len(y))
    return [
        UtilityRow(
            model=model,
            metric=metric,
            real=value,
            synthetic=synthetic[model][metric],
            baseline=guessing[metric],
        )
        for model, metrics in real.items()
        if model in synthetic
        for metric, value in metrics.items()
    ]


def mean_score(scores: Scores, metric: str) -> float | None:
    """Mean of one metric over the models that report it; None when none does."""
    values = [metrics[metric] for metrics in scores.values() if metric in metrics]
    return float(np.mean(values)) if values else None


@family(
    AUROC,
    AUPRC,
    R2,
    text="Predicting {target} after training on either table",
    order=130,
    cost=5.0,
    applies=lambda tables: tables.target is not None,
)
def utility(tables: Comparison, _: Step) -> Measured:
    """Train on synthetic, test on real, with the four classifiers, or regressions."""
    assert tables.target is not None
    rng, task = tables.rng(8), Task(tables.features, tables.target)
    test = tables.test.sample(TEST_ROWS, rng)

    given = [tables.train, tables.synthetic, *([] if tables.before is None else [tables.before])]
    samples = [table.sample(ROWS, rng) for table in given]
    learned = list(side_by_side(lambda one: predict(task, one, test, seed=tables.seed), samples))
    real, synthetic, before = (*map(scores_of, learned), {})[:3]
    real = {name: scores for name, scores in real.items() if name in synthetic}
    note = "" if real else Message("All real test rows have the same value of the target.")

    widths = half_widths(learned[1], seed=tables.seed)

    def score(metric: Metric, name: str) -> Score:
        value = mean_score(synthetic, name)
        return metric.score(
            value,
            half_width=widths.get(name, 0.0) if value is not None else None,
            ceiling=mean_score(real, name),
            before=mean_score(before, name),
            note=note,
        )

    judged = [(R2, "R²")] if task.numeric else [(AUROC, "AUROC"), (AUPRC, "AUPRC")]
    rows = utility_rows(task, real=real, synthetic=synthetic, test=test)
    return Measured([score(*one) for one in judged], {"utility": rows})


def _listed_target(tables: Comparison) -> bool:
    return tables.target is not None and not tables.features[tables.target].numeric


@family(
    TEN_AUROC,
    text="Predicting {target} with ten classifiers",
    order=140,
    cost=6.0,
    applies=_listed_target,
)
def ten_kinds(tables: Comparison, _: Step) -> Measured:
    """Train on synthetic, test on real, with ten kinds of classifiers; for lists only."""
    assert tables.target is not None
    rng, task = tables.rng(9), Task(tables.features, tables.target)
    test = tables.test.sample(TEN_ROWS, rng)

    samples = [table.sample(TEN_ROWS, rng) for table in (tables.train, tables.synthetic)]

    def mean_auroc(table: AlignedTable) -> float | None:
        models = ten_classifiers(tables.seed)
        return mean_score(tstr(task, table, test, models=models), "AUROC")

    ceiling, value = side_by_side(mean_auroc, samples)
    return Measured([] if value is None else [TEN_AUROC.score(value, ceiling=ceiling)])
