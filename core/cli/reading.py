"""Tables that commands read: raw rows from another process, typed as a schema declares them."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.cli.common import (
    CommandError,
    keep_out,
    read_schema,
    say_violations,
    with_person,
    with_rules,
    with_tags,
    with_target,
)
from core.cli.places import PASSWORD, Url
from core.importing.apart import Request, read_apart
from core.proposing.misfits import misfit_words, misfits
from core.reading.address import Address, Allowed
from core.reading.raw_cells import is_written
from core.reading.tally import Tally, count_cells
from core.reading.typed_cells import typed_rows, typed_tally
from core.reading.typed_frames import UNREAD
from core.runs.workspace import Workspace
from core.schema.column import Column
from core.schema.form import FileForm
from core.schema.schema import Kind, Schema

__all__ = [
    "all_columns",
    "read_file",
    "read_with_schema",
    "say_misfits",
    "typed_frame",
    "with_schema",
]


def read_with_schema(options: argparse.Namespace) -> tuple[pd.DataFrame, Schema]:
    """The rows, typed, and their schema, with what the command line says of it."""
    declared = options.schema
    if isinstance(declared, Path):
        declared = read_schema(declared)
    return with_schema(options, *read_file(options.table, query=options.query, schema=declared))


def with_schema(
    options: argparse.Namespace, rows: pa.Table | pd.DataFrame, schema: Schema
) -> tuple[pd.DataFrame, Schema]:
    """Typed rows and their schema, with the target, the rules and the person that were asked for.

    Args:
      rows: all rows, raw, or typed by the schema.
      schema: declared where `options.schema` is not None, else proposed from the rows.

    Raises:
      CommandError: the schema or an option does not fit the rows.
    """
    there = rows.columns if isinstance(rows, pd.DataFrame) else rows.column_names
    missing = sorted(set(schema.names).difference(there))
    if missing:
        raise CommandError(f"the schema names columns the table lacks: {', '.join(missing)}")
    schema = keep_out(options, with_person(options, with_target(options, schema)))
    frame = rows if isinstance(rows, pd.DataFrame) else typed_frame(rows, schema)
    may_declare = options.schema is None and options.declare_public
    schema = with_rules(options, schema, frame if may_declare else None)
    if options.sensitive:
        schema = with_tags(schema, options.sensitive)
    asked = (options.alpha, options.shift, options.certificate)
    if not schema.sensitive and any(value is not None for value in asked):
        raise CommandError("--alpha, --shift and --certificate need tagged columns: --sensitive")
    say_misfits(rows, schema)
    say_violations(frame, schema)
    return frame, schema


def read_file(
    path: Path | Url,
    *,
    query: str = "",
    schema: Schema | None = None,
    form: FileForm | None = None,
) -> tuple[pa.Table, Schema]:
    """The raw rows of a table and their schema; what was decided in doubt goes to stderr.

    Args:
      path: a file, a folder of Parquet files, or an address.
      schema: as declared; proposed from the rows when None.
      form: how a text file is written, where no schema says so.
    """
    if isinstance(path, Path) and not path.exists():
        raise CommandError(f"there is no file {path}")
    request = Request(declared=schema.form if schema else form, proposing=schema is None)
    if isinstance(path, Path) and path.is_file() and not query:
        request = replace(request, path=path)
    else:  # as is a folder of Parquet files
        address = Address.of(str(path), query=query, password=os.environ.get(PASSWORD, ""))
        allowed = Allowed.here(signed_in=False, forbidden=Workspace.default_home())
        request = replace(request, address=address, allowed=allowed)
    with tempfile.TemporaryDirectory(prefix="facsimile-") as folder:
        read = read_apart(request, Path(folder) / "rows.parquet")
        rows = pq.read_table(read.path)
    for doubt in read.doubts:
        print(f"note: {doubt}", file=sys.stderr)
    declared = schema or read.schema
    assert declared is not None
    return rows, declared


def all_columns(names: Iterable[str], schema: Schema) -> list[Column]:
    """Columns of those names in their order; those that the schema does not name are text."""
    known = {column.name: column for column in schema.columns}
    return [known.get(name, Column(name=name, kind=Kind.TEXT)) for name in names]


def typed_frame(rows: pa.Table, schema: Schema) -> pd.DataFrame:
    """All columns of raw rows in their own order."""
    return typed_rows(rows, all_columns(rows.column_names, schema))


def say_misfits(rows: pa.Table | pd.DataFrame, schema: Schema) -> None:
    """Count on stderr the cells that the declaration cannot hold, those that do not read too."""
    for column in schema.columns:
        if isinstance(rows, pd.DataFrame):
            typed = Tally.of(rows[column.name])
            unreadable = rows.attrs.get(UNREAD, {}).get(column.name, 0)
        else:
            cells = count_cells(rows[column.name], written=is_written(rows.schema))
            typed, unreadable = typed_tally(cells, column)
        words = misfit_words(column, misfits(typed, column, unreadable), unreadable)
        if words:
            print(f"note: '{column.name}': {words}", file=sys.stderr)
