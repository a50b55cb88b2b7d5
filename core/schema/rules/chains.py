"""Chains: columns that rules about numbers tie together, and how their values are settled.

Each relation is entered by a column that is settled already, the first of them the root; of the
others one is modelled and one computed. The first pass goes from the far ends to the root and
finds, for each row, which values leave room for what comes after; the second goes back out and
puts each value there. So every rule and every bound holds, whatever a model draws.

Where a walk draws a person's events, those that end by a day of the person's are drawn so, and
models see their date as it is: such a limit is kept beside the relations, and no way to a value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

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
    """Columns tied together by rules.

    Attributes:
      roots: that no relation leads to; several where only limits tie them together.
      limits: what events are never above, which holds for a person.
    """

    columns: Mapping[str, Column]
    roots: tuple[str, ...]
    links: tuple[Link, ...]
    constant: frozenset[str]
    limits: tuple[Relation, ...] = ()

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
        there = self._there(self._absent(given))
        bounds = self._bounds(len(given[self.roots[0]]), there)
        values: dict[str, Floats] = {}
        for one in self._turns:
            link = one if isinstance(one, Link) else None
            name = one if isinstance(one, str) else one.modelled
            if self.limits and name not in self.constant and self.constant.issuperset(values):
                bounds = self._bounds(len(bounds[name][0]), there, values)  # what limits leave
            room = self._room(name, values, bounds, there)
            values[name] = self._put(name, _proposed(name, link, values, given), room, people)
            if link is not None and link.computed is not None:
                computed = self.columns[link.computed]
                exact = inside(link.relation.compute(link.computed, values), computed)
                values[link.computed] = np.clip(exact, *outer(computed))
        return values

    def check(self) -> None:
        """Refuse rules that no row could keep."""
        relations = [link.relation for link in reversed(self.links)] + list(self.limits)
        bounds = self._bounds(1, {one.text: np.array([True]) for one in relations})
        for relation in relations:
            if any(bounds[name][0][0] > bounds[name][1][0] for name in relation.names):
                raise RuleDomainError(
                    "Rule '{rule}' cannot hold within the bounds declared for {names}. Change "
                    "the bounds, or remove the rule.",
                    rule=relation.text,
                    names=_quoted(relation.names),
                )

    @cached_property
    def _turns(self) -> list[str | Link]:
        """Roots and links as they are settled: what holds for a person first, its limits last."""
        late = {limit.high for limit in self.limits}
        for link in self.links:
            late |= {link.modelled} if link.entry in late else set()
        turns: list[str | Link] = [*self.roots, *self.links]

        def rank(one: str | Link) -> tuple[bool, bool]:
            name = one if isinstance(one, str) else one.modelled
            return name not in self.constant, name in late

        return sorted(turns, key=rank)

    def _allowed(self, relation: Relation, name: str, bounds: Mapping[str, Interval]) -> Interval:
        return inward(relation.allows(name, bounds), self.columns[name])

    def _absent(self, given: Mapping[str, Floats]) -> dict[str, Bools]:
        absent = {root: np.isnan(given[root]) for root in self.roots}
        for link in self.links:
            shown = link.modelled if link.gap is None else link.gap.column.name
            absent[link.modelled] = np.isnan(given[shown if shown in given else link.modelled])
            if link.computed is not None:
                absent[link.computed] = absent[link.entry] | absent[link.modelled]
        return absent

    def _there(self, absent: Mapping[str, Bools]) -> dict[str, Bools]:
        """Which rows each relation speaks of, by its text."""
        relations = [*(link.relation for link in self.links), *self.limits]
        return {
            one.text: ~np.any([absent[name] for name in one.names], axis=0) for one in relations
        }

    def _bounds(
        self, n: int, there: Mapping[str, Bools], settled: Mapping[str, Floats] | None = None
    ) -> dict[str, Interval]:
        """For each row, the values of each column that leave room for what comes after it."""
        bounds = {name: _interval(column, n) for name, column in self.columns.items()}
        bounds |= {name: (values, values) for name, values in (settled or {}).items()}
        for link in reversed(self.links):
            self._limit(bounds, there)
            room = self._allowed(link.relation, link.entry, bounds)
            bounds[link.entry] = _within(bounds[link.entry], room, there[link.relation.text])
        self._limit(bounds, there)
        return bounds

    def _limit(self, bounds: dict[str, Interval], there: Mapping[str, Bools]) -> None:
        """Narrow the bounds of what limits bind, in place."""
        for limit in self.limits:
            for name in limit.names:
                room = self._allowed(limit, name, bounds)
                bounds[name] = _within(bounds[name], room, there[limit.text])

    def _room(
        self,
        name: str,
        values: Mapping[str, Floats],
        bounds: Mapping[str, Interval],
        there: Mapping[str, Bools],
    ) -> Interval:
        """Where a column may lie, given what is settled of those that bound it."""
        if name in values:
            return values[name], values[name]
        room = bounds[name]
        for link in (one for one in self.links if one.modelled == name):
            entry = bounds[link.entry]
            if link.entry in values or link.entry not in self.constant:
                entry = self._room(link.entry, values, bounds, there)
            allowed = self._allowed(link.relation, name, {**bounds, link.entry: entry})
            room = _within(room, allowed, there[link.relation.text])
        for limit in (one for one in self.limits if one.high == name):
            low = self._room(limit.low, values, bounds, there)
            allowed = self._allowed(limit, name, {**bounds, limit.low: low})
            room = _within(room, allowed, there[limit.text])
        return room

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


def _proposed(
    name: str, link: Link | None, values: Mapping[str, Floats], given: Mapping[str, Floats]
) -> Floats:
    """What a model draws for a column."""
    if link is not None and link.gap is not None and link.gap.column.name in given:
        return link.gap.decode(values[link.entry], given[link.gap.column.name])
    return given[name]


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
    walked: Collection[str] = (),
) -> list[Chain]:
    """The chains that relations make; constant columns are settled first, then what sorts.

    Args:
      walked: columns that sort events which are drawn one after another.
    """
    results = {relation.result for relation in relations}
    limits = list(_limits(relations, walked, constant))

    def rank(name: str) -> tuple[bool, bool, bool, bool]:
        return name != target, name not in constant, name != order, name in results

    chains = []
    for own in tied(relations, lambda relation: relation.names):
        names = {name for relation in own for name in relation.names}
        roots, links = list[str](), list[Link]()
        left = set(names)
        while left:
            root = min((name for name in columns if name in left), key=rank)
            led = [one for one in own if one not in limits]
            links += _walk(root, led, columns, constant=constant, taken=taken)
            roots.append(root)
            left -= {root, *(name for link in links for name in link.relation.names)}
        inner = {name: column for name, column in columns.items() if name in names}
        kept = tuple(one for one in own if one in limits)
        chain = Chain(inner, tuple(roots), tuple(links), frozenset(constant) & names, kept)
        chain.check()
        chains.append(chain)
    return chains


def _limits(
    relations: Sequence[Relation], walked: Collection[str], constant: Collection[str]
) -> Iterator[Relation]:
    """What events that are drawn one after another, or end after they begin, are never above."""
    later, orders = set(walked), [one for one in relations if one.ordered and not one.equal]
    for _ in orders:  # as many columns may follow on one another
        later |= {one.high for one in orders if one.low in later and one.high not in constant}
    for one in orders:
        if one.between is None and one.low in later and one.high in constant:
            yield one


def _walk(
    root: str,
    relations: list[Relation],
    columns: Mapping[str, DomainColumn],
    *,
    constant: Collection[str],
    taken: Collection[str],
) -> Iterator[Link]:
    """Links to all that relations tie to a root."""
    settled, left = {root}, list(relations)
    degree = {name: sum(name in r.names for r in relations) for name in columns}
    while tied_to := [one for one in left if settled.intersection(one.names)]:
        relation = tied_to[0]
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
