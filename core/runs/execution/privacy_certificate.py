"""The privacy certificate: what is claimed, under which neighbouring relation, on which conditions.

It holds nothing computed from real rows but the number of records, so it may leave the house.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from core.message import Message, clock, day, from_json, joined, minute, to_say
from core.models.planning import Hiding, hiding
from core.privacy.ledger.entries import Entry
from core.privacy.plan import Guarantee, Phase, Plan
from core.runs.execution.job import LmdpOutcome
from core.schema.column import (
    Column,
    DomainColumn,
    DomainSource,
    Kind,
    Learned,
    Provenance,
    origin_words,
)
from core.schema.date_text import is_clock
from core.schema.labels import REST, beginnings
from core.schema.person import Person
from core.schema.rounding_up import round_up
from core.schema.rules.rules import AtMost, Combinations, Determines, Rule
from core.schema.schema import Schema

VERSION = "0.1.0"  # as in pyproject.toml, which no image of a container holds
RELATION = to_say(
    "zero-out: two tables are neighbours when {one} of the first contributes nothing to the "
    "second, while the number of {many} is public. The ε under replace-one ({one} swapped for "
    "{other}) is given beside it."
)
NOT_PRIVATE = Message("no differential privacy")
OWN_TABLES = Message(
    "Whether these people are in other tables was checked only among the tables that this table's "
    "owner may see. Accounts of different owners are not added up unless the privacy officer joins "
    "them."
)
ORIGINS = {
    Provenance.PROPOSED: Message(
        "Domains “as proposed from the rows” were read from the rows without noise and accepted as "
        "public. ε does not cover what they reveal."
    ),
    Provenance.LEARNED: Message(
        "Domains that were learned were released with noise, and ε includes their cost. The kind "
        "of each column, how its values are written and its step size are declared."
    ),
    Provenance.REFERENCE: Message(
        "A “public reference” was chosen by a column's name, kind and form alone, never by its "
        "values. ε need not cover it."
    ),
    Provenance.UNSTATED: Message(
        "Where the “origin is not recorded”, assume that the domain was read from the rows: ε does "
        "not cover what it reveals."
    ),
}
LMDP_STATEMENTS: dict[Hiding, Message] = {
    "shifted": Message(
        "α-LMDP says that the released columns of a group do not follow the real distribution: "
        "they were shifted on purpose. It does not protect individuals. Differential privacy does "
        "that."
    ),
    "trained": Message(
        "α-LMDP says that the released columns of a group do not follow the real distribution: the "
        "model was trained to make them differ, and nothing was shifted. It does not protect "
        "individuals. Differential privacy does that."
    ),
    "none": Message(
        "Nothing was done to hide how the tagged columns are distributed. α-LMDP would not protect "
        "individuals in any case. Differential privacy does that."
    ),
}

ATTACK = Message(
    "The way other columns depend on the hidden ones is kept. Anyone who knows the true shares of "
    "other columns from elsewhere can therefore estimate the hidden shares, by expectation "
    "maximisation."
)
SHIFTED_ALIKE = Message(
    "Nothing released with this table gives such shares: bought counts of real rows are shifted "
    "in the same way as the table. A release about these people without the shift would give them."
)
GIVEN_ELSEWHERE = Message(
    "Counts of real rows released with this table are shifted in the same way as the table. Other "
    "releases that the steward confirmed may give such shares."
)


def declared(column: Column) -> Message:
    """What was declared public about a column.

    >>> declared(Column(name="age", kind=Kind.INTEGER, low=17, high=90, step=1, missing=True))
    'age: integer from 17 to 90 in steps of 1, may be missing'
    """
    return Message("{name}: {domain}", name=column.name, domain=declared_domain(column))


def declared_domain(column: Column) -> Message:
    """`declared` without the column's name."""
    if column.source is DomainSource.DROP:
        return Message("left out of the synthetic table")
    kind = Message(column.kind.value)
    if column.kind.surrogate:
        return Message("{kind}, replaced by made-up values", kind=kind)
    return joined([kind, *_values(column), *_presence(column)], "")


def _values(column: Column) -> Iterator[Message]:
    """What may stand in a column of values that are modelled."""
    if column.kind.listed:
        labels = column.categories or ()
        yield Message(", one of {n}: {categories}", n=len(labels), categories=", ".join(labels))
        if beginnings(column):
            yield Message(" (after {rest} the ending of a code is made up)", rest=REST)
        if column.other:
            yield Message(" ({other} stands for all others)", other=column.other)
    elif column.kind is Kind.DATETIME:
        low, high = (_moment(end, column) for end in (column.low, column.high))
        yield Message(" from {low} to {high}", low=low, high=high)
        if column.step and column.step != 86_400.0:
            yield Message(" in steps of {step:.15g} s", step=column.step)
    else:
        yield Message(" from {low:.15g} to {high:.15g}", low=column.low, high=column.high)
        if column.step:
            yield Message(" in steps of {step:.15g}", step=column.step)
    if column.scale == "log":
        yield Message(", on a heavy-tail scale")
    if column.spikes:
        dated = column.kind is Kind.DATETIME
        spikes = (_moment(x, column) if dated else f"{x:.15g}" for x in column.spikes)
        yield Message(", often exactly {spikes}", spikes=", ".join(spikes))


def _presence(column: Column) -> Iterator[Message]:
    """Whether values may be missing, and how that is written."""
    absent = column.missing or column.codes
    yield Message(", may be missing") if absent else Message(", never missing")
    if column.codes:
        yield Message(" (also written as {codes})", codes=", ".join(column.codes))


def origin(column: DomainColumn) -> str:
    """Where a column's domain comes from; empty where it has none.

    >>> origin(DomainColumn(name="age", kind=Kind.INTEGER, provenance=Provenance.STEWARD))
    'set by the steward'
    """
    if not column.modelled:
        return ""
    return origin_words(column)


def _moment(seconds: float | None, column: Column) -> Message:
    moment = datetime.fromtimestamp(seconds or 0.0, UTC)
    if is_clock(column.date_format):
        return clock(moment)
    return day(moment) if column.step == 86_400.0 else minute(moment, f":{moment:%S}")


def conditions(schema: Schema, *, n: int, inferred: bool = False) -> tuple[str, ...]:
    """On what a guarantee rests, one plain sentence each.

    Args:
      n: number of records, public; of people where rows are put together.
      inferred: whether the domain was taken from the rows and declared public without a look.
    """
    how = (
        Message("inferred from the table and declared public")
        if inferred
        else Message("declared public")
    )
    columns, fallen = [schema.public(column) for column in schema.columns], schema.fallen
    domains = [
        Message("{declared} ({origin})", declared=declared(column), origin=joined([origin(column)]))
        if origin(column)
        else declared(column)
        for column in columns
    ]
    origins, listed = {c.provenance for c in columns if c.modelled}, joined(domains, "; ")
    stated = Message("Conditional on these domains: {domains}.", domains=listed)
    if origins != {Provenance.LEARNED}:
        stated = Message(
            "Conditional on these declared domains ({how}): {domains}.", how=how, domains=listed
        )
    return (
        *_number(schema, n),
        _unit(schema.person),
        stated,
        *_rules([rule for rule in schema.rules if rule.text not in fallen], how),
        *fallen.values(),
        *(words for where, words in ORIGINS.items() if where in origins),
    )


def _number(schema: Schema, n: int) -> Iterator[Message]:
    """What is public of the numbers of records."""
    grouped = schema.person is not None and schema.person.grouped
    people = Message("The number of people, {n}, is public.", n=n)
    yield people if grouped else Message("The number of records, {n}, is public.", n=n)
    if schema.holdout and grouped:
        yield Message(
            "In addition, {share:.0%} of the people in the file, chosen by their own key, were "
            "kept out of training.",
            share=schema.holdout,
        )
    elif schema.holdout:
        yield Message(
            "In addition, {share:.0%} of the records in the file, chosen by their position in it, "
            "were kept out of training.",
            share=schema.holdout,
        )


def _unit_words(person: Person | None) -> dict[str, Message]:
    """What is left out in a neighbouring table, what is counted, and what may replace the one."""
    if person is None or (person.rows == 1 and not person.grouped):
        return {
            "one": Message("one record"),
            "many": Message("records"),
            "other": Message("any other at the same position in the file"),
        }
    if person.grouped:
        return {
            "one": Message("one person, with all their rows,"),
            "many": Message("people"),
            "other": Message(
                "any other under any key; the number of people trained on stays the same, so "
                "nobody who was kept out of training is swapped for somebody trained on"
            ),
        }
    return {
        "one": Message("any {n} records that belong to one person", n=person.rows),
        "many": Message("records"),
        "other": Message("any others at the same positions in the file"),
    }


def _unit(person: Person | None) -> Message:
    """Whose rows are protected together, in plain words."""
    if person is None or (person.rows == 1 and not person.grouped):
        return Message(
            "The guarantee protects one record: every row counts as a separate person. A person "
            "with several records gets less protection."
        )
    if not person.grouped:
        return Message(
            "The guarantee holds {unit}: the steward states that nobody has more, and no column "
            "says which rows belong to whom. A person with more rows gets less protection.",
            unit=person.words,
        )
    return Message(
        "The guarantee holds {unit}: {whose} belong to one person. If a "
        "person has more than {n} rows, the rest were left out. Rows that do not say whose they "
        "are count as one person together; somebody found under two keys counts as two people.",
        unit=person.words,
        whose=person.whose,
        n=person.rows,
    )


def _rules(rules: Sequence[Rule], how: Message) -> Iterator[Message]:
    """What was declared true of every row, with labels that it publishes, and what was found."""
    words, found = list[str](), list[str]()
    for rule in rules:
        listed: list[str] = []
        if isinstance(rule, Determines) and not rule.learned:
            listed = [f"{source}: {result}" for source, result in (rule.mapping or {}).items()]
        if isinstance(rule, Combinations) and not rule.learned:
            listed = [" · ".join(labels) for labels in rule.allowed or ()]
        told = found if isinstance(rule, AtMost) and rule.learned else words
        told.append(rule.text + (f" ({'; '.join(listed)})" if listed else ""))
    if words:
        said = to_say("Conditional on these rules ({how}), kept in every synthetic row: {rules}.")
        yield Message(said, how=how, rules=". ".join(words))
    if found:
        kept = ". ".join(found)
        yield Message("Found with noise, and kept in every synthetic row: {rules}.", rules=kept)


def make_privacy_certificate(
    *,
    table: str,
    plan: Plan,
    executed: Sequence[Phase],
    guarantee: Guarantee,
    rows: int,
    debit: Entry,
    lmdp: LmdpOutcome | None = None,
    earlier: Sequence[Learned] = (),
    opinion: dict[str, Any] | None = None,
    owned: bool = False,
) -> dict[str, Any]:
    """The certificate as JSON-safe values.

    Args:
      executed: the phases that ran, with the counts and noise that ran.
      guarantee: from `executed`, never from settings.
      rows: synthetic records made with the run.
      debit: the ledger's entry; its hash also dates the ledger's chain.
      lmdp: of the tagged groups; None where none was looked at.
      earlier: what earlier runs learned of the domain; the guarantee includes what it cost.
      opinion: see `core.runs.execution.opinion.opinion_of_opacus`.
      owned: whether the table has an owner, who signed in.
    """
    private = guarantee.private
    return {
        "product": f"Facsimile {VERSION}",
        "claim": Message(
            "ε = {epsilon:.4g}, δ = {delta:.3g}",
            epsilon=round_up(guarantee.epsilon, ".4g"),
            delta=round_up(guarantee.delta, ".3g"),
        )
        if private
        else NOT_PRIVATE,
        "private": private,
        "table": table,
        "n": plan.n,
        **({} if plan.unit is None else {"unit": plan.unit.words}),
        "rows": rows,
        "model": plan.model,
        "plan_digest": plan.digest,
        "ledger_entry": debit.id,
        "ledger_hash": debit.hash,
        "epsilon_zero_out": guarantee.epsilon if private else None,
        "epsilon_replace_one": guarantee.epsilon_replace if private else None,
        "delta": guarantee.delta if private else None,
        "method": guarantee.method if private else NOT_PRIVATE,
        "relation": Message(RELATION, **_unit_words(plan.unit)) if private else NOT_PRIVATE,
        "conditions": [
            *(guarantee.conditions if private else (NOT_PRIVATE,)),
            *(sentence for _, sentence in debit.statements),
            *((OWN_TABLES,) if owned else ()),
        ],
        "phases": from_json([phase.model_dump(mode="json") for phase in executed]),
        **({"learned_earlier": [_cost(one) for one in earlier]} if earlier else {}),
        **({} if opinion is None else {"second_opinion": opinion}),
        "lmdp": _lmdp(plan, lmdp or LmdpOutcome(), debit),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _cost(learned: Learned) -> dict[str, Any]:
    return {
        "ledger_entry": learned.entry,
        "epsilon_zero_out": learned.epsilon,
        "epsilon_replace_one": learned.epsilon_replace,
        "delta": learned.delta,
    }


def _lmdp(plan: Plan, outcome: LmdpOutcome, debit: Entry) -> dict[str, Any] | None:
    """What is said of tagged columns; None without tags.

    Under differential privacy how many attempts were made depends on noisy counts alone, so it may
    be told.
    """
    protection, results = plan.protection, outcome.results
    if protection is None:
        return None
    confirmed = [sentence for about, sentence in debit.statements if about == "shift"]
    return {
        "statement": LMDP_STATEMENTS[hiding(plan)],
        "hiding": hiding(plan),
        "alpha": protection.alpha,
        "alpha_each_attempt": plan.attempt_alpha,
        "groups": {name: list(columns) for name, columns in protection.groups.items()},
        "shift": protection.shift,
        "attack": [*_attack(plan, outcome, alone=not confirmed)],
        "verdicts": list(results),
        "granted": all(result["granted"] for result in results) if results else None,
        "attempts_declared": plan.attempts,
        "attempts_made": outcome.attempts,
        "confirmed": confirmed,
    }


def _attack(plan: Plan, outcome: LmdpOutcome, *, alone: bool) -> Iterator[str]:
    """What true shares of other columns allow; `alone`: no confirmed release may give such."""
    how = hiding(plan)
    if how == "none":
        return
    yield ATTACK
    if how == "trained":
        yield Message("How far that gets was not measured: nothing was shifted.")
    for one in outcome.undone:
        yield Message(
            "With exact shares of the other columns from another source, at least {share:.0%} of "
            "the shift of {columns} can be undone. This was measured on records drawn from the "
            "model, in steps of 5%.",
            share=one["undone"],
            columns=", ".join(one["columns"]),
        )
    if how == "shifted":
        yield SHIFTED_ALIKE if alone else GIVEN_ELSEWHERE
