"""What is kept of rules and roles once bounds and lists were bought.

A purchase may find nothing in a column, or bounds and labels that a rule has no room in. What was
paid must not be wasted on that: such a rule falls away, and it is said. What the steward declared
without a purchase is refused as ever.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from core.message import Message
from core.schema.column import DomainColumn, RuleDomainError
from core.schema.person import Person
from core.schema.rules.rules import Rule
from core.schema.rules.steps import Steps


@dataclass(frozen=True)
class Kept:
    """Rules and roles as they can be kept; `fallen` says why not, by a rule's text or a role."""

    rules: tuple[Rule, ...]
    target: str | None
    person: Person | None
    fallen: dict[str, str]


def keep(
    columns: Sequence[DomainColumn],
    rules: Sequence[Rule],
    *,
    target: str | None,
    person: Person | None,
    tagged: Collection[str],
    bought: Collection[str],
    lost: Collection[str],
) -> Kept:
    """The rules and roles that can be kept."""
    fallen = {rule.text: _why(rule, lost) for rule in rules if _why(rule, lost)}
    if target in lost:
        fallen["target"] = Message(
            "'{name}' is no target any more: buying bounds and lists found nothing in it.",
            name=target,
        )
        target = None
    person = _without(person, lost, fallen)
    constant = () if person is None else person.constant

    def check(tried: Sequence[Rule]) -> None:
        Steps.of(columns, tried, target=target, tagged=tagged, constant=constant)

    kept = [rule for rule in rules if rule.text not in fallen]
    try:
        check(kept)
    except RuleDomainError:
        firm = [rule for rule in kept if not _touched(rule, bought)]
        check(firm)
        for rule in kept:
            if rule in firm:
                continue
            try:
                check([*firm, rule])
            except RuleDomainError:
                fallen[rule.text] = Message(
                    "Rule “{rule}” was declared and is not kept: what was bought of its columns "
                    "leaves no room for it.",
                    rule=rule.text,
                )
            else:
                firm.append(rule)
        kept = [rule for rule in kept if rule in firm]
        check(kept)
    return Kept(tuple(kept), target, person, fallen)


def _why(rule: Rule, lost: Collection[str]) -> str:
    """Why a rule cannot be kept whatever the others are; "" where it may be."""
    for name in rule.columns:
        if name in lost:
            return Message(
                "Rule “{rule}” was declared and is not kept: buying bounds and lists found nothing "
                "in '{name}'.",
                rule=rule.text,
                name=name,
            )
    known = getattr(rule, "mapping", None) or getattr(rule, "allowed", None)
    if getattr(rule, "bought", False) and not known:
        return Message(
            "Rule “{rule}” was declared and is not kept: buying it found no combination of values.",
            rule=rule.text,
        )
    return ""


def _touched(rule: Rule, bought: Collection[str]) -> bool:
    return bool(getattr(rule, "bought", False)) or not set(bought).isdisjoint(rule.columns)


def _without(person: Person | None, lost: Collection[str], fallen: dict[str, str]) -> Person | None:
    if person is None:
        return None
    for name in set(person.constant).intersection(lost):
        fallen[f"person: {name}"] = Message(
            "'{name}' is not kept the same for a person: buying bounds and lists found nothing in "
            "it.",
            name=name,
        )
    if person.order in lost:
        fallen[f"person: {person.order}"] = Message(
            "'{name}' does not sort the rows of a person: buying bounds and lists found nothing in "
            "it.",
            name=person.order,
        )
    return person.among(set(person.named).difference(lost))
