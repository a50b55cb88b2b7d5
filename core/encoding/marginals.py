"""Which marginals two tables are compared on: a matter of the declaration, never of any row.

Few cells keep noise low: single columns are cut in at most 12 groups of neighbouring bins, each
column of a pair in at most 5, and "missing" is a group of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["MOST_PAIRS", "PAIR_GROUPS", "SINGLE_GROUPS", "groups_of_bins", "pairs_of"]

SINGLE_GROUPS = 12
PAIR_GROUPS = 5
MOST_PAIRS = 60


def pairs_of(names: Sequence[str], target: str | None = None) -> tuple[tuple[str, str], ...]:
    """Pairs of columns, at most 60: those with the target first; nearer columns before others.

    >>> pairs_of(["a", "b", "c"], "c")
    (('b', 'c'), ('a', 'c'), ('a', 'b'))
    """
    m = len(names)
    near = [(names[i], names[i + step]) for step in range(1, m) for i in range(m - step)]
    # a stable sort: within both kinds the nearest stay in front
    return tuple(sorted(near, key=lambda pair: target not in pair)[:MOST_PAIRS])


def groups_of_bins(bins: int, *, missing: bool, groups: int) -> tuple[int, ...]:
    """For each of a column's bins, the group of neighbouring bins it belongs to.

    Args:
      missing: whether the last bin is "missing", which gets a group of its own.

    >>> groups_of_bins(5, missing=True, groups=2)
    (0, 0, 1, 1, 2)
    """
    body = bins - missing
    count = min(body, groups)
    return tuple(i * count // body for i in range(body)) + ((count,) if missing else ())
