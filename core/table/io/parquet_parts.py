"""Parquet files that are one table in parts, read group by group from a disk or a store.

The parts' footers say what their columns are, so types are settled before any row is read: whole
numbers in one part and fractions in another are numbers, anything else that differs is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.table.form import FileForm, Form
from core.table.io.arrow_types import stored_type
from core.table.io.cells import ReadLimits, TableReadError
from core.table.io.delimited import check_header
from core.table.io.parquet import DAMAGE, check_kind, is_index, read_column
from core.table.io.row_groups import arrow_batches, columns_with_gaps
from core.table.io.sources import Doubts
from core.table.raw_cells import batch_rows

__all__ = ["ParquetParts"]


@dataclass
class ParquetParts:
    """A `Source`: one or more Parquet files with the same columns.

    Attributes:
      files: their paths in the file system, in order.
      system: an fsspec file system, or anything with its `open`.
      words: where they are, for people.
    """

    files: Sequence[str]
    system: Any
    words: str

    def __post_init__(self) -> None:
        self._doubts = Doubts()
        self._schema, self._gaps, self.rows = self._settle()
        self._names = check_header(self._schema.names, ReadLimits())
        for name, kind in zip(self._names, self._schema.types, strict=True):
            check_kind(kind, name)
        if not self.rows:
            raise TableReadError("The table has columns but no rows. Choose one with rows.")

    @property
    def form(self) -> FileForm:
        """See `Source.form`."""
        kinds = zip(self._names, self._schema.types, strict=True)
        return FileForm.of({name: Form(arrow=stored_type(kind)) for name, kind in kinds})

    @property
    def doubts(self) -> tuple[str, ...]:
        """See `Source.doubts`."""
        return self._doubts.words()

    def prepare(self, folder: Path) -> None:
        """See `Source.prepare`: files can be read again."""

    def batches(self) -> Iterator[pd.DataFrame]:
        """See `Source.batches`."""
        self._doubts = Doubts()
        size = batch_rows(len(self._names))
        for part in self.files:
            try:
                with self.system.open(part, "rb") as stream, closing(_opened(stream)) as file:
                    for batch in arrow_batches(file, self._schema.names, size):
                        if batch.num_rows:
                            yield self._frame(batch)
            except TableReadError:  # a ValueError, which damage raises too
                raise
            except DAMAGE:
                raise _damaged(part) from None

    def _frame(self, batch: pa.RecordBatch) -> pd.DataFrame:
        columns = {}
        for name, wanted in zip(self._names, self._schema, strict=True):
            cells = pa.chunked_array([batch.column(wanted.name)])
            try:
                cells = _plain(cells).cast(wanted.type)
            except pa.ArrowException:
                raise _differs(name) from None
            gaps = wanted.name in self._gaps
            columns[name], doubts = read_column(cells, name, gaps=gaps)
            self._doubts.add(doubts)
        return pd.DataFrame(columns, copy=False)

    def _settle(self) -> tuple[pa.Schema, set[str], int]:
        """The columns of all parts, those with absent cells, and the number of rows."""
        settled, gaps, rows = None, set(), 0
        for part in self.files:
            try:
                with self.system.open(part, "rb") as stream, closing(_opened(stream)) as file:
                    schema, told = _columns(file), file.metadata
                    gaps |= columns_with_gaps(told)
                    rows += told.num_rows
            except DAMAGE:
                raise _damaged(part) from None
            check_header(schema.names, ReadLimits())  # of each part: columns are found by name
            if settled is None:
                settled = schema
                continue
            lacking = sorted(set(settled.names) ^ set(schema.names))
            if lacking:
                raise TableReadError(
                    f"The column '{lacking[0]}' is in some parts and not in others (such as "
                    f"{_base(part)}). Nothing was kept. Give all parts the same columns."
                )
            settled = _unified(settled, schema)
        if settled is None or not settled.names:
            raise TableReadError("There is no Parquet file with columns here. Nothing was kept.")
        return settled, gaps, rows


def _opened(stream: Any) -> pq.ParquetFile:
    return pq.ParquetFile(stream, pre_buffer=False)


def _columns(file: pq.ParquetFile) -> pa.Schema:
    """The columns without those that pandas adds, dictionaries as what they stand for."""
    fields = [
        pa.field(one.name, one.type.value_type if pa.types.is_dictionary(one.type) else one.type)
        for one in file.schema_arrow
        if not is_index(one.name)
    ]
    return pa.schema(fields)


def _unified(settled: pa.Schema, schema: pa.Schema) -> pa.Schema:
    fields = []
    for one in settled:
        other = schema.field(one.name)
        try:
            both = pa.unify_schemas(
                [pa.schema([one]), pa.schema([other])], promote_options="permissive"
            )
        except pa.ArrowException:
            raise _differs(one.name) from None
        fields.append(both.field(0))
    return pa.schema(fields)


def _differs(name: str) -> TableReadError:
    return TableReadError(
        f"The column '{name}' holds values of different types in different parts. Nothing was "
        "kept. Write all parts with one type for it."
    )


def _plain(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = cells.type
    return cells.cast(kind.value_type) if pa.types.is_dictionary(kind) else cells


def _damaged(part: str) -> TableReadError:
    return TableReadError(
        f"The Parquet file {_base(part)} is damaged or cut short, or could not be read to its end. "
        "Nothing was kept. Write or download it again."
    )


def _base(part: str) -> str:
    return part.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
