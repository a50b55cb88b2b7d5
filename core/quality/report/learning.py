"""Stages of a report that learn: what a model makes of each table, and what an attacker does."""

from __future__ import annotations

from functools import partial

from core.quality.metrics.disclosure import attacks
from core.quality.metrics.prediction import dimension_prediction, prediction_gap
from core.quality.metrics.propensity import propensity, tree_auroc
from core.quality.metrics.registry import metric
from core.quality.metrics.utility import (
    Task,
    answers,
    half_width,
    mean_score,
    scores_of,
    ten_auroc,
    utility_rows,
)
from core.quality.report.builder import TEST_ROWS, Build, capped

__all__ = ["disclosure", "predictions", "telling_apart", "ten_kinds", "utility"]

LEARN_ROWS = 40_000  # rows to learn the target from, and to tell the tables apart with
TREE_ROWS = 20_000  # rows a side for trees that tell the tables apart
TEN_ROWS = 10_000  # rows that each of ten kinds learns from


def disclosure(build: Build) -> None:
    """What simple attackers reach; needs a holdout."""
    if build.holdout is None:
        build.parts["notes"].append(
            "Whether anyone is exposed was not tested: that needs real rows that the synthesizer "
            "never saw, and no such table was given."
        )
        return
    build.observe("Trying to find people of the table", 0.36)
    build.parts["attacks"] = attacks(
        build.features,
        build.real,
        build.holdout,
        build.synthetic,
        target=build.target,
        seed=build.seed,
    )


def telling_apart(build: Build) -> None:
    """Can a learner tell real from synthetic rows?"""
    build.observe("Telling real from synthetic rows", 0.4)
    rng = build.rng(4)
    real, synthetic = (
        capped(cells, rows=LEARN_ROWS, rng=rng) for cells in (build.real, build.synthetic)
    )
    found = propensity(build.features, real, synthetic)
    build.scores += [metric("pmse").score(found.pmse), metric("pmse_ratio").score(found.ratio)]
    real, synthetic = (capped(cells, rows=TREE_ROWS, rng=rng) for cells in (real, synthetic))
    trees = tree_auroc(build.features, real, synthetic, seed=build.seed)
    build.scores.append(metric("tree_auroc").score(max(0.5, trees), ceiling=0.5))


def utility(build: Build) -> None:
    """Train on synthetic, test on real, with the four classifiers, or regressions."""
    if build.target is None:
        return
    rng, task = build.rng(8), Task(build.features, build.target)
    learn = partial(capped, rows=LEARN_ROWS, rng=rng)
    test = capped(build.test, rows=TEST_ROWS, rng=rng)
    build.observe(f"Learning {build.target} from real rows", 0.45)
    real = scores_of(task, answers(task, learn(build.train), test, seed=build.seed))
    build.observe(f"Learning {build.target} from synthetic rows", 0.52)
    said = answers(task, learn(build.synthetic), test, seed=build.seed)
    synthetic, earlier = scores_of(task, said), {}
    if build.before is not None:
        build.observe(f"Learning {build.target} from rows before boosting", 0.56)
        said_before = answers(task, learn(build.before), test, seed=build.seed)
        earlier = scores_of(task, said_before)
    both = [name for name in real if name in synthetic]
    real = {name: real[name] for name in both}
    build.parts["utility"] = utility_rows(task, real=real, synthetic=synthetic, test=test)
    note = "" if both else "The real test rows hold one value of the target only."
    names = {"tstr_r2": "R²"} if task.numeric else {"tstr_auroc": "AUROC", "tstr_auprc": "AUPRC"}
    for key, name in names.items():
        value, ceiling = mean_score(synthetic, name), mean_score(real, name)
        band = None if value is None else half_width(task, said, name, seed=build.seed)
        score = metric(key).score(value, half_width=band, ceiling=ceiling, note=note)
        build.scores.append(score.model_copy(update={"before": mean_score(earlier, name)}))


def ten_kinds(build: Build) -> None:
    """Train on synthetic, test on real, with ten kinds of classifiers; for lists only."""
    if build.target is None or build.features[build.target].numeric:
        return
    rng, task = build.rng(9), Task(build.features, build.target)
    test = capped(build.test, rows=TEN_ROWS, rng=rng)
    means = []
    for place, cells in enumerate((build.train, build.synthetic)):
        side = ("real", "synthetic")[place]
        build.observe(f"Learning {build.target} ten ways from {side} rows", 0.58 + 0.06 * place)
        means.append(ten_auroc(task, capped(cells, rows=TEN_ROWS, rng=rng), test, seed=build.seed))
    ceiling, value = means
    if value is not None:
        build.scores.append(metric("tstr_ten").score(value, ceiling=ceiling))


def predictions(build: Build) -> None:
    """Each column predicted from the others."""
    text = "Predicting each column from the others"
    build.observe(text, 0.7)
    points = dimension_prediction(
        build.features,
        build.train,
        build.synthetic,
        build.test,
        seed=build.seed,
        observe=lambda part: build.observe(text, 0.7 + 0.3 * part),
    )
    gap = prediction_gap(points)
    note = (
        "" if gap is not None else "No column can be predicted from the others, even by real rows."
    )
    build.parts["dimension_prediction"] = points
    build.scores.append(metric("prediction_gap").score(gap, note=note))
