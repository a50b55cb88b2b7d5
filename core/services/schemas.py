"""Schemas that live longer than a table: saved as files, loaded, and matched by column names."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from core.proposing.schema_matching import Comparison, adopted, best_match, compare
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.schema.column import SchemaError
from core.schema.schema import Schema
from core.services.tables import confirm_schema


def schema_file(table: TableRecord) -> bytes:
    """A table's schema as the JSON that `--schema` takes; with notes that are for inside only."""
    return table.schema.model_dump_json(indent=1).encode()


def read_schema_file(content: bytes) -> Schema:
    """A schema from such a file."""
    try:
        return Schema.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        fault = str(first.get("ctx", {}).get("error") or first["msg"])
        raise SchemaError(
            "This is no schema ({where}: {fault}). Nothing was changed.",
            where=where or "JSON",
            fault=fault,
        ) from None


def like_last_time(
    store: RunStore, table: TableRecord, others: Sequence[TableRecord]
) -> tuple[TableRecord, Comparison] | None:
    """The declared table whose columns are called most alike, and how this one differs; or None.

    Also None once this table is declared, or holds those declarations already. No row is read.
    """
    if store.attested(table.id):
        return None
    declared = {one.id: one for one in others if one.id != table.id and store.attested(one.id)}
    key = best_match(table.schema, [(one.id, one.schema) for one in declared.values()])
    if key is None or adopted(table.schema, declared[key].schema) == table.schema:
        return None
    return declared[key], compare(table.schema, declared[key].schema)


def adopt(store: RunStore, table: TableRecord, saved: Schema) -> TableRecord:
    """Give a table the declarations of a saved schema, to be confirmed by the steward.

    Rows are read to count anew what does not fit.
    """
    if not set(saved.names) & set(table.schema.names):
        raise SchemaError(
            "That schema names no column of this table. Nothing was changed. Choose another file."
        )
    return confirm_schema(store, table.id, adopted(table.schema, saved))
