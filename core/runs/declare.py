"""What a steward declares about a stored table: kinds, bounds, categories, roles.

Rows are read here only where a change of kind needs a domain to propose.
"""

from __future__ import annotations

import pandas as pd

from core.runs import service
from core.runs.records import TableRecord
from core.runs.store import RunStore
from core.table.grid import as_kind, schema_of, with_categories
from core.table.schema import DomainSource, Kind, Schema

__all__ = ["change_categories", "change_grid", "change_kind", "change_target"]


def change_grid(store: RunStore, table: TableRecord, grid: pd.DataFrame) -> TableRecord:
    """Keep the edited grid; kinds that changed get a fresh domain and picture.

    Raises:
      SchemaError: a cell is wrong; nothing was kept.
    """
    kinds = [Kind(kind) for kind in grid["kind"]]
    changed = {
        column.name: kind
        for column, kind in zip(table.schema.columns, kinds, strict=True)
        if kind is not column.kind
    }
    if changed:
        frame = store.load_frame(table.id)
        schema = table.schema
        for name, kind in changed.items():
            schema = schema.replace(as_kind(frame[name], schema[name], kind))
        return service.confirm_schema(store, table.id, _with_roles(schema))
    schema = _with_roles(schema_of(grid, table.schema))
    if schema == table.schema:
        return table
    scales = [c.scale for c in schema.columns] != [c.scale for c in table.schema.columns]
    if scales:  # pictures are drawn on the column's scale
        return service.confirm_schema(store, table.id, schema)
    return store.save_schema(table.id, schema)


def change_kind(store: RunStore, table: TableRecord, name: str, kind: Kind) -> TableRecord:
    """Make one column another kind."""
    frame = store.load_frame(table.id)
    schema = table.schema.replace(as_kind(frame[name], table.schema[name], kind))
    return service.confirm_schema(store, table.id, _with_roles(schema))


def change_categories(store: RunStore, table: TableRecord, name: str, text: str) -> TableRecord:
    """Replace a column's categories by those listed one a line."""
    schema = table.schema.replace(with_categories(table.schema[name], text))
    return store.save_schema(table.id, schema)


def change_target(store: RunStore, table: TableRecord, target: str | None) -> TableRecord:
    """Name the target column, or none."""
    return store.save_schema(table.id, table.schema.model_copy(update={"target": target}))


def _with_roles(schema: Schema) -> Schema:
    """The schema without a target that is no longer modelled."""
    if schema.target is not None and not schema[schema.target].modelled:
        return schema.model_copy(update={"target": None})
    kept = {c.name for c in schema.columns if c.source is not DomainSource.DROP}
    if schema.entity_key is not None and schema.entity_key not in kept:
        return schema.model_copy(update={"entity_key": None})
    return schema
