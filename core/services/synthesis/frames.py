"""Frames that somebody hands in, with what is known of how their cells were read."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd
import pyarrow as pa

from core.proposing.propose import infer_schema
from core.reading.raw_cells import raw_frame
from core.reading.typed_cells import frame_as_declared
from core.schema.column import Column
from core.schema.form import FileForm
from core.schema.schema import Schema
from core.services.synthesis.options import RefusedError, SynthesisOptions
from core.services.synthesis.schema_options import with_schema
from core.services.synthesis.table_files import all_columns, read_schema

READ = "facsimile_read"  # of a frame's `attrs`: how its cells were read, public
# of a column: what a cell's meaning depends on
TYPING = ("kind", "dtype", "form", "date_format", "categories", "other")


def mark_read(frame: pd.DataFrame, schema: Schema, *, declared: bool) -> None:
    """Keep with rows how their cells were read.

    Args:
      schema: declared, or proposed from the rows.
    """
    typed = {column.name: _typing(column) for column in schema.columns}
    form = schema.form.model_dump(mode="json")
    frame.attrs[READ] = {"form": form, "typed": typed if declared else None}


def _typing(column: Column) -> str:
    """A digest of what a cell of the column means, 16 hex digits."""
    stated = column.model_dump_json(include={*TYPING})
    return hashlib.sha256(stated.encode()).hexdigest()[:16]


def typed_rows_of(
    options: SynthesisOptions, frame: pd.DataFrame, schema: Schema | str | Path | None
) -> tuple[pd.DataFrame, Schema]:
    """Typed rows and their schema, as the options have it."""
    return with_schema(options, *rows_of(frame, schema_of(schema)))


def schema_of(schema: Schema | str | Path | None) -> Schema | None:
    """A schema, or that of a file."""
    return read_schema(Path(schema)) if isinstance(schema, str | Path) else schema


def rows_of(frame: pd.DataFrame, schema: Schema | None) -> tuple[pa.Table | pd.DataFrame, Schema]:
    """Rows as `with_schema` takes them and their schema: as declared, or proposed from them.

    Raises:
      RefusedError: their cells were read otherwise than the schema declares.
    """
    read = frame.attrs.get(READ)
    if read is None:
        if schema is None:
            return raw_frame(frame), infer_schema(frame)
        return frame_as_declared(frame, all_columns(frame.columns, schema)), schema
    if schema is None:
        return frame, infer_schema(frame, FileForm.model_validate(read["form"]))
    typed = read["typed"] or {}
    there = [column for column in schema.columns if column.name in frame.columns]
    added = [column for column in there if column.name not in typed]
    if not typed or any(typed[c.name] != _typing(c) for c in there if c.name in typed):
        raise RefusedError(
            "these rows were not read by this schema, so one cell may have changed how others "
            "were read. Read it with read_table(path, schema=...)"
        )
    if not added:
        return frame, schema
    # columns that were made of those in the file
    names = [column.name for column in added]
    return frame.assign(**frame_as_declared(frame[names], added)), schema
