"""From noisy counts to domains: everything here looks at released numbers and public ones alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.message import Message
from core.privacy.discovery.grids import PublicGrid, grid_of, year_grid
from core.privacy.discovery.open_domain import known_labels
from core.privacy.discovery.planning import BOUNDS, LISTS, NEIGHBOUR_DOUBT, Levels, complete
from core.privacy.discovery.raw_rows import Keys
from core.privacy.discovery.thresholds import cell_threshold
from core.proposing.kinds import scale_order
from core.proposing.rare import OTHER
from core.schema.column import MAX_CATEGORIES, Column, Kind, Learned, SchemaColumn
from core.schema.labels import REST
from core.schema.round_bounds import round_bounds, rung, whole_years
from core.schema.rules.rules import Combinations, Determines

OFTEN = 0.05  # share of the records on one value from which on it is an atom
FINE_GRID = 128  # steps of a range; in a coarser one every value is an atom already
HEAVY = 0.75  # share of the records in the inner tenth of a range, from which on its tail is heavy
LOOK_AHEAD = 6  # bins that bounds may reach at once: two powers of ten
SURE = 2.0  # standard deviations that years' counts are taken to be too low by
EMPTY = 0.125  # of what other years hold, below which a year at an end is left out
BEYOND_NOISE = 3.0  # standard errors from which on a list is taken to lack some labels
_UNITS = 20  # of a narrowed range, at most: its ends are multiples of one
Counts = NDArray[np.float64]
Beginnings = tuple[int, Keys, Counts]  # of codes, all of one length


@dataclass(frozen=True)
class ListCounts:
    """Noisy counts of a listed column's states, which the model needs too.

    Attributes:
      counts: float64 [states]: of each label, then of missing cells where there may be any.
      std: float64 [states], standard deviations of the counts.
    """

    counts: Counts
    std: Counts


@dataclass(frozen=True)
class FirstLook:
    """What the public grid of a numeric column showed.

    Attributes:
      low, high: of the cells that were found, low ≤ high.
      atoms: values with a cell of their own that were found; `often` those that are the column's.
      heavy: whether most of the range is a thin tail.
      outside: estimated share of the records outside, in [0, 1], and its standard error.
    """

    low: float
    high: float
    atoms: tuple[float, ...]
    often: tuple[float, ...]
    missing: bool
    heavy: bool
    outside: tuple[float, float]


def first_look(
    column: Column, counts: Counts, levels: Levels, n: int, *, years: Counts | None = None
) -> FirstLook:
    """Read the noisy counts of a column's grid, and of a date those by year.

    Bins above `levels.cell` are found, and from the outermost ones on what `_reach` adds; whatever
    lies between two found ones is inside. Where noise hides all bins, the largest one is taken, so
    that no column is lost.
    """
    grid = grid_of(column)
    bins, atom_counts = counts[1 : grid.bins + 1], counts[grid.bins + 2 : -1]
    found = [a for a, c in zip(grid.atoms, atom_counts, strict=True) if c > levels.cell]
    often = [
        a for a, c in zip(grid.atoms, atom_counts, strict=True) if c > max(levels.cell, OFTEN * n)
    ]
    seeds = np.flatnonzero(bins > levels.cell)
    if not len(seeds) and not found:
        largest = int(np.argmax([*bins, *atom_counts]))
        seeds = np.array([largest] if largest < len(bins) else [], dtype=np.int64)
        found = [] if largest < len(bins) else [grid.atoms[largest - len(bins)]]
    around = [*seeds.tolist(), *(_bin_of(grid, atom) for atom in found)]
    zero = _bin_of(grid, 0.0) if grid.atoms else -1  # dates have no sign
    std = levels.std[BOUNDS]
    first = _reach(bins, min(around), zero if min(around) >= zero else 0, std)
    last = _reach(bins, max(around), len(bins) - 1 if max(around) >= zero else zero - 1, std)
    apart = not len(seeds) and (first, last) == (min(around), max(around))
    ends = [*found, *(() if apart else (grid.edges[first], grid.edges[last + 1]))]
    if years is not None:
        ends = list(_without_empty_years(min(ends), max(ends), years, levels.std[BOUNDS]))
    missing = bool(counts[-1] > levels.missing[BOUNDS])
    inside = [*bins[first : last + 1], *atom_counts, *([counts[-1]] if missing else [])]
    return FirstLook(
        low=min(ends),
        high=max(ends),
        atoms=tuple(found),
        often=tuple(often),
        missing=missing,
        heavy=_heavy(grid, bins, first, last, found=found, atom_counts=atom_counts),
        outside=_rest(inside, levels.std[BOUNDS], n),
    )


def _without_empty_years(
    low: float, high: float, counts: Counts, std: float
) -> tuple[float, float]:
    """The ends of a date's range without years that surely hold next to nothing.

    Their count, with two standard deviations of its noise, is less than `EMPTY` of what as many of
    the other years hold.
    """
    grid = year_grid()
    edges = np.array(grid.edges)
    if low < edges[0] or high > edges[-1]:
        return low, high
    first, end = (int(i) for i in np.searchsorted(edges, (low, high)))
    years = counts[1 : grid.bins + 1]
    before = -1
    while before != end - first:
        before = end - first
        for step in (1, -1):
            own = years[first:end][::step]
            cut = np.arange(1, len(own))
            held = np.cumsum(own)[:-1]
            others = (own.sum() - held) / (len(own) - cut)
            empty = held + SURE * std * np.sqrt(cut) <= EMPTY * cut * others
            gone = int(cut[empty][-1]) if empty.any() else 0
            first, end = (first + gone, end) if step > 0 else (first, end - gone)
    return float(edges[first]), float(edges[end])


def _bin_of(grid: PublicGrid, value: float) -> int:
    """The bin that a value would lie in, were it no atom."""
    place = int(np.searchsorted(grid.edges, value, side="right")) - 1
    return min(max(place, 0), grid.bins - 1)


def _reach(bins: Counts, start: int, end: int, std: float) -> int:
    """The last bin from `start` towards `end` that records seem to lie in.

    A bin beside what was found counts above what noise passes with `NEIGHBOUR_DOUBT`, and so do k
    bins together, with that over k⁴: the further a bound is too far, the more it harms. Bounds do
    not reach across zero so: amounts seldom change their sign, and where they do, enough records
    say it.
    """
    at, step = start, 1 if end > start else -1
    counted = range(1, LOOK_AHEAD + 1)
    needed = np.array([cell_threshold(std, k**4, NEIGHBOUR_DOUBT) * math.sqrt(k) for k in counted])
    while at != end:
        ahead = [at + step * i for i in range(1, min(LOOK_AHEAD, abs(end - at)) + 1)]
        sums = np.cumsum(bins[ahead])
        beyond = np.flatnonzero(sums > needed[: len(sums)])
        if not len(beyond):
            break
        at = ahead[int(beyond[-1])]
    return at


def _rest(inside: Sequence[float], std: float, n: int) -> tuple[float, float]:
    """The share of n records that noisy counts leave, and its standard error."""
    share = 1.0 - math.fsum(inside) / n
    return min(1.0, max(0.0, share)), std * math.sqrt(len(inside)) / n


def _heavy(
    grid: PublicGrid,
    bins: Counts,
    first: int,
    last: int,
    *,
    found: Sequence[float],
    atom_counts: Counts,
) -> bool:
    """Whether most records lie in the inner tenth of the range, or on a zero that begins it."""
    if first > last or not grid.atoms:  # dates have no tail
        return False
    edges = np.array(grid.edges[first : last + 2])
    masses = np.maximum(bins[first : last + 1], 0.0)
    reach = float(np.abs(edges).max())
    inner = (np.abs(edges[:-1]) <= 0.1 * reach * (1 + 1e-9)) & (
        np.abs(edges[1:]) <= 0.1 * reach * (1 + 1e-9)
    )
    zero = max(0.0, float(atom_counts[grid.atoms.index(0.0)])) if 0.0 in found else 0.0
    inflated = zero > 0.5 * (zero + masses.sum()) and (edges[0] >= 0.0 or edges[-1] <= 0.0)
    return bool(inflated or masses[inner].sum() > HEAVY * masses.sum())


def bounded(
    column: SchemaColumn, look: FirstLook, fine: Counts | None, levels: Levels, n: int
) -> SchemaColumn:
    """The column with its bounds, atoms and scale; `fine` are the counts of a second look."""
    low, high = _rounded(column, look.low, look.high)
    if fine is not None and look.low < look.high:
        inner = _narrowed(look, fine, levels, step=column.step)
        ends = _rounded(column, *inner) if column.kind is Kind.DATETIME else inner
        low, high = max(low, ends[0]), min(high, ends[1])
    spread_out = not column.step or (high - low) / column.step >= FINE_GRID
    share, error = look.outside
    cut = 2 * levels.tolerated / n if fine is not None else 0.0
    note = Message(
        "About {share:.1%} (± {error:.1%}) of the records lie outside, and at most about {cut:.1%} "
        "more."
        if cut
        else "About {share:.1%} (± {error:.1%}) of the records lie outside.",
        share=share,
        error=1.96 * error,
        cut=cut,
    )
    found = column.model_copy(
        update={
            "low": low,
            "high": high,
            "missing": look.missing,
            "scale": "log" if look.heavy and spread_out else "linear",
            "spikes": look.often if spread_out else (),
            "categories": None,
            "other": None,
            "note": note,
        }
    )
    return _as_learned(found, share, error)


def _rounded(column: SchemaColumn, low: float, high: float) -> tuple[float, float]:
    if column.kind is Kind.DATETIME:
        last = max(low, high - max(column.step, 1.0))  # an edge is the first instant after
        return whole_years(low, last, step=column.step, dtype=column.dtype)
    return round_bounds(low, high, step=column.step, dtype=column.dtype)


def _narrowed(look: FirstLook, fine: Counts, levels: Levels, *, step: float) -> tuple[float, float]:
    """The ends without bins that surely hold few records, outward to round ones, with all atoms."""
    width, bins = (look.high - look.low) / len(fine), fine.tolist()
    below, above = levels.cut(bins), levels.cut(bins[::-1])
    if below + above >= len(fine):
        return look.low, look.high
    low, high = look.low + below * width, look.high - above * width
    unit = max(rung((high - low) / _UNITS), step)
    low, high = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    return min([low, *look.atoms]), max([high, *look.atoms])


def listed(
    column: SchemaColumn,
    keys: Keys,
    counts: Counts,
    levels: Levels,
    n: int,
    beginnings: Sequence[Beginnings] = (),
) -> tuple[SchemaColumn, ListCounts]:
    """The column with its list, sorted, and the counts of its states.

    `keys` are every label that occurs, the known ones first; the last count is of missing cells.
    Where no label was found or known, all become OTHER: the column keeps its missing cells.
    """
    known = len(known_labels(column))
    missing = bool(counts[-1] > levels.missing[LISTS])
    passed = [i for i in range(known, len(keys)) if counts[i] > levels.label]
    if complete(column):
        passed = []
    passed = sorted(passed, key=lambda i: -counts[i])[: MAX_CATEGORIES // 2 - known]
    found = {keys[i][0]: float(counts[i]) for i in (*range(known), *passed)}
    found = {label: count for label, count in found.items() if label != OTHER}
    own, inside = _with_beginnings(found, beginnings, levels)
    inside += [counts[-1]] if missing else []
    share, error = _rest(inside, levels.std[LISTS], n)
    labels, kind = _ordered(list(own), column.kind)
    closed = complete(column) or (bool(labels) and share <= BEYOND_NOISE * error)
    each = [own[label][0] for label in labels] + ([] if closed else [n - math.fsum(inside)])
    terms = [own[label][1] for label in labels] + ([] if closed else [max(1, len(inside))])
    std = [levels.std[LISTS] * math.sqrt(term) for term in terms]
    if closed:
        rest = Message("they get another value")
    else:
        labels, rest = (*labels, OTHER), Message("they become {other}", other=OTHER)
    if kind is Kind.BOOLEAN and not complete(column):
        kind = Kind.CATEGORY
    note = Message(
        "About {share:.1%} (± {error:.1%}) of the records have no listed value: {rest}.",
        share=share,
        error=1.96 * error,
        rest=rest,
    )
    learned = column.model_copy(
        update={
            "kind": kind,
            "categories": labels,
            "other": None if closed else OTHER,
            "missing": missing,
            "note": note,
        }
    )
    if missing:
        each, std = [*each, float(counts[-1])], [*std, levels.std[LISTS]]
    states = ListCounts(np.array(each), np.array(std))
    made_up = 0 if closed or not own else _placeholders(share * n, levels)
    made_up = max(made_up, 1) if beginnings and own and not closed else made_up
    return _as_learned(learned, share, error, known=known, placeholders=made_up), states


def _placeholders(records: float, levels: Levels) -> int:
    """For how many labels `OTHER` stands, if each has half of what one needs to be listed."""
    count = round(2.0 * records / levels.label)
    return count if count > 1 else 0


def _with_beginnings(
    found: Mapping[str, float], beginnings: Sequence[Beginnings], levels: Levels
) -> tuple[dict[str, tuple[float, int]], list[float]]:
    """Labels and beginnings of codes with the counts that are theirs alone, and counts of all.

    A beginning is kept where enough records hold it, and more of them than the noise could make
    hold none of the labels and longer beginnings that are kept.

    Returns:
      by label, its count and how many noisy counts that is made of; counts that add up to all.
    """
    own = {label: (count, 1) for label, count in found.items()}
    whole = dict(found)
    for length, keys, counts in sorted(beginnings, key=lambda one: -one[0]):
        for (start,), count in zip(keys, counts.tolist(), strict=False):
            if count <= levels.label or len(start) < length:
                continue
            within = [label for label in whole if label.startswith(start)]
            rest = count - math.fsum(whole[label] for label in within)
            if rest > BEYOND_NOISE * levels.std[LISTS] * math.sqrt(1 + len(within)):
                own[start + REST] = (rest, 1 + len(within))
                whole = {label: whole[label] for label in whole if label not in within}
                whole[start + REST] = count
    return own, list(whole.values())


def with_absent(column: SchemaColumn, missing: float, levels: Levels, n: int) -> SchemaColumn:
    """A made-up column with its share of missing cells, by a noisy count of them."""
    share = min(1.0, missing / n) if missing > levels.missing[LISTS] else 0.0
    change = {"missing": share > 0.0, "absent": share}
    found = column.model_copy(update=change)
    return found.model_copy(update={"learned": Learned(domain=found.domain_digest)})


def made_up(column: SchemaColumn, absent: float) -> SchemaColumn:
    """A list in which no label was found, with made-up values instead."""
    change = {"kind": Kind.TEXT, "categories": None, "other": None, "absent": absent}
    return column.model_copy(update=change)


def _as_learned(
    column: SchemaColumn, outside: float, error: float, *, known: int = 0, placeholders: int = 0
) -> SchemaColumn:
    """The column, with its domain recorded as learned in this run."""
    learned = Learned(
        domain=column.domain_digest,
        known=known,
        outside=outside,
        error=error,
        placeholders=placeholders,
    )
    return column.model_copy(update={"learned": learned})


def _ordered(labels: list[str], kind: Kind) -> tuple[tuple[str, ...], Kind]:
    """Labels in the order of the numbers or of the known scale they are, else by alphabet."""
    try:
        return tuple(sorted(labels, key=float)), kind
    except ValueError:
        pass
    scale = scale_order(labels) if kind is Kind.ORDERED else None
    if scale is not None:
        return tuple(scale), kind
    return tuple(sorted(labels)), Kind.CATEGORY if kind is Kind.ORDERED else kind


def settled_rule(
    rule: Determines | Combinations, keys: Keys, counts: Counts, levels: Levels
) -> Determines | Combinations:
    """The rule with the mapping or the combinations that enough records hold.

    `keys` are every combination that occurs, labels in the order of the rule's columns.
    """
    passed = [i for i in range(len(keys)) if counts[i] > levels.label]
    if isinstance(rule, Combinations):
        allowed = tuple(sorted(keys[i] for i in passed))
        return rule.model_copy(update={"allowed": allowed, "learned": True})
    ascending = sorted(passed, key=lambda i: counts[i])
    mapping = {keys[i][0]: keys[i][1] for i in ascending}  # the largest count comes last
    return rule.model_copy(update={"mapping": dict(sorted(mapping.items())), "learned": True})
