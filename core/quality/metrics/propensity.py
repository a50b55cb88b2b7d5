"""Can a learner tell the two tables apart? By a straight line, and by trees.

pMSE = mean((p - c)²) of a logistic regression that sees every row, p its chance of being synthetic
and c the synthetic share. Being linear it cannot see a column shuffle; boosted trees, judged on
rows they did not learn from, can.

Sources: Snoke, Raab, Nowok, Dibben and Slavković, "General and specific utility measures for
synthetic data", 2018; Lopez-Paz and Oquab, "Revisiting classifier two-sample tests", 2017.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from core.quality.aligned_tables import AlignedTable
from core.quality.comparison import Comparison
from core.quality.metrics.estimators import auroc, class_scores, fit, logistic, one_thread
from core.quality.metrics.family import Measured, Metric, Step, family

Floats = NDArray[np.float64]
ROWS = 40_000  # rows a side for the regression
TREE_ROWS = 20_000  # rows a side for the trees

PMSE = Metric(
    key="pmse",
    title="Distinguishable by a simple model (pMSE)",
    goal="lower",
    high=0.25,
    meaning="A logistic regression tries to tell real rows from synthetic ones: 0 means it cannot, "
    "0.25 that it always can (with equal numbers of each).",
    source="Snoke et al. 2018",
)
PMSE_RATIO = Metric(
    key="pmse_ratio",
    title="Distinguishable by a simple model (ratio)",
    unit="times",
    goal="lower",
    high=1e6,
    meaning="The same number divided by what chance alone would give: 1 is ideal, 2 is what a "
    "second real sample of the same size gives. In large tables small differences count.",
    source="Snoke et al. 2018, pMSE ratio",
)
TREE_AUROC = Metric(
    key="tree_auroc",
    title="Distinguishable by trees: AUROC",
    goal="lower",
    low=0.5,
    meaning="Boosted trees learn to tell real rows from synthetic ones and are tested on new rows: "
    "0.5 is no better than a coin toss. Hardly any private table passes this test.",
    source="Classifier two-sample test, Lopez-Paz and Oquab 2017",
)


def propensity(real: AlignedTable, synthetic: AlignedTable) -> tuple[float, float]:
    """The pMSE, in [0, ¼], and its ratio; (0, 1) when either table has no rows."""
    x, y = _labelled(real, synthetic)
    if len(np.unique(y)) < 2:
        return 0.0, 1.0
    with one_thread():
        p = class_scores(fit(logistic(), x, y), x)(1)
    share = float(y.mean())
    pmse = float(np.mean((p - share) ** 2))
    expected = _directions(x) * (1.0 - share) ** 2 * share / len(y)
    return pmse, pmse / expected if expected > 0.0 else 1.0


def tree_auroc(real: AlignedTable, synthetic: AlignedTable, *, seed: int = 0) -> float:
    """AUROC of boosted trees on the half of the rows that they did not learn from; 0.5 is ideal."""
    x, y = _labelled(real, synthetic)
    train, test = np.array_split(np.random.default_rng(seed).permutation(len(y)), [len(y) // 2])
    if len(np.unique(y[train])) < 2 or len(np.unique(y[test])) < 2:
        return 0.5
    model = HistGradientBoostingClassifier(random_state=seed)
    with one_thread():
        score = class_scores(fit(model, x[train], y[train]), x[test])(1)
    return auroc(y[test] == 1, score)


@family(
    PMSE, PMSE_RATIO, TREE_AUROC, text="Telling real rows from synthetic ones", order=120, cost=0.6
)
def telling_apart(tables: Comparison, _: Step) -> Measured:
    """Can a learner tell real from synthetic rows?"""
    rng = tables.rng(4)
    real, synthetic = (table.sample(ROWS, rng) for table in (tables.real, tables.synthetic))
    pmse, ratio = propensity(real, synthetic)
    real, synthetic = (table.sample(TREE_ROWS, rng) for table in (real, synthetic))
    trees = tree_auroc(real, synthetic, seed=tables.seed)
    return Measured(
        [PMSE.score(pmse), PMSE_RATIO.score(ratio), TREE_AUROC.score(max(0.5, trees), ceiling=0.5)]
    )


def _labelled(real: AlignedTable, synthetic: AlignedTable) -> tuple[Floats, NDArray[np.int64]]:
    x = np.concatenate([real.encode(), synthetic.encode()])
    return x, np.repeat([0, 1], [real.n, synthetic.n]).astype(np.int64)


def _directions(x: Floats) -> int:
    """Independent coefficients of the regression, without its constant: the rank of centred x."""
    centred = x - x.mean(axis=0)
    return int(np.linalg.matrix_rank(centred.T @ centred, hermitian=True))
