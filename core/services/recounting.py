"""Counting anew what some columns of a stored table hold; all others are not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.proposing.profile import preview
from core.proposing.propose import Counts, Reread, bounded, pictures
from core.reading.tally import Tally
from core.reading.typed_cells import typed_rows
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.schema.column import SchemaColumn
from core.schema.schema import Schema

BROKEN = "broken rules"  # of a table's profile: rows that break each rule, by its text


def recounted(store: RunStore, table: TableRecord, schema: Schema) -> TableRecord:
    """Keep a schema, and count anew what the changed columns hold; reads those columns alone."""
    known = {one["name"]: one for one in table.profile.get("columns", ())}
    changed = [
        new
        for new, old in zip(schema.columns, table.schema.columns, strict=True)
        if new != old or new.name not in known
    ]
    if not changed:
        return store.save_schema(table.id, schema)
    reread = _reread(store, table)
    counts = Counts.of(reread([column.name for column in changed]))
    for one in pictures(counts.tallies(), changed, reread):
        known[one.name] = one.model_dump(mode="json")
    anew = preview(typed_rows(counts.head, changed))
    before = table.profile.get("preview") or [{} for _ in anew]
    rows = [{**old, **new} for old, new in zip(before, anew, strict=True)]
    names, gone = table.columns, {column.name for column in changed}
    shown: dict[str, Any] = {
        "columns": [known[name] for name in names],
        "preview": [{name: row[name] for name in names} for row in rows],
    }
    if broken := table.profile.get(BROKEN):
        stale = {rule.text for rule in schema.rules if not gone.isdisjoint(rule.columns)}
        shown[BROKEN] = {text: n for text, n in broken.items() if text not in stale}
    return store.save_schema(table.id, schema, profile=table.profile | shown)


def tallies(store: RunStore, table: TableRecord, names: Sequence[str]) -> dict[str, Tally]:
    """The different raw cells of some columns."""
    return Counts.of(_reread(store, table)(names)).tallies()


def whole_bounds(
    store: RunStore, table: TableRecord, tally: Tally, column: SchemaColumn
) -> SchemaColumn:
    """A column that was proposed, with the bounds of all rows."""
    if column.proposal is None or column.proposal != column.domain_digest:
        return column
    return bounded(tally, column, _reread(store, table))


def _reread(store: RunStore, table: TableRecord) -> Reread:
    return lambda names: store.raw_batches(table.id, columns=names)
