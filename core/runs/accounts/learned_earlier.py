"""Domains that an earlier run about the same people learned, and a later one uses at no cost.

What was learned is public. It was paid for in the earlier run's entry, so a claim for the later
table adds what it cost; and it counts only where that run is there to show it.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from core.privacy.discovery.open_domain import needed_as_they_are, open_domain
from core.runs.errors import RunStoreError
from core.runs.storage.store import RunStore
from core.schema.column import DomainColumn, Kind, Learned, Provenance, SchemaColumn
from core.schema.person import Unit
from core.schema.schema import Schema


def taken_columns(schema: Schema) -> tuple[SchemaColumn, ...]:
    """Columns that are as an earlier run learned them; of made-up ones, their missing share is."""
    noted = (c for c in schema.columns if c.learned is not None and c.learned.entry)
    return tuple(c for c in noted if c.provenance is Provenance.LEARNED or c.kind.surrogate)


def noted_earlier(schema: Schema) -> tuple[Learned, ...]:
    """What a schema's columns say they were learned with in earlier runs, each run once."""
    noted = (column.learned for column in taken_columns(schema))
    return tuple({one.entry: one for one in noted if one is not None}.values())


def learned_earlier(
    store: RunStore, account_id: str, schema: Schema, saved: Collection[DomainColumn] = ()
) -> tuple[Learned, ...]:
    """`noted_earlier`, checked against what the workspace's runs and a saved one learned.

    Raises:
      RunStoreError: no run of these people's account and unit learned it; nothing was spent.
    """
    if noted := noted_earlier(schema):
        unit, runs = Unit.of(schema.person), [run for run in store.runs() if run.debit]
        paid = {e.id for e in store.ledger.entries(account_id) if e.unit.same(unit)}
        known = [*saved, *chain(*(learned_columns(run.schema, run.debit) for run in runs))]
        marks = {_mark(one) for one in known if one.learned and one.learned.entry in paid}
        for column in taken_columns(schema):
            if _mark(column) not in marks:
                raise RunStoreError(
                    "'{name}' is marked as learned by an earlier run, but no run about these "
                    "people learned it with the same protection (per row or per person). "
                    "Nothing was spent. Let this run learn it, or declare it.",
                    name=column.name,
                )
    return noted


def learned_columns(schema: Schema, debit: str | None) -> tuple[DomainColumn, ...]:
    """What a run learned, by its result's schema; each column names the entry that paid."""
    return tuple(
        column.model_copy(update={"learned": column.learned.model_copy(update={"entry": entry})})
        for column in map(DomainColumn.of, schema.columns)
        if column.learned is not None and (entry := column.learned.entry or debit)
    )


def with_learned(schema: Schema, known: Collection[DomainColumn]) -> Schema:
    """The schema with what an earlier run learned of the columns that it leaves open.

    Still open are then tagged columns, those that are of another kind or written otherwise by now,
    lists of which the steward names labels, and those of which the run found no label.
    """
    wanted, found = open_domain(schema), {column.name: column for column in known}
    tagged = {name for names in schema.sensitive.values() for name in names}
    for column in (*wanted.numeric, *wanted.listed, *wanted.made_up):
        before = found.get(column.name)
        if before is None or column.name in tagged or column.provenance is Provenance.STEWARD:
            continue
        if column.kind.surrogate and before.kind.surrogate:
            share = {"missing": before.missing, "absent": before.absent, "learned": before.learned}
            schema = schema.replace(column.model_copy(update=share))
        elif _alike(column, before, whole=column.name in needed_as_they_are(schema)):
            domain = before.fields() | {"form": column.form, "learned": before.learned}
            # its own proposal: whoever declares it declares what was read from rows
            schema = schema.replace(SchemaColumn(**domain).as_proposed())
    return schema


def _alike(column: SchemaColumn, before: DomainColumn, *, whole: bool) -> bool:
    """Whether a column is what it was when it was learned; `whole`: needs labels as they are."""
    kinds = {(column.kind, column.kind), (Kind.ORDERED, Kind.CATEGORY)}  # found without an order
    written, then = ((c.dtype.lower(), c.date_format, c.pattern) for c in (column, before))
    made_up = whole and before.learned is not None and before.learned.placeholders > 0
    useless = made_up or before.categories == (before.other,)
    return (column.kind, before.kind) in kinds and written == then and not useless


def _mark(column: DomainColumn | SchemaColumn) -> tuple[str, Learned | None, float]:
    """What a run must have learned of a column; its domain is named by the mark's digest."""
    return column.name, column.learned, column.absent if column.kind.surrogate else 0.0
