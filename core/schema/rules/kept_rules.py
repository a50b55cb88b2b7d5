"""What is kept of rules once domains were learned.

What was learned may leave a rule no room. What was paid must not be wasted on that: such a rule
falls away, and it is said. What the steward declared is refused as ever.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from core.message import Message, to_say
from core.schema.column import DomainColumn, RuleDomainError
from core.schema.person import Person
from core.schema.rules.rules import Combinations, Determines, Rule
from core.schema.rules.steps import Steps


@dataclass(frozen=True)
class Kept:
    """Rules as they can be kept; `fallen` says why not, by a rule's text."""

    rules: tuple[Rule, ...]
    fallen: dict[str, str]


def keep(
    columns: Sequence[DomainColumn],
    rules: Sequence[Rule],
    *,
    target: str | None,
    person: Person | None,
    tagged: Collection[str],
    learned: Collection[str],
) -> Kept:
    """The rules that can be kept; `learned` are columns whose domain was learned with noise."""
    none = to_say(
        "Rule “{rule}” was declared and is not kept: no combination of values was frequent enough "
        "to be learned."
    )
    fallen: dict[str, str] = {r.text: Message(none, rule=r.text) for r in rules if _empty(r)}

    def check(tried: Sequence[Rule]) -> None:
        Steps.of(columns, tried, target=target, tagged=tagged, person=person)

    def added(firm: Sequence[Rule], more: Sequence[Rule]) -> Sequence[Rule]:
        """Those that can be kept together, earlier ones first; found by halves, as most can be."""
        try:
            check([*firm, *more])
        except RuleDomainError:
            half = len(more) // 2
            if half:
                return added(added(firm, more[:half]), more[half:])
            fallen[more[0].text] = Message(
                "Rule “{rule}” was declared and is not kept: what was learned of its columns "
                "leaves no room for it.",
                rule=more[0].text,
            )
            return firm
        return [*firm, *more]

    kept = [rule for rule in rules if rule.text not in fallen]
    try:
        check(kept)
    except RuleDomainError:
        firm = [rule for rule in kept if not _touched(rule, learned)]
        check(firm)
        firm = list(added(firm, [rule for rule in kept if rule not in firm]))
        kept = [rule for rule in kept if rule in firm]
    return Kept(tuple(kept), fallen)


def _empty(rule: Rule) -> bool:
    if isinstance(rule, Determines):
        return rule.learned and not rule.mapping
    return isinstance(rule, Combinations) and rule.learned and not rule.allowed


def _touched(rule: Rule, learned: Collection[str]) -> bool:
    return bool(getattr(rule, "learned", False)) or not set(learned).isdisjoint(rule.columns)
