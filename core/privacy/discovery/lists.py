"""From noisy counts to lists of labels and rules, by released numbers and public ones alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.message import Message
from core.privacy.discovery.bins_in_a_row import Counts, reach
from core.privacy.discovery.open_domain import known_labels, possible_labels
from core.privacy.discovery.planning import LISTS, NEIGHBOUR_DOUBT, Levels, complete
from core.privacy.discovery.ranges import marked_learned, rest_of
from core.privacy.discovery.raw_rows import Keys
from core.privacy.discovery.thresholds import cell_threshold
from core.proposing.kinds import numbers_first, scale_order
from core.proposing.rare import OTHER
from core.schema.column import MAX_CATEGORIES, Kind, Learned, SchemaColumn
from core.schema.labels import REST
from core.schema.rules.rules import Combinations, Determines

BEYOND_NOISE = 3.0  # standard errors from which on a list is taken to lack some labels
_NEAREST, _ANOTHER = Message("they move to the nearest"), Message("they get another value")
_OTHER = Message("they become {other}", other=OTHER)
Beginnings = tuple[int, Keys, Counts]  # of codes, all of one length


@dataclass(frozen=True)
class ListCounts:
    """Noisy counts of a column's states or ranges, which the model needs too.

    Attributes:
      counts: float64 [states]: of each label, then of missing cells where there may be any; or
        [ranges] of a number.
      std: float64, standard deviations of the counts.
      edges: float64 [ranges + 1], ascending, the left one of each inside it; None of a list.
    """

    counts: Counts
    std: Counts
    edges: Counts | None = None


@dataclass(frozen=True)
class Ruled:
    """Labels of a column that learned rules showed, beside those that its own counts show.

    Attributes:
      only: all that those rules have that its labels decide; None without such a rule.
      also: what others give it.
    """

    only: frozenset[str] | None = None
    also: frozenset[str] = frozenset()


UNRULED = Ruled()


def listed(
    column: SchemaColumn,
    keys: Keys,
    counts: Counts,
    levels: Levels,
    n: int,
    *,
    beginnings: Sequence[Beginnings] = (),
    ruled: Ruled = UNRULED,
) -> tuple[SchemaColumn, ListCounts]:
    """The column with its list, sorted, and the counts of its states.

    Where no label was found or known, all become OTHER: the column keeps its missing cells.

    Args:
      keys: every label that occurs, the known ones first; the last count is of missing cells.
      ruled: what learned rules need of the list.
    """
    known = len(known_labels(column))
    missing = bool(counts[-1] > levels.missing[LISTS])
    passed = shown(column, keys, counts, levels, ruled)
    own, inside = _with_beginnings(_most(keys, counts, passed, known), beginnings, levels)
    inside += [counts[-1]] if missing else []
    share, error = rest_of(inside, levels.std[LISTS], n)
    labels, kind = _ordered(list(own), column.kind)
    # made-up codes for a rest that is none harm nobody, another label that is none does
    least = (2.0 if beginnings else BEYOND_NOISE) * error
    numbers = bool(labels) and column.dtype.lower().startswith(("int", "uint", "float"))
    nearest = not beginnings and (numbers or _are_numbers(labels))
    closed = complete(column) or nearest or (bool(labels) and share <= least)
    each = [own[label][0] for label in labels] + ([] if closed else [n - math.fsum(inside)])
    terms = [own[label][1] for label in labels] + ([] if closed else [max(1, len(inside))])
    std = [levels.std[LISTS] * math.sqrt(term) for term in terms]
    if nearest:  # nobody knows which numbers the rest is near to
        near = share * n / len(labels)
        each, std = [count + near for count in each], [math.hypot(one, near) for one in std]
    if missing:
        each, std = [*each, float(counts[-1])], [*std, levels.std[LISTS]]
    change = {
        "kind": Kind.CATEGORY if kind is Kind.BOOLEAN and not complete(column) else kind,
        "categories": labels if closed else (*labels, OTHER),
        "other": None if closed else OTHER,
        "missing": missing,
        "note": Message(
            "About {share:.1%} (± {error:.1%}) of the records have no listed value: {rest}.",
            share=share,
            error=1.96 * error,
            rest=_NEAREST if nearest else _ANOTHER if closed else _OTHER,
        ),
    }
    made_up = 0 if closed or not own else _placeholders(share * n, levels)
    made_up = max(made_up, 1) if beginnings and own and not closed else made_up
    learned = marked_learned(
        column.model_copy(update=change), share, error,
        known=known, placeholders=made_up, nearest=nearest,
    )  # fmt: skip
    return learned, ListCounts(np.array(each), np.array(std))


def labels_ruled(rules: Iterable[Determines | Combinations], name: str) -> Ruled:
    """What the learned rules need of a column's list.

    A label of which they say nothing would be given any other's result, and without one that they
    name none of them could be kept.
    """
    only, also = list[Collection[str]](), set[str]()
    for rule in rules:
        if isinstance(rule, Determines) and rule.mapping:
            only += [rule.mapping] if rule.source == name else []
            also |= set(rule.mapping.values()) if rule.result == name else set()
        elif isinstance(rule, Combinations) and rule.allowed and name in rule.names:
            only.append([labels[rule.names.index(name)] for labels in rule.allowed])
    return Ruled(frozenset.intersection(*map(frozenset, only)) if only else None, frozenset(also))


def shown(
    column: SchemaColumn, keys: Keys, counts: Counts, levels: Levels, ruled: Ruled
) -> NDArray[np.bool_]:
    """Which keys are listed: those known, those that a rule showed, those that pass a threshold.

    That small whole numbers are there says nothing of anybody: noise alone must not pass for them.
    """
    known, labels = len(known_labels(column)), [label for (label,) in keys]
    passed: NDArray[np.bool_] = counts[:-1] > levels.label
    possible = slice(known, known + len(possible_labels(column)))
    alone = not passed[possible.stop :].any()  # a scale, not years or such
    passed[possible] = _numbers_there(column.kind, counts[possible], levels.std[LISTS], alone)
    if ruled.only is not None:
        passed = np.isin(labels, list(ruled.only))
    passed |= np.isin(labels, list(ruled.also))
    passed &= not complete(column)
    passed[:known] = True
    passed[[label == OTHER for label in labels]] = False
    return passed


def _most(keys: Keys, counts: Counts, passed: NDArray[np.bool_], known: int) -> dict[str, float]:
    """Counts of labels that are listed, as many as a list may have, the known ones first."""
    kept = sorted(np.flatnonzero(passed).tolist(), key=lambda i: (i >= known, -counts[i]))
    return {keys[i][0]: float(counts[i]) for i in kept[: MAX_CATEGORIES - 1]}


def _numbers_there(kind: Kind, counts: Counts, std: float, alone: bool) -> NDArray[np.bool_]:
    """Which of the numbers 0, 1, … seem to be there; steps of a scale lie beside one another.

    Args:
      alone: whether the list shows nothing else: then the clearest one is there.
    """
    there: NDArray[np.bool_] = counts > cell_threshold(std, max(1, len(counts)))
    if kind is Kind.ORDERED and len(counts) and (alone or there.any()):
        most = int(counts.argmax())
        ends = reach(counts, most, 0, std), reach(counts, most, len(counts) - 1, std)
        beside = slice(ends[0], ends[1] + 1)
        there[beside] = counts[beside] > cell_threshold(std, 1, NEIGHBOUR_DOUBT)
    return there


def _are_numbers(labels: Sequence[str]) -> bool:
    """Whether all labels are numbers, but for one word such as N; codes stay codes that occur."""
    words = 0
    for label in labels:
        try:
            words += not math.isfinite(float(label))
        except ValueError:
            words += 1
    return words <= 1 < len(labels)


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
        counted = zip(counts.tolist(), (start for (start,) in keys), strict=False)
        passed = [one for one in counted if one[0] > levels.label and len(one[1]) == length]
        for count, start in sorted(passed, reverse=True):
            if len(own) >= MAX_CATEGORIES - 1:
                break
            within = [label for label in whole if label.startswith(start)]
            rest = count - math.fsum(whole[label] for label in within)
            if rest > BEYOND_NOISE * levels.std[LISTS] * math.sqrt(1 + len(within)):
                own[start + REST] = (rest, 1 + len(within))
                whole = {label: whole[label] for label in whole if label not in within}
                whole[start + REST] = count
    return own, list(whole.values())


def with_absent(column: SchemaColumn, missing: float, levels: Levels, n: int) -> SchemaColumn:
    """A made-up column with its share of missing cells, by a noisy count of them.

    Where noise alone may be what is not missing, all is: an empty column stays empty.
    """
    share = missing / n if missing > levels.missing[LISTS] else 0.0
    share = 1.0 if n - missing <= levels.missing[LISTS] else share
    change = {"missing": share > 0.0, "absent": share}
    found = column.model_copy(update=change)
    return found.model_copy(update={"learned": Learned(domain=found.domain_digest)})


def made_up(column: SchemaColumn, absent: float) -> SchemaColumn:
    """A list in which no label was found, with made-up values instead."""
    change = {"kind": Kind.TEXT, "categories": None, "other": None, "absent": absent}
    return column.model_copy(update=change)


def _ordered(labels: list[str], kind: Kind) -> tuple[tuple[str, ...], Kind]:
    """Labels in the order of the numbers or of the known scale they are, else by alphabet."""
    try:
        return tuple(sorted(labels, key=float)), kind
    except ValueError:
        pass
    scale = scale_order(labels) if kind is Kind.ORDERED else None
    if scale is not None:
        return tuple(scale), kind
    return tuple(sorted(labels, key=numbers_first)), Kind.CATEGORY if kind is Kind.ORDERED else kind


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
