"""The figures that `frontier.py` compares tools by: those of `utility.py`, and what truths ask.

Each figure says which direction is better. A figure that a table has no meaning for is None.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.named_tables import NamedTable
from benchmarks.utility import TREES, Bench
from core.encoding.layout.violations import count_violations
from core.quality.aligned_tables import AlignedTable, Features
from core.quality.metrics.association import associations
from core.quality.metrics.estimators import classifiers, ten_classifiers
from core.quality.metrics.marginals import one_way
from core.quality.metrics.train_synthetic_test_real import TEN_ROWS, Task, mean_score, tstr
from core.schema.schema import Schema

__all__ = ["FIGURES", "Figure", "ceiling", "judged", "lost_associations"]

STRONG = 0.3  # an association above it is one that a table should keep
WIDE, WIDEST = 60, 300  # columns beyond which slow figures, and all but two, are left out
Values = dict[str, float | None]


@dataclass(frozen=True)
class Figure:
    """How a figure is shown: its title, whether more is better, and its ideal where there is one.

    Attributes:
      title: with its unit in brackets unless it is a share or an area.
      higher: whether higher is better; C2ST and the like are lower is better.
      utility: whether it is one of the utility figures, not a cost.
    """

    title: str
    higher: bool
    utility: bool = True


FIGURES = {
    "auroc": Figure("AUROC, 4 classifiers", True),
    "auprc": Figure("AUPRC, 4 classifiers", True),
    "auroc_trees": Figure("AUROC, boosted trees", True),
    "auroc_patient": Figure("AUROC, boosted trees that do not stop early", True),
    "auroc_ten": Figure("AUROC, 10 classifiers", True),
    "tvd_1way": Figure("1-way TVD", False),
    "tvd_2way": Figure("2-way TVD", False),
    "tvd_3way": Figure("3-way TVD", False),
    "association_worst": Figure("association lost, worst pair", False),
    "association_mean": Figure("association lost, mean", False),
    "c2st": Figure("C2ST AUROC, boosted trees", False),
    "prediction_gap": Figure("prediction gap by column", False),
    "wscore_pca": Figure("Wasserstein score, plane", True),
    "wscore_whole": Figure("Wasserstein score, whole", True),
    "broken_determines": Figure("rows that break a label from a code", False),
    "broken_sum": Figure("rows that break a sum", False),
    "broken_at_most": Figure("rows that break an order", False),
    "strong_kept": Figure("strong correlations kept", True),
    "strong_ratio": Figure("of a strong correlation's size", True),
    "spurious": Figure("spurious correlation (times sampling noise)", False),
    "seconds": Figure("seconds", False, utility=False),
    "memory_mb": Figure("peak memory (MB)", False, utility=False),
}


def judged(
    table: NamedTable,
    synthetic: pd.DataFrame,
    seed: int = 0,
    *,
    ten: bool,
    every_column: bool = True,
) -> Values:
    """Figures of a synthetic table by key of `FIGURES`.

    Args:
      table: the real rows, those to test on, and what is known of them.
      synthetic: rows in the same columns.
      seed: of subsamples and classifiers.
      ten: whether ten kinds of classifiers learn the target too.
      every_column: whether each column is predicted from the others, unless the table is wide.
    """
    many = len(table.schema.names)
    if many > WIDEST:
        return _widest(table, synthetic, seed)
    each = every_column and many <= WIDE
    bench = Bench(table.train, table.test, table.schema, table.target, False, seed, each)
    values = {key: value for key, value in bench.judge(synthetic).items() if key in FIGURES}
    del values["seconds"]  # of judging
    features, (real, fake, test) = Features.fit(table.schema, table.train, synthetic, table.test)
    strengths = [associations(one) for one in (real, fake)]
    values |= lost_associations(*strengths)
    values |= _broken(table, synthetic)
    values |= _patient(table, features, fake, test, seed=seed)
    values |= _blocks(table, *strengths, names=features.names, rows=len(synthetic))
    if ten:
        task, rng = Task(features, table.target), np.random.default_rng(seed)
        parts = fake.sample(TEN_ROWS, rng), test.sample(TEN_ROWS, rng)
        scores = tstr(task, *parts, models=ten_classifiers(seed), seed=seed)
        values["auroc_ten"] = mean_score(scores, "AUROC")
    return values


def ceiling(table: NamedTable, seed: int = 0) -> Values:
    """What learning from the real rows reaches; no synthetic table should beat it."""
    if len(table.schema.names) > WIDEST:
        return {"auroc_trees": _widest(table, table.train, seed)["auroc_trees"]}
    bench = Bench(table.train, table.test, table.schema, table.target, False, seed)
    values = {key: value for key, value in bench.ceiling().items() if key in FIGURES}
    features, (real, test) = Features.fit(table.schema, table.train, table.test)
    return values | _patient(table, features, real, test, seed=seed)


def _widest(table: NamedTable, synthetic: pd.DataFrame, seed: int) -> Values:
    """Boosted trees and single columns only: such tables are for time and memory."""
    features, (real, fake, test) = Features.fit(table.schema, table.train, synthetic, table.test)
    task, models = Task(features, table.target), {TREES: classifiers(seed)[TREES]}
    scores = tstr(task, fake, test, models=models, seed=seed)
    return {
        "auroc_trees": mean_score(scores, "AUROC"),
        "tvd_1way": float(np.mean(list(one_way(real, fake).values()))),
    }


def lost_associations(real: np.ndarray, synthetic: np.ndarray) -> Values:
    """How much of their association strong pairs lose, at most and on average; None without any.

    Args:
      real, synthetic: [m, m] associations; a turned sign counts as lost and more.
    """
    upper = np.triu_indices(len(real), 1)
    before, after = real[upper], synthetic[upper]
    strong = np.abs(before) > STRONG
    if not strong.any():
        return {"association_worst": None, "association_mean": None}
    before, after = before[strong], after[strong]
    lost = np.maximum(np.abs(before) - np.sign(before) * after, 0.0)
    return {"association_worst": float(lost.max()), "association_mean": float(lost.mean())}


def _patient(
    table: NamedTable, features: Features, train: AlignedTable, test: AlignedTable, *, seed: int
) -> Values:
    """How well a parity is learnt by trees that go on while nothing is gained.

    A split on one column of a parity gains nothing, so trees that stop early, as usual ones do
    beyond 10,000 rows, give a parity of four up even on real rows.
    """
    if not table.truth.parity:
        return {}
    trees = HistGradientBoostingClassifier(
        max_iter=300, max_leaf_nodes=63, early_stopping=False, random_state=seed
    )
    scores = tstr(Task(features, table.target), train, test, models={TREES: trees}, seed=seed)
    return {"auroc_patient": mean_score(scores, "AUROC")}


def _broken(table: NamedTable, synthetic: pd.DataFrame) -> Values:
    """Shares of synthetic rows that break what every real row keeps."""
    if not table.truth.rules:
        return {}
    rules = [rule.model_dump() for rule in table.truth.rules]
    ruled = Schema.model_validate(table.schema.model_dump() | {"rules": rules})
    counts = count_violations(synthetic, ruled.domain())
    return {f"broken_{rule.kind}": counts[rule.text] / len(synthetic) for rule in table.truth.rules}


def _blocks(
    table: NamedTable,
    real: np.ndarray,
    synthetic: np.ndarray,
    *,
    names: tuple[str, ...],
    rows: int,
) -> Values:
    """Strong correlations kept, and correlation where there is none.

    A strong pair is kept where at least half of its real correlation is left; the ratio is the mean
    of what is left, at most all of it. Spurious correlation is the root mean square over all other
    pairs, as a multiple of 1/√rows, which independent columns show.
    """
    if not table.truth.strong_pairs:
        return {}
    index = {name: i for i, name in enumerate(names)}
    strong = np.zeros_like(real, dtype=bool)
    for a, b in table.truth.strong_pairs:
        strong[index[a], index[b]] = strong[index[b], index[a]] = True
    upper = np.triu(np.ones_like(strong), 1)
    left = np.abs(synthetic[strong & upper]) / np.abs(real[strong & upper])
    others = synthetic[~strong & upper]
    return {
        "strong_kept": float((left >= 0.5).mean()),
        "strong_ratio": float(np.minimum(left, 1.0).mean()),
        "spurious": float(np.sqrt((others**2).mean() * rows)),
    }
