"""Purchases: bounds, lists and mappings that were bought about an account's people.

What was bought is public knowledge about these people: every later plan, run and re-import of a
table about them uses it at no cost, and nobody else may.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict
from sqlalchemy import insert, select

from core.message import Message
from core.privacy.discovery.unbought import known_labels, unbought
from core.privacy.ledger.entries import Entry
from core.runs.errors import RunStoreError
from core.runs.storage.database import PurchaseRow
from core.runs.storage.table_store import TableStore
from core.schema.column import Column, DomainSource, Kind, Provenance, Purchase, SchemaColumn
from core.schema.person import Person
from core.schema.rules.rules import AnyRule, Rule
from core.schema.schema import Schema


class BoughtColumn(BaseModel):
    """A column's domain as it was bought.

    Attributes:
      asked: the kind that it was asked as; a list without an order may have made it another.
      column: the declared fields; dropped where nothing was found.
      note: how much of the rows it covers, from noisy counts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    asked: Kind
    column: Column
    note: str


class PurchaseRecord(BaseModel):
    """One purchase and its result.

    Attributes:
      entry: short name of the ledger's entry that paid.
      epsilon, epsilon_replace, delta: what it cost, under zero-out and replace-one.
      columns, rules: what was bought.
      unit: whose rows were protected together; None where a row was a person.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    entry: str
    epsilon: float
    epsilon_replace: float
    delta: float
    columns: tuple[BoughtColumn, ...]
    rules: tuple[Rule, ...]
    unit: Person | None = None

    def protects(self, person: Person | None) -> bool:
        """Whether it was paid for the same unit, so that its ε may be added to others' of it."""
        return _unit(self.unit) == _unit(person)

    def column(self, column: SchemaColumn) -> SchemaColumn | None:
        """The bought form of a column that is to be bought; None where this is no answer to it.

        The steward's step stays as it is, and so must the labels that he knows.
        """
        for one in self.columns:
            known = set(known_labels(column)) <= set(one.column.categories or ())
            written = (one.column.name, one.asked, one.column.dtype, one.column.date_format)
            asked = (column.name, column.kind, column.dtype, column.date_format)
            if written == asked and (known or one.column.source is DomainSource.DROP):
                return self._form(column, one)
        return None

    def holds(self, column: SchemaColumn) -> bool:
        """Whether a column that says so was bought here, but for its step."""
        step = {"step": column.step}
        return any(
            one.column.model_copy(update=step).fields() == column.fields() for one in self.columns
        )

    def _form(self, column: SchemaColumn, one: BoughtColumn) -> SchemaColumn:
        fields = one.column.fields() | {"step": column.step}
        bought = SchemaColumn(**fields, note=one.note, proposal=column.proposal)
        purchase = Purchase(
            entry=self.entry,
            epsilon=self.epsilon,
            epsilon_replace=self.epsilon_replace,
            delta=self.delta,
            domain=bought.domain_digest,
            known=len(known_labels(column)),
        )
        return bought.model_copy(update={"purchase": purchase})


def _unit(person: Person | None) -> tuple[tuple[str, ...], int]:
    return ((), 1) if person is None else person.key


def purchases(store: TableStore, account_id: str) -> tuple[PurchaseRecord, ...]:
    """What was bought about an account's people, oldest first."""
    query = (
        select(PurchaseRow.body)
        .where(PurchaseRow.account_id == account_id)
        .order_by(PurchaseRow.id)
    )
    with store.engine.connect() as connection:
        bodies = connection.execute(query).scalars().all()
    return tuple(PurchaseRecord.model_validate_json(body) for body in bodies)


def save_purchase(store: TableStore, account_id: str, record: PurchaseRecord) -> None:
    """Keep what was bought; it stays when tables are deleted, as the ledger does."""
    row = {"account_id": account_id, "entry": record.entry, "created": time.time()}
    with store.engine.begin() as connection:
        connection.execute(insert(PurchaseRow).values(**row, body=record.model_dump_json()))


def lost_purchase(store: TableStore, account_id: str) -> Entry | None:
    """The newest purchase that was paid for after the last one kept, and is not kept; or None.

    It was lost with the process that made it, or that process is at it now.
    """
    kept = {record.entry for record in purchases(store, account_id)}
    paid = [entry for entry in store.ledger.entries(account_id) if entry.purchase]
    newest = paid[-1] if paid else None
    return None if newest is None or newest.id in kept else newest


def with_purchases(schema: Schema, records: Iterable[PurchaseRecord]) -> Schema:
    """The schema with what is to be bought and was: columns and rules, the oldest answer first.

    What was paid for another unit of privacy answers nothing.
    """
    for record in records:
        if not record.protects(schema.person):
            continue
        wanted = unbought(schema)
        for column in (*wanted.numeric, *wanted.listed):
            found = record.column(column)
            schema = schema if found is None else schema.replace(found)
        answers = {rule.text: rule for rule in record.rules}
        open_rules = {rule.text for rule in wanted.rules}
        rules = tuple(
            answers[rule.text] if rule.text in open_rules & answers.keys() else rule
            for rule in schema.rules
        )
        schema = schema.model_copy(update={"rules": rules})
    return schema


def purchases_used(
    store: TableStore, account_id: str, schema: Schema
) -> tuple[PurchaseRecord, ...]:
    """The purchases that a schema rests on, oldest first.

    Args:
      schema: of a table about these people.

    Raises:
      RunStoreError: it says of something that it was bought, and these people's account never
        paid for that, or paid while other rows were protected together.
    """
    records = purchases(store, account_id)
    used = {_paid_column(column, records) for column in schema.columns if column.purchase}
    used |= {_paid_rule(rule, records) for rule in schema.rules if getattr(rule, "bought", False)}
    resting = tuple(record for record in records if record.entry in used)
    if not all(record.protects(schema.person) for record in resting):
        raise RunStoreError(
            Message(
                "Bounds or lists of this table were bought while other rows were protected "
                "together, so their ε cannot be added to this run's. Nothing was spent. Buy them "
                "again, declare them public, or say of people what was said then."
            )
        )
    return resting


def declared_since(
    store: TableStore, account_id: str, schema: Schema, used: Sequence[PurchaseRecord]
) -> tuple[list[str], float]:
    """Columns that were bought about these people and are declared in the schema, and what for.

    Args:
      schema: of a table about these people.
      used: purchases that the schema rests on, which are left out.

    Returns:
      (names of columns, ε of their purchases together).
    """
    declared = {c.name for c in schema.columns if c.source is DomainSource.DECLARED}
    names: list[str] = []
    epsilons: list[float] = []
    for record in purchases(store, account_id):
        here = [one.column.name for one in record.columns if one.column.name in declared]
        if record not in used and here:
            names += [name for name in here if name not in names]
            epsilons.append(record.epsilon)
    return names, math.fsum(epsilons)


def _paid_column(column: SchemaColumn, records: Sequence[PurchaseRecord]) -> str | None:
    assert column.purchase is not None
    dropped = column.source is DomainSource.DROP
    if not dropped and column.provenance is not Provenance.BOUGHT:
        return None  # the steward has set another domain since
    for record in records:
        if record.entry == column.purchase.entry and (dropped or record.holds(column)):
            return record.entry
    if dropped:
        return None
    raise _unpaid(Message("The domain of '{name}'", name=column.name))


def _paid_rule(rule: AnyRule, records: Sequence[PurchaseRecord]) -> str:
    for record in records:
        if rule in record.rules:
            return record.entry
    raise _unpaid(Message("What the rule “{text}” says of labels", text=rule.text))


def _unpaid(what: str) -> RunStoreError:
    return RunStoreError(
        Message(
            "{what} is marked as bought, but the account of these people never paid for "
            "it. Nothing was spent. Buy it again, or declare it public.",
            what=what,
        )
    )
