"""Association: how strongly two columns are related, whatever their kinds.

Numbers with numbers: |Pearson's r|, whose sign is kept; a list with a number: the correlation ratio
η; lists with lists: Cramér's V; all in [0, 1]. "Missing" is one of a list's labels, since it often
follows from another column; rows that lack a number are left out of its pairs. Few rows, many
labels or rare ones make independent columns look related; `independence_threshold` says how
strongly.

Sources: Cramér, "Mathematical methods of statistics", 1946; Fisher, "Statistical methods for
research workers", 1925 (correlation ratio); Lewis, Saunders and Westcott, Biometrika 1984 (moments
of χ² where both columns' counts are given).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv

from core.quality.aligned_tables import HOT_LABELS, AlignedTable, Feature
from core.quality.comparison import Comparison
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.report.types import AssociationTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROWS = 50_000  # rows a side
ROWS_PER_LABEL = 5  # with fewer, no strength is told from none
MINORITY_ROWS = 10  # rows that lack the most frequent label; with fewer, likewise
# share of tables of independent columns in which some pair is above the threshold
FALSE_POSITIVE_RATE = 0.01

ASSOCIATION_GAP = Metric(
    key="association_gap",
    title="Relationships between columns: difference",
    goal="lower",
    high=2.0,
    meaning="How strongly two columns are related in the real and in the synthetic table: the "
    "average difference over all pairs.",
    source="Pearson's r, correlation ratio η or Cramér's V, by the kinds of the two columns",
)


@dataclass(frozen=True)
class Operand:
    """A column to be related to another; values that are not `present` say nothing."""

    numeric: bool
    values: Floats | Ints
    present: NDArray[np.bool_]


def associations(table: AlignedTable) -> Floats:
    """[m, m] with ones on the diagonal; in [-1, 1] for two numbers, else in [0, 1]."""
    operands = [operand(feature, table) for feature in table.features.items]
    m = len(operands)
    out = np.eye(m)
    for i, j in combinations(range(m), 2):
        out[i, j] = out[j, i] = association(operands[i], operands[j])
    return out


def independence_threshold(table: AlignedTable, share: float = FALSE_POSITIVE_RATE) -> Floats:
    """How strongly independent columns of such rows may seem related; [m, m] in [0, 1].

    Args:
      share: of all such tables, those in which some pair is stronger than this.
    """
    operands = [operand(feature, table) for feature in table.features.items]
    present = np.stack([one.present for one in operands]).astype(np.float32)
    both = (present @ present.T).astype(np.float64)
    rows = np.maximum(both, 4.0)
    rank, uneven, rare = np.array([_spread(one) for one in operands]).T
    # moments of the squared strength where one column's rows are shuffled, and a beta law of these
    least = np.minimum.outer(rank, rank)
    mean = np.multiply.outer(rank, rank) / ((rows - 1) * least)
    wide = uneven / (rows - 2)
    even = np.maximum(rank * (rows - 1 - rank) / (rows - 1) - wide, 0.0)
    variance = 2 * rows / (rows - 3) * even * even.T + rows**2 / (rows - 1) * wide * wide.T
    variance = np.maximum(variance / (rows * least) ** 2, 1e-12)
    shape = np.maximum(mean * (1 - mean) / variance - 1, 1e-6)
    pairs = max(1, len(operands) * (len(operands) - 1) // 2)
    squared = betainccinv(mean * shape, np.maximum((1 - mean) * shape, 1e-6), share / pairs)
    evidence = np.minimum(
        both / ROWS_PER_LABEL / (np.maximum.outer(rank, rank) + 1), both * rare / MINORITY_ROWS
    )
    enough = np.minimum(evidence, evidence.T) >= 1.0
    return np.sqrt(np.where(enough & (mean < 1.0), squared, 1.0))


def _spread(one: Operand) -> tuple[float, float, float]:
    """Degrees of freedom of a column, how unevenly rows weigh in it, and the share unlike most."""
    values = one.values[one.present]
    if one.numeric:
        squares = np.square(values - values.mean()) if len(values) else np.zeros(1)
        uneven = float(np.square(squares).mean() / max(squares.mean() ** 2, 1e-300)) - 1.0
        return 1.0, uneven, 1.0
    counts = np.bincount(values.astype(np.int64), minlength=1).astype(np.float64)
    counts = counts[counts > 0] if counts.any() else np.ones(1)
    groups, rows = len(counts), counts.sum()
    return max(1.0, groups - 1.0), float((rows / counts).sum()) - groups**2, 1 - counts.max() / rows


def mean_difference(real: Floats, synthetic: Floats) -> float:
    """Mean absolute difference over all pairs of different columns, in [0, 2]; 0 for one column."""
    m = len(real)
    if m < 2:
        return 0.0
    return float(np.abs(real - synthetic)[np.triu_indices(m, 1)].mean())


@family(ASSOCIATION_GAP, text="Comparing relationships between columns", order=60, cost=0.6)
def association_strengths(tables: Comparison, _: Step) -> Measured:
    """How strongly columns are related, whatever their kinds."""
    samples = list(tables.samples(ROWS, 6))
    real, synthetic, resampled = (associations(table) for table in samples)
    seeming = np.maximum(*(independence_threshold(table) for table in samples[:2]))
    table = AssociationTable(
        columns=list(tables.features.names),
        real=np.round(real, 4).tolist(),
        synthetic=np.round(synthetic, 4).tolist(),
        luck=np.round(seeming, 4).tolist(),
    )
    gap, ceiling = (mean_difference(real, other) for other in (synthetic, resampled))
    scores = [ASSOCIATION_GAP.score(gap, ceiling=ceiling)] if len(tables.features) > 1 else []
    return Measured(scores, {"associations": table})


def operand(feature: Feature, table: AlignedTable) -> Operand:
    """A column of a table, to be related to another."""
    values, absent = table.values[feature.name], table.missing(feature.name)
    if feature.numeric:
        return Operand(True, values.astype(np.float64), ~absent)
    # labels beyond the most frequent ones count as one
    labels = np.minimum(values.astype(np.int64), HOT_LABELS)
    return Operand(False, np.where(absent, HOT_LABELS + 1, labels), np.ones(len(labels), bool))


def association(a: Operand, b: Operand) -> float:
    """How strongly two columns of the same rows are related, see the module."""
    x, y, both = a.values, b.values, a.present & b.present
    if not both.all():  # else copies are saved, for every pair
        x, y = x[both], y[both]
    if len(x) < 2:
        return 0.0
    if a.numeric and b.numeric:
        return _pearson(x.astype(np.float64), y.astype(np.float64))
    if a.numeric or b.numeric:
        groups, numbers = (y, x) if a.numeric else (x, y)
        return _correlation_ratio(groups.astype(np.int64), numbers.astype(np.float64))
    return _cramer(x.astype(np.int64), y.astype(np.int64))


def _constant(values: Floats) -> bool:
    """One value only. Its mean need not be that value in floats, so a variance cannot tell."""
    return bool(values.min() == values.max())


def _pearson(x: Floats, y: Floats) -> float:
    if _constant(x) or _constant(y):
        return 0.0
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(np.clip((x @ y) / scale, -1.0, 1.0)) if scale > 0.0 else 0.0


def _correlation_ratio(groups: Ints, values: Floats) -> float:
    if _constant(values):
        return 0.0
    values = values - values.mean()
    whole = float(values @ values)
    if whole <= 0.0:
        return 0.0
    counts, sums = np.bincount(groups), np.bincount(groups, weights=values)
    between = float((sums[counts > 0] ** 2 / counts[counts > 0]).sum())
    return float(np.sqrt(np.clip(between / whole, 0.0, 1.0)))


def _cramer(a: Ints, b: Ints) -> float:
    """V = √(χ² / (n · (min(rows, columns) - 1))), χ²/n = Σ p²/(pq) - 1 over the cells."""
    width = int(b.max()) + 1
    table = np.bincount(a * width + b, minlength=(int(a.max()) + 1) * width).reshape(-1, width)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    least = min(int((rows > 0).sum()), int((columns > 0).sum()))
    if least < 2:
        return 0.0
    expected = np.outer(rows, columns)
    used = expected > 0
    excess = float((table[used].astype(np.float64) ** 2 / expected[used]).sum()) - 1.0
    return float(np.sqrt(np.clip(excess / (least - 1), 0.0, 1.0)))
