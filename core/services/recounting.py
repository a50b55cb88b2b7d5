"""Counting anew what some columns of a stored table hold; all others are not read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from typing import Any

from core.runs.storage.records import TableRecord
from core.runs.storage.store import RunStore
from core.table.grid import as_kind
from core.table.profile import PREVIEW_ROWS, preview
from core.table.proposing import Counts, Reread, bounded, ends_known, pictures
from core.table.schema import Kind, Schema, SchemaColumn
from core.table.tally import Tally
from core.table.typed_cells import typed_rows

__all__ = ["proposed_kind", "recounted", "tallies", "whole_bounds"]


def recounted(
    store: RunStore, table: TableRecord, schema: Schema, *, also: Collection[str] = ()
) -> TableRecord:
    """Keep a schema, and count anew what the changed columns hold; reads those columns alone.

    Args:
      store: where.
      table: whose schema.
      schema: the new one.
      also: columns that are counted though they did not change.
    """
    changed = [
        new
        for new, old in zip(schema.columns, table.schema.columns, strict=True)
        if new != old or new.name in also
    ]
    if not changed:
        return store.save_schema(table.id, schema)
    known = tallies(store, table, [column.name for column in changed])
    counted = pictures(known, changed, _reread(store, table))
    anew = {one.name: one.model_dump(mode="json") for one in counted}
    shown = {
        "columns": [anew.get(one["name"], one) for one in table.profile["columns"]],
        "preview": _preview(store, table, changed),
    }
    return store.save_schema(table.id, schema, profile=table.profile | shown)


def _preview(
    store: RunStore, table: TableRecord, changed: Sequence[SchemaColumn]
) -> list[dict[str, Any]]:
    """The first rows, some of their columns read anew; in the order of the table."""
    names = [column.name for column in changed]
    with closing(store.raw_batches(table.id, columns=names, rows=PREVIEW_ROWS)) as batches:
        anew = preview(typed_rows(next(batches), changed), PREVIEW_ROWS)
    pairs = zip(table.profile["preview"], anew, strict=True)
    return [{name: {**old, **new}[name] for name in table.columns} for old, new in pairs]


def tallies(store: RunStore, table: TableRecord, names: Sequence[str]) -> dict[str, Tally]:
    """The different raw cells of some columns.

    Args:
      store: where.
      table: whose columns.
      names: of the columns.
    """
    return Counts.of(_reread(store, table)(names)).tallies()


def proposed_kind(
    store: RunStore, table: TableRecord, tally: Tally, column: SchemaColumn, kind: Kind
) -> SchemaColumn:
    """A column as another kind; bounds are those of all rows.

    Args:
      store: where.
      table: whose column.
      tally: its raw cells, as `tallies` gives them.
      column: as it is declared now.
      kind: what it should become.
    """
    return whole_bounds(store, table, tally, as_kind(tally, column, kind))


def whole_bounds(
    store: RunStore, table: TableRecord, tally: Tally, column: SchemaColumn
) -> SchemaColumn:
    """A column that was proposed, with the bounds of all rows.

    Args:
      store: where.
      table: whose column.
      tally: its raw cells, which it was proposed from.
      column: the proposal; any other stays as it is.
    """
    proposed = column.proposal is not None and column.proposal == column.domain_digest
    if not proposed or ends_known(tally, column):
        return column
    return bounded([column], _reread(store, table))[0]


def _reread(store: RunStore, table: TableRecord) -> Reread:
    return lambda names: store.raw_batches(table.id, columns=names)
