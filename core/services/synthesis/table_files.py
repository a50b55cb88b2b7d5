"""Tables as files: rows read in another process, and synthetic ones written and marked."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from core.importing.apart import Request, read_apart
from core.proposing.misfits import misfit_words, misfits
from core.reading.address import Address, Allowed
from core.reading.raw_cells import is_written
from core.reading.tally import Tally, count_cells
from core.reading.typed_cells import UNREAD, typed_rows, typed_tally
from core.runs.execution.synthetic_label import write_label
from core.runs.workspace import Workspace
from core.schema.column import Column, Kind
from core.schema.form import FileForm
from core.schema.schema import Schema
from core.services.export import write_linked
from core.services.synthesis.locations import PASSWORD, Url
from core.services.synthesis.options import RefusedError
from core.writing.tables import write_csv_parts, write_parquet_parts
from core.writing.whole_files import replacing

OUT_ENDINGS = (".csv", ".parquet")
MARK = "not-private.json"


def read_file(
    path: Path | Url, *, query: str = "", schema: Schema | None = None, form: FileForm | None = None
) -> tuple[pa.Table, Schema]:
    """The raw rows of a table and their schema; what was decided in doubt goes to stderr.

    Args:
      path: a file, a folder of Parquet files, or an address.
      schema: as declared; proposed from the rows when None.
      form: how a text file is written, where no schema says so.
    """
    if isinstance(path, Path) and not path.exists():
        raise RefusedError(f"there is no file {path}")
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


def say_misfits(rows: pa.Table | pd.DataFrame, columns: Iterable[Column]) -> None:
    """Count on stderr the cells that the declaration cannot hold, those that do not read too."""
    for column in columns:
        if isinstance(rows, pd.DataFrame):
            typed = Tally.of(rows[column.name])
            unreadable = rows.attrs.get(UNREAD, {}).get(column.name, 0)
        else:
            cells = count_cells(rows[column.name], written=is_written(rows.schema))
            typed, unreadable = typed_tally(cells, column)
        words = misfit_words(column, misfits(typed, column, unreadable), unreadable)
        if words:
            print(f"note: '{column.name}': {words}", file=sys.stderr)


def read_schema(path: Path) -> Schema:
    """A schema from JSON; RefusedError says what is wrong with it."""
    try:
        return Schema.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = first_problem(error)
        where = ".".join(str(part) for part in first["loc"])
        raise RefusedError(f"the schema {path} is not valid: {where} {first['msg']}") from None


def out_path(path: Path, *, endings: Sequence[str], inputs: Sequence[Path]) -> Path:
    """The path of a file to be written, refused before anything is read or spent."""
    if path.suffix.lower() not in endings:
        raise RefusedError(f"--out must end in {' or '.join(endings)}, not '{path.name}'")
    if not path.parent.is_dir():
        raise RefusedError(f"there is no folder {path.parent}")
    if path.is_dir():
        raise RefusedError(f"{path} is a folder")
    if path.exists() and any(other.exists() and path.samefile(other) for other in inputs):
        raise RefusedError("--out would replace a table that is read")
    return path


def write_table(
    frame: pd.DataFrame,
    out: Path,
    certificate: dict[str, Any],
    *,
    schema: Schema,
    escape_formulas: bool = False,
) -> None:
    """Write CSV, Parquet or a ZIP of linked files, by the ending, whole or not at all, and a label.

    Args:
      certificate: of the run that the rows come from.
      schema: says how cells are written and of which type they are.
    """
    label = write_label(out, certificate)
    if out.suffix.lower() == ".zip":
        write_linked(frame, out, schema, certificate, escaped=escape_formulas)
    elif out.suffix.lower() == ".csv":
        write_csv_parts([frame], out, schema=schema, escape_formulas=escape_formulas)
    else:
        write_parquet_parts([frame], out, schema=schema, label=label)


def require_consent(*, given: bool) -> None:
    """Refuse rows without differential privacy unless somebody said that they are wanted.

    Raises:
      RefusedError: nobody did; nothing was read or written.
    """
    if not given:
        raise RefusedError(
            "these rows would have no differential privacy, so nothing was read or written; say "
            f"--without-privacy to have them, and a file OUT.{MARK} beside them that says so"
        )


def mark_without_privacy(out: Path, certificate: dict[str, Any]) -> Path:
    """Write, before the table, the certificate that says it has no differential privacy.

    Args:
      out: where the table goes; the mark has the same name and an ending of its own.
    """
    mark = out.with_name(f"{out.name}.{MARK}")
    with replacing(mark) as file:
        file.write(json.dumps(certificate, indent=2, ensure_ascii=False).encode())
    return mark


def first_problem(error: ValidationError) -> ErrorDetails:
    """The first problem, without the value that has it."""
    return error.errors(include_url=False, include_input=False)[0]
