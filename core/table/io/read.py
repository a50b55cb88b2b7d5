"""Any table file to a frame, in this process: for files that may be trusted, and small ones.

What others send is read by `core.table.io.apart`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pyarrow as pa

from core.table.form import FileForm
from core.table.io.cells import ReadLimits, TableReadError, too_big, too_many_rows
from core.table.io.opening import open_path
from core.table.proposing import Counts, propose
from core.table.raw_cells import batch_rows
from core.table.schema import Schema
from core.table.typed_cells import typed_rows

__all__ = ["ReadLimits", "ReadResult", "TableReadError", "read_table"]


@dataclass(frozen=True)
class ReadResult:
    """A table and how it was read.

    Attributes:
      frame: n ≥ 1 rows, typed by the schema.
      schema: the declared one, else the proposed one.
      form: how the file is written, so that synthetic rows can be written alike.
      warnings: what was decided in doubt, one plain sentence each.
    """

    frame: pd.DataFrame
    schema: Schema
    form: FileForm
    warnings: tuple[str, ...] = ()


def read_table(
    source: Path | BinaryIO,
    name: str | None = None,
    *,
    limits: ReadLimits | None = None,
    schema: Schema | None = None,
) -> ReadResult:
    """Read one table.

    Args:
      source: a path, or a binary stream from its current position.
      name: the file's name when the stream has none; only its ending is used, to name a mismatch
        and to prefer tabs in `.tsv`.
      limits: what is too big; see `ReadLimits`.
      schema: declares what the cells are; proposed when None.

    Raises:
      TableReadError: one plain line with what is wrong and what to do. Headers may be quoted,
        values never are.
    """
    limits = limits or ReadLimits()
    with tempfile.TemporaryDirectory(prefix="table-") as folder:
        scratch = Path(folder)
        path = source if isinstance(source, Path) else _spooled(source, scratch)
        label = name or str(getattr(source, "name", "") or source)
        declared = None if schema is None else schema.form
        opened = open_path(path, label, limits=limits, declared=declared)
        opened.prepare(scratch)
        rows = pa.concat_tables(_bounded(opened.batches(), limits))
    said: tuple[str, ...] = ()
    if schema is None:
        schema, said = _proposed(rows, opened.form)
    frame = typed_rows(rows, schema.columns)
    form = opened.form.model_copy(update={"columns": schema.form.columns})
    return ReadResult(frame, schema, form, (*opened.doubts, *said))


def _spooled(stream: BinaryIO, folder: Path) -> Path:
    """What is left in a stream, as a file."""
    path = folder / "table"
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    return path


def _bounded(batches: Iterable[pa.Table], limits: ReadLimits) -> Iterator[pa.Table]:
    """The batches, as long as all of them and as much again, once they are typed, fit."""
    rows = size = 0
    for batch in batches:
        rows += batch.num_rows
        size += batch.nbytes
        if rows > limits.max_rows:
            raise too_many_rows(rows, limits)
        if 2 * size > limits.max_bytes:
            raise too_big(limits)
        yield batch


def _proposed(rows: pa.Table, form: FileForm) -> tuple[Schema, tuple[str, ...]]:
    """A schema for all rows, and doubts about it."""
    size = batch_rows(rows.num_columns)

    def reread(names: Sequence[str]) -> Iterator[pa.Table]:
        some = rows.select(list(names))
        return (some.slice(first, size) for first in range(0, some.num_rows, size))

    return propose(Counts.of(reread(rows.column_names)), reread, form)
