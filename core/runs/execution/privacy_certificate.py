"""The privacy certificate: what is claimed, under which neighbouring relation, on which conditions.

It holds nothing computed from real rows but the number of records, so it may leave the house.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from core.models.planning import Hiding, hiding
from core.privacy.ledger.ledger import Entry
from core.privacy.plan import Guarantee, Phase, Plan
from core.runs.accounts.purchases import PurchaseRecord
from core.runs.execution.job import LmdpOutcome
from core.schema.person import Person
from core.schema.rounding_up import round_up
from core.schema.rules.rules import Combinations, Determines
from core.schema.schema import Column, DomainColumn, DomainSource, Kind, Provenance, Schema

__all__ = [
    "LMDP_STATEMENTS",
    "VERSION",
    "conditions",
    "declared",
    "make_privacy_certificate",
    "origin",
]

VERSION = "0.1.0"  # as in pyproject.toml, which no image of a container holds
RELATION = (
    "zero-out: two tables are neighbours when {one} of the first contributes nothing in the "
    "second, while the number of {many} is public; ε under replace-one ({one} swapped for "
    "{other}) stands beside it."
)
NOT_PRIVATE = "no differential privacy"
OWN_TABLES = (
    "Whether these people are in other tables was looked for among those that this table's owner "
    "may see. Accounts of different owners are not added up unless the privacy officer joins them."
)
ORIGINS = {
    Provenance.PROPOSED: "Domains “as proposed from the rows” were read from them without noise "
    "and accepted as public; ε does not cover what they show.",
    Provenance.BOUGHT: "Domains that were bought were released with noise, which ε includes; what "
    "kind of column each is, how it is written and in which steps is declared.",
    Provenance.UNSTATED: "Where the “origin is not recorded”, take the domain as read from the "
    "rows: ε does not cover what it shows.",
}
_PEOPLE = "It does not protect individuals: that is what differential privacy does."
LMDP_STATEMENTS: dict[Hiding, str] = {
    "shifted": "α-LMDP says that the released columns of a group do not follow the real ones. "
    f"They were shifted on purpose. {_PEOPLE}",
    "trained": "α-LMDP says that the released columns of a group do not follow the real ones. The "
    f"model was trained to make them differ, and nothing was shifted. {_PEOPLE}",
    "none": f"Nothing was done to hide how the tagged columns are spread. {_PEOPLE}",
}

ATTACK = (
    "How other columns depend on hidden ones is kept. So whoever knows the true shares of other "
    "columns from elsewhere can compute the hidden shares back, by expectation maximisation."
)
SHIFTED_ALIKE = (
    "Nothing released with this table gives such shares: bought counts of real rows are shifted "
    "as the table is. A release about these people without the shift would give them."
)
GIVEN_ELSEWHERE = (
    "Counts of real rows released with this table are shifted as the table is. What the steward "
    "confirmed about other releases may give such shares."
)


def declared(
    column: Column, say: Callable[..., str] = str.format, said: Callable[[str], str] = str
) -> str:
    """What was declared public about a column, in words.

    Args:
      say: fills a template, in the language of whoever reads.
      said: a word of ours in that language.

    >>> declared(Column(name="age", kind=Kind.INTEGER, low=17, high=90, step=1, missing=True))
    'age: integer from 17 to 90 in steps of 1, may be missing'
    """
    kind = said(column.kind.value)
    if column.source is DomainSource.DROP:
        return say("{name}: left out of the synthetic table", name=column.name)
    if column.kind.surrogate:
        return say("{name}: {kind}, replaced by made-up values", name=column.name, kind=kind)
    words = f"{column.name}: {kind}"
    if column.kind.listed:
        labels = column.categories or ()
        words += say(", one of {n}: {categories}", n=len(labels), categories=", ".join(labels))
        words += say(" ({other} stands for all others)", other=column.other) if column.other else ""
    elif column.kind is Kind.DATETIME:
        words += say(" from {low} to {high}", low=_day(column.low), high=_day(column.high))
        words += say(" in steps of {step:.15g} s", step=column.step) if column.step else ""
    else:
        words += say(" from {low:.15g} to {high:.15g}", low=column.low, high=column.high)
        words += say(" in steps of {step:.15g}", step=column.step) if column.step else ""
    if column.scale == "log":
        words += say(", on a heavy-tail scale")
    if column.spikes:
        spikes = ", ".join(f"{spike:.15g}" for spike in column.spikes)
        words += say(", often exactly {spikes}", spikes=spikes)
    absent = column.missing or column.codes
    words += say(", may be missing") if absent else say(", never missing")
    if column.codes:
        words += say(" (also written as {codes})", codes=", ".join(column.codes))
    return words


def origin(column: DomainColumn) -> str:
    """Where a column's domain comes from, in words; empty where it has none.

    >>> origin(DomainColumn(name="age", kind=Kind.INTEGER, provenance=Provenance.STEWARD))
    'set by the steward'
    """
    if not column.modelled:
        return ""
    return column.provenance.words if column.purchase is None else column.purchase.words


def _day(seconds: float | None) -> str:
    moment = datetime.fromtimestamp(seconds or 0.0, UTC)
    return moment.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")


def conditions(schema: Schema, *, n: int, inferred: bool = False) -> tuple[str, ...]:
    """On what a guarantee rests, one plain sentence each.

    Args:
      n: number of records, public; of people where rows are put together.
      inferred: whether the domain was taken from the rows and declared public without a look.
    """
    how = "inferred from the table and declared public" if inferred else "declared public"
    columns = [schema.public(column) for column in schema.columns]
    domains = "; ".join(
        f"{declared(column)} ({origin(column)})" if origin(column) else declared(column)
        for column in columns
    )
    origins = {column.provenance for column in columns if column.modelled}
    _, many, _ = _unit_words(schema.person)
    which = "by their own key" if many == "people" else "by their place in it"
    return (
        f"The number of {many}, {n}, is public."
        + (
            f" Beside them {schema.holdout:.0%} of the file's {many}, chosen {which}, were kept "
            "out of training."
            if schema.holdout
            else ""
        ),
        _unit(schema.person),
        f"Conditional on these declared domains ({how}): {domains}.",
        *_rules(schema, how),
        *schema.fallen.values(),
        *(words for where, words in ORIGINS.items() if where in origins),
    )


def _unit_words(person: Person | None) -> tuple[str, str, str]:
    """What is left out in a neighbouring table, what is counted, and what may replace the one."""
    if person is None or (person.rows == 1 and not person.grouped):
        return "one record", "records", "any other in the same place of the file"
    if person.grouped:
        return (
            "one person, with all their rows,",
            "people",
            "any other under any key; as many people stay trained on, so nobody who was kept out "
            "of training is swapped for somebody trained on",
        )
    one = f"any {person.rows} records that are one person's"
    return one, "records", "any others in the same places of the file"


def _unit(person: Person | None) -> str:
    """Whose rows are protected together, in plain words."""
    if person is None or (person.rows == 1 and not person.grouped):
        return (
            "The guarantee protects one record: every row counts as a person of its own. A person "
            "with several records gets less."
        )
    if not person.grouped:
        return (
            f"The guarantee holds {person.words}: the steward says that nobody has more, and no "
            "column tells whose rows are whose. A person with more rows gets less."
        )
    who = ", ".join(person.columns)
    return (
        f"The guarantee holds {person.words}: rows that agree in {who} are one person's. Of who "
        f"has more than {person.rows}, the others were left out. Rows that do not say who they "
        "are of count as one person together; somebody found under two keys is two people."
    )


def _rules(schema: Schema, how: str) -> tuple[str, ...]:
    """What was declared true of every row, with the labels that it publishes."""
    rules = [rule for rule in schema.rules if rule.text not in schema.fallen]
    if not rules:
        return ()
    words = []
    for rule in rules:
        listed: list[str] = []
        if isinstance(rule, Determines) and not rule.bought:
            listed = [f"{source}: {result}" for source, result in (rule.mapping or {}).items()]
        if isinstance(rule, Combinations) and not rule.bought:
            listed = [" · ".join(labels) for labels in rule.allowed or ()]
        words.append(rule.text + (f" ({'; '.join(listed)})" if listed else ""))
    return (
        f"Conditional on these rules ({how}), which every synthetic row keeps: {'. '.join(words)}.",
    )


def make_privacy_certificate(
    *,
    table: str,
    plan: Plan,
    executed: Sequence[Phase],
    guarantee: Guarantee,
    rows: int,
    debit: Entry,
    lmdp: LmdpOutcome | None = None,
    bought: Sequence[PurchaseRecord] = (),
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
      bought: the purchases that the domain rests on; the guarantee includes what they cost.
      opinion: see `core.runs.execution.opinion.opinion_of_opacus`.
      owned: whether the table has an owner, who signed in.
    """
    private = guarantee.private
    one, many, other = _unit_words(plan.unit)
    return {
        "product": f"Facsimile {VERSION}",
        "claim": f"ε = {round_up(guarantee.epsilon, '.4g'):.4g}, "
        f"δ = {round_up(guarantee.delta, '.3g'):.3g}"
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
        "relation": RELATION.format(one=one, many=many, other=other) if private else NOT_PRIVATE,
        "conditions": [
            *(guarantee.conditions if private else (NOT_PRIVATE,)),
            *(sentence for _, sentence in debit.statements),
            *((OWN_TABLES,) if owned else ()),
        ],
        "phases": [phase.model_dump(mode="json") for phase in executed],
        **({"purchases": [_purchase(one) for one in bought]} if bought else {}),
        **({} if opinion is None else {"second_opinion": opinion}),
        "lmdp": _lmdp(plan, lmdp or LmdpOutcome(), debit),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _purchase(record: PurchaseRecord) -> dict[str, Any]:
    return {
        "ledger_entry": record.entry,
        "epsilon_zero_out": record.epsilon,
        "epsilon_replace_one": record.epsilon_replace,
        "delta": record.delta,
        "columns": [one.column.name for one in record.columns],
        "rules": [rule.text for rule in record.rules],
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
    """What whoever has true shares of other columns can do, a sentence or two each.

    Args:
      outcome: with what the attack came to.
      alone: whether no release about these people was confirmed that may give such shares.
    """
    how = hiding(plan)
    if how == "none":
        return
    yield ATTACK
    if how == "trained":
        yield "How far that gets was not measured: nothing was shifted."
    for one in outcome.undone:
        yield (
            f"With exact shares of the other columns from another source, at least "
            f"{one['undone']:.0%} of the shift of {', '.join(one['columns'])} can be undone. This "
            "was measured on records of the model alone, in steps of 5 %."
        )
    if how == "shifted":
        yield SHIFTED_ALIKE if alone else GIVEN_ELSEWHERE
