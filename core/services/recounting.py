"""Counting anew what some columns of a stored table hold; all others are not read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from core.runs.storage.records import TableRecord
from core.runs.storage.store import RunStore
from core.table.grid import as_kind
from core.table.proposing import Counts, Reread, bounded, ends_known, pictures
from core.table.schema import Kind, Schema, SchemaColumn
from core.table.tally import Tally

__all__ = ["proposed_kind", "recounted", "tallies"]


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
    shown = [anew.get(one["name"], one) for one in table.profile["columns"]]
    return store.save_schema(table.id, schema, profile=table.profile | {"columns": shown})


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
    proposed = as_kind(tally, column, kind)
    if ends_known(tally, proposed):
        return proposed
    return bounded([proposed], _reread(store, table))[0]


def _reread(store: RunStore, table: TableRecord) -> Reread:
    return lambda names: store.raw_batches(table.id, columns=names)
