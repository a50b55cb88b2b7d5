"""Chains: columns that rules about numbers tie together, and how their values are settled.

Each relation is entered by a column that is settled already, the first of them the root; of the
others one is modelled and one computed. The first pass goes from the far ends to the root and
finds, for each row, which values leave room for what comes after; the second goes back out and
puts each value there. So every rule and every bound holds, whatever a model draws.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.schema.column import Column, DomainColumn, RuleDomainError, SchemaError
from core.schema.rules.gaps import Gap, gap_of
from core.schema.rules.relations import Interval, Relation, inside, inward, outer, tied

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Link:
    """A relation with the way it is walked; models see `modelled` itself, or `gap` in its stead."""

    relation: Relation
    entry: str
    modelled: str
    computed: str | None
    gap: Gap | None


@dataclass(frozen=True)
class Chain:
    """Columns tied together by rules."""

    columns: Mapping[str, Column]
    root: str
    links: tuple[Link, ...]
    constant: frozenset[str]

    @property
    def computed(self) -> frozenset[str]:
        """Columns that are computed from others."""
        return frozenset(link.computed for link in self.links if link.computed is not None)

    @property
    def replaced(self) -> frozenset[str]:
        """Columns that models do not see."""
        return self.computed | {link.modelled for link in self.links if link.gap}

    def settle(
        self, given: Mapping[str, Floats], people: NDArray[np.intp] | None = None
    ) -> dict[str, Floats]:
        """Values that keep every rule and bound, the nearest to those given, one after the other.

        Args:
          given: float64 [n], NaN for missing, of the root and of each modelled column or its gap.
          people: whose each row is [n]; constant columns then stay constant.

        Returns:
          Every column, float64 [n]; a computed one is missing where one it is computed from is.
        """
        absent = self._absent(given)
        there = [~np.any([absent[name] for name in link.relation.names], 0) for link in self.links]
        bounds = self._bounds(len(given[self.root]), there)
        values = {self.root: self._put(self.root, given[self.root], bounds[self.root], people)}
        for link, here in zip(self.links, there, strict=True):
            entry, name, computed = values[link.entry], link.modelled, link.computed
            if link.gap is not None and link.gap.column.name in given:
                proposal = link.gap.decode(entry, given[link.gap.column.name])
            else:
                proposal = given[name]
            known = bounds | {link.entry: (entry, entry)}
            room = _within(bounds[name], self._allowed(link.relation, name, known), here)
            values[name] = self._put(name, proposal, room, people)
            if computed is not None:
                exact = inside(link.relation.compute(computed, values), self.columns[computed])
                values[computed] = np.clip(exact, *outer(self.columns[computed]))
        return values

    def check(self) -> None:
        """Refuse rules that no row could keep."""
        bounds = {name: _interval(column, 1) for name, column in self.columns.items()}
        for link in reversed(self.links):
            room = self._allowed(link.relation, link.entry, bounds)
            bounds[link.entry] = _within(bounds[link.entry], room, np.array([True]))
            low, high = bounds[link.entry]
            if low[0] > high[0]:
                raise RuleDomainError(
                    "Rule '{rule}' cannot hold within the bounds declared for {names}. Change "
                    "the bounds, or remove the rule.",
                    rule=link.relation.text,
                    names=_quoted(link.relation.names),
                )

    def _allowed(self, relation: Relation, name: str, bounds: Mapping[str, Interval]) -> Interval:
        return inward(relation.allows(name, bounds), self.columns[name])

    def _absent(self, given: Mapping[str, Floats]) -> dict[str, Bools]:
        absent = {self.root: np.isnan(given[self.root])}
        for link in self.links:
            shown = link.modelled if link.gap is None else link.gap.column.name
            absent[link.modelled] = np.isnan(given[shown if shown in given else link.modelled])
            if link.computed is not None:
                absent[link.computed] = absent[link.entry] | absent[link.modelled]
        return absent

    def _bounds(self, n: int, there: list[Bools]) -> dict[str, Interval]:
        """For each row, the values of each column that leave room for what comes after it."""
        bounds = {name: _interval(column, n) for name, column in self.columns.items()}
        for link, here in zip(reversed(self.links), reversed(there), strict=True):
            room = self._allowed(link.relation, link.entry, bounds)
            bounds[link.entry] = _within(bounds[link.entry], room, here)
        return bounds

    def _put(
        self, name: str, proposal: Floats, room: Interval, people: NDArray[np.intp] | None
    ) -> Floats:
        """The proposal moved to the nearest value with room; the same in all rows of a person."""
        low, high = room
        if people is not None and name in self.constant:
            least = np.full(int(people.max(initial=0)) + 1, -np.inf)
            most = -least
            np.maximum.at(least, people, low)
            np.minimum.at(most, people, high)
            low, high = least[people], most[people]
        return np.clip(inside(proposal, self.columns[name]), low, high)


def _interval(column: Column, n: int) -> Interval:
    low, high = outer(column)
    return np.full(n, low), np.full(n, high)


def _within(bounds: Interval, room: Interval, here: Bools) -> Interval:
    """Bounds narrowed where a relation speaks of the row."""
    low = np.where(here, np.maximum(bounds[0], room[0]), bounds[0])
    return low, np.where(here, np.minimum(bounds[1], room[1]), bounds[1])


def chains_of(
    relations: list[Relation],
    columns: Mapping[str, DomainColumn],
    *,
    target: str | None,
    constant: Collection[str],
    taken: Collection[str],
    order: str | None = None,
) -> list[Chain]:
    """The chains that relations make; constant columns are settled first, then what sorts."""
    results = {relation.result for relation in relations}

    def rank(name: str) -> tuple[bool, bool, bool, bool]:
        return name != target, name not in constant, name != order, name in results

    chains = []
    for own in tied(relations, lambda relation: relation.names):
        names = {name for relation in own for name in relation.names}
        root = min((name for name in columns if name in names), key=rank)
        links = tuple(_walk(root, own, columns, constant=constant, taken=taken))
        inner = {name: column for name, column in columns.items() if name in names}
        chain = Chain(inner, root, links, frozenset(constant) & names)
        chain.check()
        chains.append(chain)
    return chains


def _walk(
    root: str,
    relations: list[Relation],
    columns: Mapping[str, DomainColumn],
    *,
    constant: Collection[str],
    taken: Collection[str],
) -> Iterator[Link]:
    settled, left = {root}, list(relations)
    degree = {name: sum(name in r.names for r in relations) for name in columns}
    while left:
        relation = next(one for one in left if settled.intersection(one.names))
        left.remove(relation)
        entries = [name for name in relation.names if name in settled]
        if len(entries) > 1:
            raise SchemaError(
                "Rule '{rule}' closes a circle with other rules: it follows from them or "
                "contradicts them. Remove it.",
                rule=relation.text,
            )
        link = _link(relation, entries[0], columns, constant=constant, taken=taken)
        _check_grid(link, columns, leaf=degree.get(link.computed or "", 0) == 1)
        settled.update(relation.names)
        yield link


def _link(
    relation: Relation,
    entry: str,
    columns: Mapping[str, DomainColumn],
    *,
    constant: Collection[str],
    taken: Collection[str],
) -> Link:
    rest = [name for name in relation.names if name != entry]  # low before high before between
    fixed = [name for name in rest if name in constant]
    computed = None
    if len(rest) > 1:
        computed = relation.result if relation.result in rest else rest[-1]
        if len(fixed) == 1 and fixed == [computed]:
            computed = next(name for name in rest if name != computed)
    modelled = next(name for name in rest if name != computed)
    if fixed and entry not in constant or (computed in fixed and modelled not in fixed):
        raise SchemaError(
            "Rule '{rule}': '{name}' holds one value for a person but would follow from "
            "columns that do not. Remove the rule, or declare those columns constant too.",
            rule=relation.text,
            name=fixed[0],
        )
    may_lack = columns[entry].missing or columns[modelled].missing
    if computed is not None and may_lack and not columns[computed].missing:
        raise RuleDomainError(
            "Rule '{rule}': '{name}' is computed from columns that may be missing. Declare "
            "that it may be missing too.",
            rule=relation.text,
            name=computed,
        )
    ends = {relation.low, relation.high} == {entry, modelled}
    dated = relation.unit != 1.0
    gap = None
    if ends and (relation.ordered or dated):
        gap = gap_of(relation, entry, columns, taken=taken)
    return Link(relation, entry, modelled, computed, gap)


def _check_grid(link: Link, columns: Mapping[str, Column], *, leaf: bool) -> None:
    relation = link.relation
    if relation.between is None or link.computed is None:
        return
    low, high, between = (columns[name] for name in (relation.low, relation.high, relation.between))
    u = relation.unit
    steps = (low.step, high.step, u * between.step)
    if max(steps) - min(steps) <= 1e-9 * max(steps):
        apart = (outer(high)[0] - outer(low)[0] - u * outer(between)[0]) / (max(steps) or 1.0)
        if max(steps) == 0.0 or abs(apart - round(apart)) <= 1e-6:
            return
    computed = columns[link.computed]
    size = (outer(computed)[1] - outer(computed)[0]) * (u if computed is between else 1.0)
    if leaf and computed.step == 0.0 and size >= max(steps):
        return
    raise RuleDomainError(
        "Rule '{rule}': {names} are not counted in the same steps (but in {steps}). Declare "
        "one step, and bounds that are multiples of it, or remove the rule.",
        rule=relation.text,
        names=_quoted(relation.names),
        steps=", ".join(f"{columns[name].step:g}" for name in relation.names),
    )


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
