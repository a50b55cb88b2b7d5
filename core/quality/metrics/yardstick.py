"""NIST's yardstick: the k-marginal score within groups, beside real subsamples of several sizes.

The score is 500 · (2 − mean over sets of k columns of Σ|p − q|), where p and q are shares of all
rows in the cells of group and columns; it is 1000 for equal tables. A group's own score is
1000 · (1 − mean of min(1, Σ|p − q| / its share)) over its cells. Numbers are cut in 20 quantile
bins of the real table; missing cells, codes, and values it does not have are values of their own.

Source: NIST SDNist 2.5 (`metrics/kmarginal.py`, `report/dataset/binning.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.message import Message, joined
from core.quality.comparison import Comparison
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.metrics.marginals import DENSE_CELLS
from core.quality.report.types import Yardstick
from core.quality.value_codes import Coded, coded

SUBSAMPLES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9)  # of a real table
PARTS = 8  # of one size at most, without common rows, whose scores are averaged
MOST_SETS, FEWEST_SETS = 435, 200  # sets of columns: the pairs of 30; SDNist draws 200 of more
SET_WORK = 100_000_000  # rows × sets of columns
MOST_CELLS = 2**31  # whose number times another list's length is still exact
SPARSE = 4  # cells a row from which only the cells in use are looked at
MOST_GROUPS = 30  # values of a column by which a reader may group
MOST_GROUPINGS = 6

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

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
WORST_GROUP = Metric(
    key="worst_group",
    title="NIST k-marginal score: worst group",
    unit="points",
    goal="higher",
    high=1000.0,
    meaning="The score within the group of rows where it is lowest.",
    source="NIST SDNist 2.5: 1000 · (1 − mean of Σ|share − share| within the group, at most 1)",
)


def column_sets(columns: int, k: int, most: int = MOST_SETS) -> list[tuple[int, ...]]:
    """Sets of k columns: all, or `most` drawn without looking at any row; of fewer columns one.

    >>> column_sets(3, 2), column_sets(1, 2), len(column_sets(40, 2))
    ([(0, 1), (0, 2), (1, 2)], [(0,)], 435)
    """
    k = min(k, columns)
    if math.comb(columns, k) <= most:
        return list(combinations(range(columns), k))
    rng, chosen = np.random.default_rng(0), set[tuple[int, ...]]()
    while len(chosen) < most:
        chosen.add(tuple(sorted(rng.choice(columns, size=k, replace=False).tolist())))
    return sorted(chosen)


def k_marginal(
    columns: Mapping[str, Coded],
    *,
    group: str | None = None,
    k: int = 2,
    subsamples: Sequence[float] = (),
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """Scores of tables and of random parts of the real one, ≥ 1 row each.

    Args:
      columns: by name, coded in the real table and in those to score.
      group: the column within whose values others are compared.
      k: columns at a time, ≥ 1.
      subsamples: shares of the real rows, in (0, 1].

    Returns:
      Scores [tables + subsamples] in [0, 1000], and those of the group of each name of
      `columns[group]` [groups, tables + subsamples]; of one group without `group`.
    """
    every = [one for name, one in columns.items() if name != group]
    lengths = [len(codes) for codes in every[0].codes]
    rng = np.random.default_rng((seed, 10))
    order = np.concatenate([rng.permutation(lengths[0]), np.arange(lengths[0], sum(lengths))])
    parts, of = _parts(lengths, subsamples)
    codes = [np.concatenate(one.codes)[order] for one in every]
    groups, count, named = np.zeros(len(order), dtype=np.int64), 1, 1
    if group is not None:
        groups, count = np.concatenate(columns[group].codes)[order], columns[group].size
        named = len(columns[group].names)
    most = int(np.clip(SET_WORK // len(order), FEWEST_SETS, MOST_SETS))
    chosen = column_sets(len(every), k, most)
    share = np.bincount(groups[: lengths[0]], minlength=count) / lengths[0]
    apart, within = np.zeros(len(parts)), np.zeros((count, len(parts)))
    for some in chosen:
        keys, width = groups, 1
        for j in some:
            keys, width = keys * every[j].size + codes[j], width * every[j].size
            if width > MOST_CELLS:  # number those in use, within each group
                used, keys = np.unique(keys, return_inverse=True)
                keys, width = groups * len(used) + keys, len(used)
        gaps = _gaps(keys, count, width, slice(0, lengths[0]), parts)  # [count, parts]
        apart += gaps.sum(axis=0)
        within += np.minimum(gaps / np.maximum(share, 1e-300)[:, None], 1.0)
    mean = np.equal.outer(of, np.unique(of)) / np.bincount(of)  # [parts, tables + subsamples]
    scores = 500.0 * (2.0 - apart @ mean / len(chosen))
    return scores, 1000.0 * (1.0 - within[:named] @ mean / len(chosen))


def _parts(lengths: Sequence[int], shares: Sequence[float]) -> tuple[list[slice], Ints]:
    """Stacked rows to compare with the first table's: tables and parts of that; and whose each is.

    Returns:
      Slices, and of each the index of its figure, ascending.
    """
    ends = np.cumsum(lengths).tolist()
    parts = [slice(low, high) for low, high in zip(ends[:-1], ends[1:], strict=True)]
    of = list(range(len(parts)))
    for i, share in enumerate(shares, start=len(parts)):
        rows = max(1, round(share * lengths[0]))
        starts = range(0, lengths[0] - rows + 1, rows)[:PARTS]
        parts += [slice(start, start + rows) for start in starts]
        of += [i] * len(starts)
    return parts, np.array(of)


def _gaps(keys: Ints, groups: int, width: int, real: slice, parts: Sequence[slice]) -> Floats:
    """Σ|p − q| over the cells of each group, real rows against each part; [groups, parts]."""
    cells = groups * width
    if cells > DENSE_CELLS:  # only cells in use matter
        used, keys = np.unique(keys, return_inverse=True)
        cells, group_of = len(used), used // width
    else:
        group_of = np.repeat(np.arange(groups), width)
    p = np.bincount(keys[real], minlength=cells) / (real.stop - real.start)
    mass = np.bincount(group_of, p, minlength=groups)
    out = np.empty((groups, len(parts)))
    for i, part in enumerate(parts):
        rows = part.stop - part.start
        if SPARSE * rows < cells:  # mostly empty: Σ|p − q| = Σp + Σ over its cells of |p − q| − p
            used, q = np.unique(keys[part], return_counts=True)
            gap = np.abs(p[used] - q / rows) - p[used]
            out[:, i] = mass + np.bincount(group_of[used], gap, minlength=groups)
        else:
            gap = np.abs(p - np.bincount(keys[part], minlength=cells) / rows)
            out[:, i] = np.bincount(group_of, gap, minlength=groups)
    return out


def subsample_share(score: float, scale: Sequence[tuple[float, float]]) -> float:
    """The share of real rows that has this score, in (0, 1].

    Args:
      scale: shares, ascending, and their scores; between them the score is linear in log share.

    >>> round(subsample_share(850.0, [(0.1, 800.0), (0.4, 900.0)]), 12)
    0.2
    """
    shares, scores = np.array([*scale, (1.0, 1000.0)]).T
    return float(np.exp(np.interp(score, np.maximum.accumulate(scores), np.log(shares))))


@family(
    K_MARGINAL,
    SUBSAMPLE,
    WORST_GROUP,
    text="Scoring pairs of columns within groups",
    order=45,
    cost=0.8,
)
def yardsticks(tables: Comparison, _: Step) -> Measured:
    """The scores without and with groups; those that are asked for, or the target's, come first."""
    compared = (tables.real, tables.synthetic, tables.resampled)
    columns = {feature.name: coded(feature, compared) for feature in tables.features.items}
    found = [measure(tables, columns, group) for group in groupings(tables, columns)]
    first = found[0]
    words = [Message("Columns at a time: {k}.", k=first.columns_at_a_time)]
    if first.group is not None:
        words.append(Message("Rows are grouped by {column}.", column=first.group))
    scores = [
        K_MARGINAL.score(first.score, ceiling=first.real, note=joined(words)),
        SUBSAMPLE.score(
            100.0 * first.as_close_as, ceiling=100.0 * subsample_share(first.real, first.scale)
        ),
    ]
    if first.groups:
        name, worst = first.groups[0]
        note = Message("{column}: {value}.", column=first.group, value=name)
        scores.append(WORST_GROUP.score(worst, note=note))
    return Measured(scores, {"yardsticks": found})


def groupings(tables: Comparison, columns: Mapping[str, Coded]) -> list[str | None]:
    """Columns to group by: the one asked for, else the target; none; and others with few values."""
    values = tables.real.values
    few = [name for name in columns if 2 <= len(np.unique(values[name])) <= MOST_GROUPS]
    wanted = tables.grouping[0] or (tables.target if tables.target in few else None)
    sets = min(math.comb(len(columns), 2), MOST_SETS)
    room = SET_WORK // max(1, tables.real.n * sets)  # as many more as take some seconds
    more = [name for name in few if name != wanted][: min(room, MOST_GROUPINGS)]
    every = dict.fromkeys([wanted, None, *more])
    return [name for name in every if name is None or (name in columns and len(columns) > 1)]


def measure(tables: Comparison, columns: Mapping[str, Coded], group: str | None) -> Yardstick:
    """The yardstick with rows grouped by one column, or not grouped."""
    scores, within = k_marginal(
        columns,
        group=group,
        k=tables.grouping[1],
        subsamples=SUBSAMPLES,
        seed=tables.seed,
    )
    worst = [] if group is None else sorted(zip(within[:, 0], columns[group].names, strict=True))
    scale = list(zip(SUBSAMPLES, np.round(scores[2:], 2).tolist(), strict=True))
    return Yardstick(
        group=group,
        columns_at_a_time=tables.grouping[1],
        score=float(scores[0]),
        real=float(scores[1]),
        scale=scale,
        as_close_as=subsample_share(float(scores[0]), scale),
        groups=[(name, round(float(score), 2)) for score, name in worst],
    )
