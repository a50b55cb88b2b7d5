"""Can a learner tell the two tables apart? By a straight line, and by trees.

pMSE and its ratio come from a logistic regression that sees every row: pMSE = mean((p - c)²), where
p is the predicted chance of being synthetic and c the synthetic share of rows. Being linear, it
cannot see a column shuffle; boosted trees, judged on rows they did not learn from, can.

Sources: Snoke, Raab, Nowok, Dibben and Slavković, "General and specific utility measures for
synthetic data", 2018 (pMSE and its expectation); Lopez-Paz and Oquab, "Revisiting classifier
two-sample tests", 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from core.quality.aligned_tables import Cells, Features
from core.quality.metrics.learners import class_scores, fit, logistic, one_thread

__all__ = ["Propensity", "propensity", "tree_auroc"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Propensity:
    """What a logistic regression reaches.

    Attributes:
      pmse: in [0, c(1 - c)].
      ratio: pMSE over its expectation when both tables follow one distribution; 1 is ideal.
      auroc: of telling the tables apart, on the rows learnt from.
    """

    pmse: float
    ratio: float
    auroc: float


def propensity(features: Features, real: Cells, synthetic: Cells) -> Propensity:
    """pMSE, its ratio and AUROC; both tables are one and the same when either has no rows."""
    x, y = _labelled(features, real, synthetic)
    if len(np.unique(y)) < 2:
        return Propensity(0.0, 1.0, 0.5)
    with one_thread():
        p = class_scores(fit(logistic(), x, y), x)(1)
    share = float(y.mean())
    found = float(np.mean((p - share) ** 2))
    expected = _directions(x) * (1.0 - share) ** 2 * share / len(y)
    ratio = found / expected if expected > 0.0 else 1.0
    return Propensity(found, ratio, float(roc_auc_score(y, p)))


def tree_auroc(features: Features, real: Cells, synthetic: Cells, *, seed: int = 0) -> float:
    """AUROC of boosted trees on the half of the rows that they did not learn from; 0.5 is ideal."""
    x, y = _labelled(features, real, synthetic)
    half = np.random.default_rng(seed).permutation(len(y))
    train, test = half[: len(y) // 2], half[len(y) // 2 :]
    if len(np.unique(y[train])) < 2 or len(np.unique(y[test])) < 2:
        return 0.5
    model = HistGradientBoostingClassifier(random_state=seed)
    with one_thread():
        score = class_scores(fit(model, x[train], y[train]), x[test])(1)
    return float(roc_auc_score(y[test], score))


def _labelled(
    features: Features, real: Cells, synthetic: Cells
) -> tuple[Floats, NDArray[np.int64]]:
    x = np.concatenate([features.encode(real), features.encode(synthetic)])
    return x, np.repeat([0, 1], [real.n, synthetic.n]).astype(np.int64)


def _directions(x: Floats) -> int:
    """Independent coefficients of the regression, without its constant: the rank of centred x."""
    centred = x - x.mean(axis=0)
    return int(np.linalg.matrix_rank(centred.T @ centred, hermitian=True))
