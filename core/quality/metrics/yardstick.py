"""NIST's yardstick: the k-marginal score within groups, beside real subsamples of several sizes.

The score is 500 · (2 − mean over sets of k columns of Σ|p − q|), with p and q shares of all rows in
the cells of group and columns. A group's own is 1000 · (1 − mean of min(1, Σ|p − q| / its share))
over its cells. Numbers are cut in 20 quantile bins of the real table. Source: NIST SDNist 2.5
(`metrics/kmarginal.py`, `report/dataset/binning.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from core.message import Message, joined, to_say
from core.quality.aligned_tables import Coded
from core.quality.comparison import Comparison
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.metrics.marginals import column_sets
from core.quality.report.types import Yardstick

SUBSAMPLES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9)  # of a real table
PIECES = 8  # of one size at most, without common rows, whose scores are averaged
MOST_SETS, FEWEST_SETS = 435, 200  # sets of columns: the pairs of 30; SDNist draws 200 of more
SET_WORK = 100_000_000  # rows × sets of columns
DENSE_CELLS = 20_000  # of larger tables only the cells in use are counted
MOST_GROUPS = 30  # values of a column by which a reader may group
WORST = to_say(
    "Rows are grouped by {column}. The worst group is {group}, with {worst:.0f} points (real rows: "
    "{real:.0f})."
)

Floats = NDArray[np.float64]

K_MARGINAL = Metric(
    key="k_marginal",
    title="NIST k-marginal score",
    unit="points",
    goal="higher",
    high=1000.0,
    meaning="How alike the joint distributions of two columns are, within each group where rows "
    "are grouped: 1000 points for identical tables, 0 for no overlap.",
    source="NIST SDNist 2.5: 500 · (2 − mean Σ|share − share|); numbers in 20 quantile bins",
)
SUBSAMPLE = Metric(
    key="real_subsample",
    title="As close as a real subsample",
    unit="%",
    goal="higher",
    high=100.0,
    meaning="The size of a random part of the real table that has the same k-marginal score.",
    source="NIST SDNist 2.5; sizes between the measured ones are interpolated",
)


def k_marginal(
    columns: Mapping[str, Coded], *, group: str | None = None, k: int = 2, seed: int = 0
) -> tuple[Floats, Floats]:
    """Scores of tables, and of random parts of the real one, of as many sizes as `SUBSAMPLES`.

    Args:
      columns: by name, coded in the real table and in those to score, ≥ 1 row each.
      group: the column within whose values others are compared.
      k: columns at a time, ≥ 1.

    Returns:
      Scores [tables + sizes] in [0, 1000], and those within each group [groups, tables + sizes],
      NaN where there is no real row.
    """
    codes = [column for name, column in columns.items() if name != group]
    ends = np.cumsum([0, *map(len, codes[0].codes)]).tolist()
    n, order = ends[1], np.arange(ends[-1])
    order[:n] = np.random.default_rng((seed, 10)).permutation(n)
    parts = [[slice(*pair)] for pair in pairwise(ends)]  # the real rows, tables, and real pieces
    for rows in (max(1, round(share * n)) for share in SUBSAMPLES):
        parts.append([slice(i * rows, i * rows + rows) for i in range(min(PIECES, n // rows))])
    stacked = [np.concatenate(column.codes)[order] for column in codes]
    groups, count = np.zeros(len(order), dtype=np.int64), 1
    if group is not None:
        groups, count = np.concatenate(columns[group].codes)[order], len(columns[group].names)
    real = np.bincount(groups[:n], minlength=count)[:, None] / n  # [count, 1]
    gaps, within = np.zeros((count, len(parts))), np.where(real > 0.0, 0.0, np.nan)
    sets = column_sets(len(codes), k, int(np.clip(SET_WORK // n, FEWEST_SETS, MOST_SETS)))
    for some in sets:
        keys, cells = groups, count
        for j in some:
            width = len(codes[j].names)
            keys, cells = keys * width + stacked[j], cells * width
            if cells > DENSE_CELLS:
                used, keys = np.unique(keys, return_inverse=True)
                cells = len(used)
        group_of = np.zeros(cells, dtype=np.int64)
        group_of[keys] = groups
        counts = [np.array([np.bincount(keys[i], minlength=cells) for i in part]) for part in parts]
        shares = [each / each[0].sum() for each in counts]  # of one size's pieces, each [·, cells]
        differing = [np.abs(shares[0] - q).mean(axis=0) for q in shares]
        apart = np.stack([np.bincount(group_of, x, count) for x in differing], axis=1)
        gaps, within = gaps + apart, within + np.minimum(apart / np.maximum(real, 1e-9), 1.0)
    scores: Floats = 500.0 * (2.0 - gaps.sum(axis=0) / len(sets))
    return scores[1:], 1000.0 * (1.0 - within[:, 1:] / len(sets))


def subsample_share(score: float, real: Floats) -> float:
    """The share of real rows whose score this is, by those of `SUBSAMPLES`; linear in its log."""
    shares, scores = np.log([*SUBSAMPLES, 1.0]), np.append(np.maximum.accumulate(real), 1000.0)
    return float(np.exp(np.interp(score, scores, shares)))


@family(K_MARGINAL, SUBSAMPLE, text="Comparing within groups", order=45, cost=0.8)
def yardsticks(tables: Comparison, _: Step) -> Measured:
    """The scores without and with groups; those that are asked for, or the target's, come first."""
    compared = (tables.real, tables.synthetic, tables.resampled)
    columns = {one.name: Coded.of(one, compared) for one in tables.features.items}
    found = [measure(tables, columns, group) for group in groupings(tables)]
    first, note = found[0], Message("Columns at a time: {k}.", k=tables.grouping[1])
    if first.groups:
        worst = dict(zip(("group", "worst", "real"), first.groups[0], strict=True))
        note = joined([note, Message(WORST, column=first.group, **worst)])
    close = SUBSAMPLE.score(100.0 * first.as_close_as)
    score = K_MARGINAL.score(first.score, ceiling=first.real, note=note)
    return Measured([score, close], {"yardsticks": found})


def groupings(tables: Comparison) -> list[str | None]:
    """Columns to group by: the one asked for, else the target if it has few values; and none."""
    asked, target, values = tables.grouping[0], tables.target, tables.real.values
    if not asked and target is not None and 2 <= len(np.unique(values[target])) <= MOST_GROUPS:
        asked = (target,)
    return [*asked[:1], None] if len(values) > 1 else [None]


def measure(tables: Comparison, columns: Mapping[str, Coded], group: str | None) -> Yardstick:
    """The yardstick with rows grouped by one column, or not grouped."""
    scores, within = k_marginal(columns, group=group, k=tables.grouping[1], seed=tables.seed)
    named = zip(columns[group].names if group else (), np.round(within, 2).tolist(), strict=False)
    groups = [(name, row[0], row[1]) for name, row in named if not np.isnan(row[0])]
    return Yardstick(
        group=group,
        score=float(scores[0]),
        real=float(scores[1]),
        as_close_as=subsample_share(float(scores[0]), scores[2:]),
        groups=sorted(groups, key=lambda one: one[1]),
    )
