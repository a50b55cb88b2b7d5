"""What a steward declares about a stored table: kinds, bounds, categories, roles.

Rows are read here only where a change of kind needs a domain to propose.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from core.runs import service
from core.runs.records import TableRecord
from core.runs.store import RunStore
from core.table.grid import as_kind, schema_of, with_categories
from core.table.schema import DomainSource, Kind, Schema, SchemaError

__all__ = [
    "change_categories",
    "change_grid",
    "change_groups",
    "change_holdout",
    "change_kind",
    "change_target",
]


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


def change_holdout(store: RunStore, table: TableRecord, share: float) -> TableRecord:
    """Keep a share of the records out of training, in [0, ½], chosen by their place in the file."""
    return store.save_schema(table.id, table.schema.model_copy(update={"holdout": share}))


def change_groups(store: RunStore, table: TableRecord, groups: Mapping[str, str]) -> TableRecord:
    """Tag columns whose distribution must not be revealed.

    Args:
      store: where.
      table: whose columns.
      groups: name of a group by column; an empty name or no entry leaves a column untagged.

    Raises:
      SchemaError: a column that is not modelled is tagged; nothing was kept.
    """
    sensitive: dict[str, tuple[str, ...]] = {}
    for column in table.schema.columns:
        group = (groups.get(column.name) or "").strip()
        if group and not column.modelled:
            raise SchemaError(
                f"'{column.name}' is dropped, text or an identifier, so its distribution is not "
                "released. It needs no tag."
            )
        if group:
            sensitive[group] = (*sensitive.get(group, ()), column.name)
    sensitive = dict(sorted(sensitive.items()))
    return store.save_schema(table.id, table.schema.model_copy(update={"sensitive": sensitive}))


def _with_roles(schema: Schema) -> Schema:
    """The schema without a target or tags that are no longer modelled."""
    groups = {
        group: tuple(name for name in names if schema[name].modelled)
        for group, names in schema.sensitive.items()
    }
    schema = schema.model_copy(
        update={"sensitive": {g: names for g, names in groups.items() if names}}
    )
    if schema.target is not None and not schema[schema.target].modelled:
        return schema.model_copy(update={"target": None})
    kept = {c.name for c in schema.columns if c.source is not DomainSource.DROP}
    if schema.entity_key is not None and schema.entity_key not in kept:
        return schema.model_copy(update={"entity_key": None})
    return schema
