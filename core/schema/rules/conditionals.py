"""Conditionals: rules "if … then …" that share columns, and how rows that break them are mended.

A row is a tuple of states, one of each column, see `States`. One that breaks a rule gets the tuple
that breaks none and changes least.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd

from core.schema.column import DomainColumn, RuleDomainError, SchemaError
from core.schema.rules.lists import Lookup
from core.schema.rules.relations import tied
from core.schema.rules.rules import IfThen, MissingTogether, Rule, Statement
from core.schema.rules.statements import Bools, Floats, Indices, States, holds

_TARGET, _CONDITION = 1e3, 0.5  # what it costs more to change the target, what conditions name
_NEVER = 1e6
_FREQUENT = 0.25  # what the most frequent tuple is ahead of others that change as much
_MOST_TUPLES = 2_000  # the most frequent ones, which a row may get
_MOST_TRIED = 100

Said = tuple[int, int, int, int]


@dataclass(frozen=True)
class Conditionals:
    """Rules that share columns.

    Attributes:
      said: of each rule the column and the place of its condition, and of its consequence.
      alone: whether each row is mended by itself, so that equal rows stay equal.
    """

    rules: tuple[IfThen, ...]
    columns: tuple[States, ...]
    said: tuple[Said, ...]
    cost: Floats
    alone: bool

    @classmethod
    def of(
        cls,
        rules: Sequence[IfThen],
        columns: Mapping[str, DomainColumn],
        *,
        given: Collection[str],
        fixed: Collection[str],
        target: str | None,
        alone: bool,
    ) -> Conditionals:
        """From rules, refused where some row could not keep them; see `conditionals_of`."""
        said: dict[str, list[Statement]] = {}
        for rule in rules:
            for one in (rule.condition, rule.consequence):
                own = said.setdefault(one.column, [])
                own += [] if one in own else [one]
        names, first = list(said), {rule.condition.column for rule in rules}

        def place(one: Statement) -> tuple[int, int]:
            return names.index(one.column), said[one.column].index(one)

        states = tuple(
            States.of(columns[n], said[n], given=n in given, fixed=n in fixed) for n in names
        )
        places = tuple((*place(rule.condition), *place(rule.consequence)) for rule in rules)
        cost = [1.0 + _CONDITION * (n in first) + _TARGET * (n == target) for n in names]
        made = cls(tuple(rules), states, places, np.array(cost), alone)
        made._check()
        return made

    def settle(
        self,
        cells: pd.DataFrame | Mapping[str, pd.Series[Any]],
        random: np.random.Generator | None = None,
    ) -> dict[str, pd.Series[Any]]:
        """The columns, changed where a row would break a rule.

        A broken row becomes one that changes least among those that other rows are, and gets the
        values of such a row; or the nearest that is allowed, where there is none or `random` is
        None, as for real rows, of which each is moved by itself.
        """
        states = np.stack([one.of_cells(cells[one.column.name]) for one in self.columns], axis=1)
        frame = pd.DataFrame(states)
        key = frame.groupby([*frame], sort=False).ngroup().to_numpy()
        tuples, counts = frame.drop_duplicates().to_numpy(), np.bincount(key)
        broken = self._broken(tuples)
        rows = np.split(np.argsort(key, kind="stable"), np.cumsum(counts)[:-1])
        good = np.argsort(-counts, kind="stable")[: 0 if random is None or self.alone else None]
        good = good[~broken[good]][:_MOST_TUPLES]
        opens = [np.isin(tuples[good, i], s.states[s.open]) for i, s in enumerate(self.columns)]
        price = np.where(np.stack(opens, axis=1), self.cost, _NEVER)
        wanted, donor = states.copy(), np.full(len(states), -1)
        for index in np.flatnonzero(broken):
            total = ((tuples[good] != tuples[index]) * price).sum(axis=1)
            total -= _FREQUENT * counts[good] / len(states)
            if len(good) and random is not None and total.min() < _NEVER / 2:
                best = good[total.argmin()]
                wanted[rows[index]] = tuples[best]
                donor[rows[index]] = random.choice(rows[best], len(rows[index]))
            elif (nearest := self._nearest(tuples[index])) is not None:
                wanted[rows[index]] = nearest
        return {
            one.column.name: one.moved(cells[one.column.name], moving, wanted[moving, i], donor)
            for i, one in enumerate(self.columns)
            if len(moving := np.flatnonzero(states[:, i] != wanted[:, i]))
        }

    def _broken(self, tuples: Indices, said: Sequence[Said] | None = None) -> Bools:
        """Which tuples break a rule, bool [tuples]; one of some rules."""
        broken = np.zeros(len(tuples), dtype=bool)
        for i, a, j, b in self.said if said is None else said:
            broken |= (tuples[:, i] >> a & ~(tuples[:, j] >> b) & 1).astype(bool)
        return broken

    def _nearest(self, start: Indices, held: int = -1, most: int = _MOST_TRIED) -> Indices | None:
        """The tuple that keeps all rules and changes least; None where there is none.

        Args:
          start: the states as they are; below 0 for any that the column has.
          held: a column that stays as it is.
          most: ways to change a row that are gone on with; where all fail, ten times as many.
        """
        left_out = False
        found, spent, order = start[None], np.zeros(1), np.argsort(-self.cost, kind="stable")
        for depth, i in enumerate(order.tolist(), start=1):
            one, now, chosen = self.columns[i], start[i], set(order[:depth].tolist())
            said = [s for s in self.said if i in (s[0], s[2]) and chosen.issuperset((s[0], s[2]))]
            every = np.unique(one.states if now < 0 else one.states[one.open & (i != held)])
            choices = every if now < 0 else np.append(now, every[every != now])
            spent = np.repeat(spent, len(choices))
            found = np.repeat(found, len(choices), axis=0)
            found[:, i] = np.resize(choices, len(found))
            spent += self.cost[i] * (found[:, i] != now)
            kept = np.flatnonzero(~self._broken(found, said))
            left_out |= len(kept) > most
            kept = kept[np.argsort(spent[kept], kind="stable")][:most]
            found, spent = found[kept], spent[kept]
        if not len(found) and left_out:
            return self._nearest(start, held, 10 * most)
        return found[0] if len(found) else None

    def _check(self) -> None:
        """Refuse rules that some row could not keep."""

        def kept(held: Mapping[int, int], stays: int = -1) -> bool:
            start = np.array([held.get(i, -1) for i in range(len(self.columns))])
            return self._nearest(start, stays) is not None

        every = [np.unique(one.states).tolist() for one in self.columns]
        bound = [i for i, one in enumerate(self.columns) if not one.open.all()]
        for rule, (i, a, j, _) in zip(self.rules, self.said, strict=True):
            true = [state for state in every[i] if state >> a & 1]
            if true and not any(kept({i: state}, i) for state in true):
                raise _no_room(rule, self.columns[j : j + 1])
        if not all(
            kept(dict(zip(bound, one, strict=True))) for one in product(*(every[i] for i in bound))
        ):
            raise _no_room(self.rules[0], [self.columns[i] for i in bound])


def _no_room(rule: IfThen, columns: Sequence[States]) -> RuleDomainError:
    return RuleDomainError(
        "Rule '{rule}': some rows could not keep it, given what {names} may be and the other "
        "rules. Change it, or remove one of them.",
        rule=rule.text,
        names=", ".join(f"'{one.column.name}'" for one in columns),
    )


def conditionals_of(
    rules: Sequence[Rule],
    columns: Mapping[str, DomainColumn],
    lookups: Sequence[Lookup],
    *,
    given: Collection[str],
    fixed: Collection[str],
    constant: Collection[str],
    target: str | None,
) -> Iterator[Conditionals]:
    """The conditional rules of a table, those that share columns together; a person's own first.

    What they say of a column that is looked up they say of its source.

    Args:
      given: columns that others bound, which may become missing and change no further.
      fixed, constant: columns that stay as they are; a person's own rules change constant ones.
    """
    results = {lookup.result.name: lookup for lookup in lookups}

    def of_source(one: Statement) -> Statement:
        while lookup := results.get(one.column):
            labels = pd.Series([*(columns[lookup.source].categories or ()), None], dtype="str")
            true = holds(one, lookup.decode(labels), columns[one.column])
            values = tuple(labels[true != true[-1]].dropna())
            relation: Literal["in", "not in"] = "not in" if true[-1] else "in"
            one = Statement(column=lookup.source, relation=relation, values=values)
        return one

    found = [
        IfThen(condition=of_source(rule.condition), consequence=of_source(rule.consequence))
        for rule in _all(rules)
    ]
    steady = [rule for rule in found if set(constant).issuperset(rule.columns)]
    rest = [rule for rule in found if rule not in steady]
    for some, held in ((steady, fixed), (rest, {*fixed, *constant})):
        for own in tied(some, lambda rule: rule.columns):
            yield Conditionals.of(
                own, columns, given=given, fixed=held, target=target, alone=some is steady
            )


def _all(rules: Sequence[Rule]) -> Iterator[IfThen]:
    """The conditional rules, and those that columns which are missing together stay so."""
    for rule in rules:
        if isinstance(rule, IfThen | MissingTogether) and len(set(rule.columns)) < len(
            rule.columns
        ):
            raise SchemaError("Rule '{rule}' names a column twice.", rule=rule.text)
        if isinstance(rule, IfThen):
            yield rule
        if isinstance(rule, MissingTogether):
            first, *others = (Statement(column=name, relation="missing") for name in rule.names)
            for one in others:
                yield IfThen(condition=first, consequence=one)
                yield IfThen(condition=one, consequence=first)
