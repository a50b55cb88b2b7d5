"""Steps: from the columns of a table to those that models see, by the table's rules, and back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.schema.column import DomainColumn, RuleDomainError, SchemaError
from core.schema.labels import (
    code_indices,
    from_labels,
    from_numbers,
    to_labels,
    to_numbers,
    with_codes,
)
from core.schema.person import Person
from core.schema.rules.chains import Chain, chains_of
from core.schema.rules.conditionals import Conditionals, conditionals_of
from core.schema.rules.following import Following
from core.schema.rules.gaps import free_name
from core.schema.rules.lists import Joint, Lookup, check_lists
from core.schema.rules.relations import relations_of
from core.schema.rules.rules import Combinations, Determines, Follows, IfThen, NumberRule, Rule

Columns = Mapping[str, DomainColumn]


@dataclass(frozen=True)
class Steps:
    """What becomes of the columns of a table that has rules."""

    source: tuple[DomainColumn, ...]
    columns: tuple[DomainColumn, ...]
    chains: tuple[Chain, ...]
    joints: tuple[Joint, ...]
    lookups: tuple[Lookup, ...]
    conditionals: tuple[Conditionals, ...]
    constant: frozenset[str]
    following: Following | None

    @classmethod
    def of(
        cls,
        columns: Sequence[DomainColumn],
        rules: Sequence[Rule],
        *,
        target: str | None,
        tagged: Collection[str],
        person: Person | None,
    ) -> Steps:
        """The steps that keep the rules of a table; none may speak of tagged (hidden) columns."""
        constant, order = ((), None) if person is None else (person.constant, person.order)
        by_name = {column.name: column for column in columns if column.modelled}
        names = {column.name for column in columns}
        for rule in rules:
            _check_names(rule, by_name, tagged)
            _check_codes(rule, by_name)
        joints = tuple(_joints(rules, by_name, target, constant, names))
        lookups = tuple(_lookups(rules, by_name, target, constant))
        numbers = tuple(r for r in rules if isinstance(r, NumberRule))
        chains = tuple(
            chains_of(
                relations_of(numbers, by_name),
                by_name,
                target=target,
                constant=frozenset(constant),
                taken=names,
                order=order,
                walked=() if person is None else person.walked_by,
            )
        )
        ruled = {name for rule in rules if isinstance(rule, IfThen) for name in rule.columns}
        fixed = [{column.name for column in joint.columns} for joint in joints]
        fixed += [set(chain.columns) for chain in chains if chain.computed]
        fixed += [{o.source, o.result.name} for o in lookups if o.open and o.result.name in ruled]
        conditionals = tuple(
            conditionals_of(
                rules,
                by_name,
                [lookup for lookup in lookups if not lookup.open],
                given={name for chain in chains for name in chain.columns},
                fixed=set().union(*fixed),
                constant=constant,
                target=target,
            )
        )
        cut = by_name | {
            one.column.name: one.column.model_copy(update={"cuts": one.cuts})
            for conditional in conditionals
            for one in conditional.columns
        }
        shown = _shown(cut, joints, lookups, chains)
        seen = tuple({one.name: one for one in shown.values() if one is not None}.values())
        steady = {
            column.name for name, column in shown.items() if column is not None and name in constant
        }
        source = tuple(by_name.values())
        following = Following.of(rules, by_name, constant=constant, order=order)
        kept = (chains, joints, lookups, conditionals)
        return cls(source, seen, *kept, frozenset(steady), following)

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns of real rows that are looked at; what is computed is not."""
        computed = {lookup.result.name for lookup in self.lookups if not lookup.open}
        computed |= {name for chain in self.chains for name in chain.computed}
        computed -= {one.column.name for each in self.conditionals for one in each.columns}
        return tuple(column.name for column in self.source if column.name not in computed)

    def sorts_as(self, name: str | None) -> str | None:
        """The column that models see and that sorts a person's rows as this one does, if any."""
        for link in (link for chain in self.chains for link in chain.links):
            if link.modelled == name and link.gap is not None and link.gap.upwards:
                return link.gap.column.name if link.entry in self.constant else None
        return name

    def made_of(self, name: str) -> set[str]:
        """The columns of the table that one which models see stands for."""
        joined = {one.column.name: {c.name for c in one.columns} for one in self.joints}
        links = [link for chain in self.chains for link in chain.links]
        gaps = {one.gap.column.name: {one.modelled} for one in links if one.gap is not None}
        return {**joined, **gaps}.get(name, {name})

    def waits_from(self, order: str | None) -> tuple[str, float] | None:
        """What lies between an event's time and the end from which a rule counts the next wait.

        Returns:
          The column that models see, and what one of it is worth in what sorts for models; None
          where waits count from the time itself.
        """
        moved = () if self.following is None else self.following.moved
        ends = {rule.low for _, ties in moved for rule in ties if rule.high == order}
        links = [link for chain in self.chains for link in chain.links]
        unit = next((one.gap.unit for one in links if one.modelled == order and one.gap), 1.0)
        for link in (one for one in links if one.entry == order == one.relation.low):
            if link.modelled in ends and link.gap is not None:
                return link.gap.column.name, link.gap.unit / unit
            if link.computed in ends and link.modelled == link.relation.between:
                return link.modelled, link.relation.unit / unit
        return None

    def limits(self, order: str | None) -> list[dict[str, float]]:
        """What a person's events end by: what of columns that models see adds up to it.

        In the unit of what sorts for models.
        """
        found, start, unit = [], dict[str, float](), 1.0
        entries = {link.modelled: link for chain in self.chains for link in chain.links}
        own = entries.get(order or "")
        if own is not None and own.gap is not None:
            start, unit = self._made_up_of(own.entry), own.gap.unit
        for limit in (one for chain in self.chains for one in chain.limits):
            low: str | None = limit.low
            while low not in (order, None):  # what ends after it begins
                low = entries[low].entry if low in entries else None
            ends = self._made_up_of(limit.high)
            names = {*ends, *start}
            if low is not None and names <= self.constant:
                of = {x: (ends.get(x, 0.0) - start.get(x, 0.0)) / unit for x in names}
                found.append({name: worth for name, worth in of.items() if worth})
        return found

    def _made_up_of(self, name: str) -> dict[str, float]:
        """Columns that models see and that add up to a column, and what one of each is worth."""
        for link in (link for chain in self.chains for link in chain.links):
            if link.modelled == name and link.gap is not None:
                sign = 1.0 if link.gap.upwards else -1.0
                own = {link.gap.column.name: sign * link.gap.unit}
                return {**self._made_up_of(link.entry), **own}
        return {name: 1.0}

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Real rows as models see them; what breaks a rule is moved inside."""
        frame = frame.reset_index(drop=True)
        frame = frame.assign(**self._open_results(frame))
        for conditional in self.conditionals:
            frame = frame.assign(**conditional.settle(frame))
        frame = frame.assign(**self._open_results(frame))
        made: dict[str, pd.Series[Any]] = {j.column.name: j.encode(frame) for j in self.joints}
        for chain in self.chains:
            needed = [*chain.roots, *(link.modelled for link in chain.links)]
            given = {name: to_numbers(frame[name], chain.columns[name]) for name in needed}
            values = chain.settle(given)
            for link in chain.links:
                if link.gap is not None:
                    gap = link.gap.encode(values[link.entry], values[link.modelled])
                    made[link.gap.column.name] = from_numbers(gap, link.gap.column)
                else:
                    column = chain.columns[link.modelled]
                    made[link.modelled] = from_numbers(values[link.modelled], column)
            for root in chain.roots:
                made[root] = from_numbers(values[root], chain.columns[root])
        return pd.DataFrame(
            {
                column.name: made[column.name] if column.name in made else frame[column.name]
                for column in self.columns
            }
        )

    def _open_results(
        self, cells: pd.DataFrame | dict[str, pd.Series[Any]]
    ) -> dict[str, pd.Series[Any]]:
        """The results that models see, which follow from sources with an entry all the same."""
        names = {one.result.name: one for one in self.lookups if one.open}
        return {name: one.decode(cells[one.source], cells[name]) for name, one in names.items()}

    def decode(
        self,
        frame: pd.DataFrame,
        random: np.random.Generator,
        people: NDArray[np.intp] | None = None,
    ) -> dict[str, pd.Series[Any]]:
        """The modelled columns of the table, by name; every rule holds in every row."""
        cells: dict[str, pd.Series[Any]] = {name: frame[name] for name in frame.columns}
        for chain in self.chains:
            gaps = {link.gap.column.name for link in chain.links if link.gap is not None}
            seen = gaps | (set(chain.columns) - chain.replaced)
            given = {c.name: to_numbers(frame[c.name], c) for c in self.columns if c.name in seen}
            for name, values in chain.settle(given, people).items():
                cells[name] = from_numbers(values, chain.columns[name])
        for joint in self.joints:
            cells |= joint.decode(frame[joint.column.name])
        cells |= self._open_results(cells)
        for conditional in self.conditionals:
            cells |= conditional.settle(cells, random)
        for lookup in self.lookups:
            drawn = cells.get(lookup.result.name)
            cells[lookup.result.name] = lookup.decode(cells[lookup.source], drawn)
        return {column.name: cells[column.name] for column in self.source}


def rewritten(cells: pd.Series[Any], column: DomainColumn) -> pd.Series[Any]:
    """The same cells in the dtype that the codec gives them."""
    if column.kind.numeric:
        numbers = from_numbers(to_numbers(cells, column), column)
        return with_codes(numbers, column, code_indices(cells, column))
    return from_labels(to_labels(cells), column)


def _check_names(rule: Rule, columns: Columns, tagged: Collection[str]) -> None:
    for name in rule.columns:
        if name not in columns:
            raise SchemaError(
                "Rule '{rule}': '{name}' is left out, text, an identifier or says whose a row is, "
                "so nothing can be computed from it. Keep it as another kind, or remove the rule.",
                rule=rule.text,
                name=name,
            )
        if name in tagged:
            raise SchemaError(
                "Rule '{rule}': '{name}' is tagged as hidden, and whatever follows from it "
                "would show it. Untag it, remove the rule, or drop the other column.",
                rule=rule.text,
                name=name,
            )


def _check_codes(rule: Rule, columns: Columns) -> None:
    for name in rule.columns:
        if columns[name].codes and isinstance(rule, NumberRule | Follows):
            raise RuleDomainError(
                "Rule '{rule}': '{name}' has codes for missing values of its own ({codes}), "
                "but a rule knows only one kind of missing value. Remove the codes from the "
                "column, or remove the rule.",
                rule=rule.text,
                name=name,
                codes=", ".join(columns[name].codes),
            )


def _check_constant(rule: Rule, names: Sequence[str], constant: Collection[str]) -> None:
    fixed = [name for name in names if name in constant]
    if fixed and len(fixed) < len(names):
        other = next(name for name in names if name not in constant)
        raise SchemaError(
            "Rule '{rule}': '{name}' holds one value for a person and '{other}' does not. "
            "Declare the same for both, or remove the rule.",
            rule=rule.text,
            name=fixed[0],
            other=other,
        )


def _joints(
    rules: Sequence[Rule],
    columns: Columns,
    target: str | None,
    constant: Collection[str],
    names: Collection[str],
) -> Iterator[Joint]:
    used: set[str] = set()
    taken = set(names)
    for rule in (one for one in rules if isinstance(one, Combinations)):
        check_lists(rule.names, columns, rule.text)
        _check_constant(rule, rule.names, constant)
        if len(set(rule.names)) < len(rule.names) or used.intersection(rule.names):
            raise SchemaError(
                "Rule '{rule}': a column is in two combinations. Remove it from one of them.",
                rule=rule.text,
            )
        if target in rule.names:
            raise SchemaError(
                "Rule '{rule}' would replace the target '{target}'. Choose another target, or "
                "write what follows from it as 'label <- code'.",
                rule=rule.text,
                target=target,
            )
        used.update(rule.names)
        joint = Joint.of(rule, columns, free_name(" × ".join(rule.names), taken))
        taken.add(joint.column.name)
        yield joint


def _lookups(
    rules: Sequence[Rule], columns: Columns, target: str | None, constant: Collection[str]
) -> Iterator[Lookup]:
    own = {}
    others = Combinations | NumberRule
    joined = {name for rule in rules if isinstance(rule, others) for name in rule.columns}
    for rule in (one for one in rules if isinstance(one, Determines)):
        check_lists(rule.columns, columns, rule.text, numbers=(rule.result,))
        if rule.result == target:
            raise SchemaError(
                "Rule '{rule}': the target is not computed. Choose another target, or turn the "
                "rule round if each '{result}' has one '{source}'.",
                rule=rule.text,
                result=rule.result,
                source=rule.source,
            )
        if rule.result in own or rule.result in joined:
            raise SchemaError(
                "Rule '{rule}': another rule already gives '{name}'. Remove one of them.",
                rule=rule.text,
                name=rule.result,
            )
        if rule.result in constant:
            _check_constant(rule, rule.columns, constant)
        own[rule.result] = rule
    try:
        order = TopologicalSorter({r.result: [r.source] for r in own.values()}).static_order()
        yield from (Lookup.of(own[name], columns) for name in list(order) if name in own)
    except CycleError as error:
        raise SchemaError(
            "Rule '{rule}' goes round in a circle with others. Remove one of them.",
            rule=own[error.args[1][0]].text,
        ) from None


def _shown(
    columns: Columns, joints: Sequence[Joint], lookups: Sequence[Lookup], chains: Sequence[Chain]
) -> dict[str, DomainColumn | None]:
    """For each column of the table, what models see in its place; None where that is nothing."""
    shown: dict[str, DomainColumn | None] = dict(columns)
    for joint in joints:
        shown |= {column.name: joint.column for column in joint.columns}
    shown |= {lookup.result.name: None for lookup in lookups if not lookup.open}
    for chain in chains:
        for link in chain.links:
            if link.computed is not None:
                shown[link.computed] = None
            if link.gap is not None:
                shown[link.modelled] = link.gap.column
    return shown
