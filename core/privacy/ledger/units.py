"""Units: whom an account's releases protect, and that only what protects the same ones adds up.

A release per doctor says little of a patient, who is in ten of its records (ε .5 per doctor is 6.3
per patient). So the first private release of an account settles whom its ε is about. Another unit
is refused, or confirmed in words that each later certificate repeats. Units are told apart by the
names of their key columns: a renamed one counts as another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.message import Message, joined
from core.privacy.ledger.entries import Entry
from core.privacy.plan import Plan
from core.schema.person import Unit


def units_of(entries: Sequence[Entry]) -> tuple[Unit, ...]:
    """The units that an account's private releases protect, the first one first."""
    units: list[Unit] = []
    for entry in entries:
        if entry.kind == "release" and entry.private and not any(map(entry.unit.same, units)):
            units.append(entry.unit)
    return tuple(units)


def unit_objection(earlier: Sequence[Entry], plan: Plan) -> str | None:
    """Why a release's ε would not add up with that of earlier ones; None where it does."""
    units, own = units_of(earlier), Unit.of(plan.unit)
    if not units or not plan.budget.private or own.same(units[0]):
        return None
    return Message(
        "Earlier releases about these people protect “{earlier}”, and this one would protect "
        "“{this}”. Their ε cannot be added: to a patient with ten doctors, a release at ε 0.5 per "
        "doctor is one at about ε 6. Nothing was spent. Declare whose rows belong together as "
        "before, choose another account if these are different people, or confirm in words that "
        "the account's limit no longer holds.",
        earlier=units[0].words,
        this=own.words,
    )


def mixed_units(units: Sequence[Unit]) -> str | None:
    """What must be said of an account whose releases protect different units; None of others."""
    if len(units) < 2:
        return None
    return Message(
        "Releases about these people protect different units ({units}), and their ε cannot be "
        "added: together they may reveal more about one person, or one row, than the account's "
        "limit.",
        units=joined([Message("“{unit}”", unit=unit.words) for unit in units], "; "),
    )


def unit_statements(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """What certificates say of an account's units; see `statements`."""
    mixed = mixed_units(units_of(entries))
    if mixed is not None:
        yield "limit", mixed
    for entry in entries:
        if entry.unit_words:
            yield (
                "limit",
                Message(
                    "The steward confirmed that a release about these people protects another unit "
                    "than earlier ones (ledger entry {entry}): “{words}”.",
                    entry=entry.seq,
                    words=entry.unit_words,
                ),
            )
