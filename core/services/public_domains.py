"""Domains that no run has to learn: public without the rows, or learned by an earlier run."""

from __future__ import annotations

from collections.abc import Sequence

from core.privacy.discovery.open_domain import bare, open_domain
from core.proposing.kinds import infer_tally
from core.proposing.public_reference import PublicReference, public_reference
from core.reading.typed_cells import typed_tally
from core.runs.accounts import learned_earlier as earlier
from core.runs.events import State
from core.runs.records import RunRecord, TableRecord
from core.runs.storage.store import RunStore
from core.schema.column import DomainSource, Kind, Reference, SchemaColumn
from core.schema.person import Unit
from core.schema.schema import Schema
from core.services.recounting import recounted, tallies, whole_bounds
from core.services.schema_grid import as_kind


def references(schema: Schema) -> dict[str, PublicReference]:
    """By column that a run would learn, the domain that its name, kind and form make public.

    Columns of yes and no are left out: their two values are known anyway.
    """
    wanted = open_domain(schema)
    found = {one.name: public_reference(one) for one in (*wanted.numeric, *wanted.listed)}
    return {
        name: one
        for name, one in found.items()
        if one is not None and schema[name].kind is not Kind.BOOLEAN
    }


def with_references(schema: Schema) -> Schema:
    """The schema with all public references in place of what a run would learn."""
    for name, one in references(schema).items():
        schema = schema.replace(_declared(schema[name], one))
    return schema


def use_references(store: RunStore, table: TableRecord) -> TableRecord:
    """Declare all public references of a table; counts what does not fit."""
    return recounted(store, table, with_references(table.schema))


def _declared(column: SchemaColumn, one: PublicReference) -> SchemaColumn:
    """The column with a public domain; only the rows know of missing cells, so some may be."""
    known = bare(column).model_copy(
        update={
            "source": DomainSource.DECLARED,
            "missing": True,
            "low": one.low,
            "high": one.high,
            "categories": one.categories,
        }
    )
    reference = Reference(source=one.source, domain=known.domain_digest)
    return known.model_copy(update={"reference": reference})


def learned_before(table: TableRecord, runs: list[RunRecord]) -> tuple[RunRecord, Schema] | None:
    """The first run that learned most of what a table leaves open, and the schema with that."""
    unit, found = Unit.of(table.schema.person), []
    for run in runs:
        same = run.account_id == table.account_id and Unit.of(run.plan.unit).same(unit)
        if same and run.state is State.DONE:
            columns = earlier.learned_columns(run.schema, run.debit)
            known = earlier.with_learned(table.schema, columns)
            found += [] if known == table.schema else [(run, known)]
    return max(found, key=lambda one: len(earlier.taken_columns(one[1])), default=None)


def use_learned(store: RunStore, table: TableRecord, schema: Schema) -> TableRecord:
    """Keep a schema with what an earlier run learned, once its ledger says so."""
    earlier.learned_earlier(store, table.account_id, schema)
    return recounted(store, table, schema)


def learn_anew(
    store: RunStore, table: TableRecord, names: Sequence[str] | None = None
) -> TableRecord:
    """Leave columns to the run, by default all of an earlier run; the rows propose them again."""
    taken = [column.name for column in earlier.taken_columns(table.schema)]
    schema, cells = table.schema, tallies(store, table, taken if names is None else names)
    for column in (schema[name] for name in cells):
        tally, plain = cells[column.name], column.model_copy(update={"absent": 0.0})
        anew = infer_tally(typed_tally(tally, plain)[0], column.name, column.form)
        anew = anew if anew.kind is column.kind else as_kind(tally, plain, column.kind)
        anew = anew.model_copy(update={"source": DomainSource.LEARNED})
        schema = schema.replace(whole_bounds(store, table, tally, anew))
    return recounted(store, table, schema)
