"""Rows of a Parquet file, some at a time, in the memory of a few of its groups of rows.

A few bytes can stand for gigabytes here. So a batch has fewer rows where cells are long, and text
that repeats itself is measured before it is spread out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.reading.arrow_types import is_text
from core.reading.raw_cells import BATCH_BYTES, batch_rows

REPETITIVE = 16  # bytes a cell in the file: text that takes less repeats itself
BUFFER = 1 << 16  # bytes of each column; else arrow holds a whole group of rows


def raw_batches(file: Path | BinaryIO, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """A Parquet file's rows as they are, in file order, of some columns or of all."""
    with parquet_file(file) as parquet:
        schema = parquet.metadata.schema.to_arrow_schema()
        fields = [schema.field(name) for name in columns or schema.names]
        wanted = pa.schema(fields, metadata=schema.metadata)
        for batch in arrow_batches(parquet, columns):
            yield pa.Table.from_batches([batch]).select(wanted.names).cast(wanted)


@contextmanager
def parquet_file(file: Path | BinaryIO, *, local: bool = True) -> Iterator[pq.ParquetFile]:
    """A Parquet file, repetitive text read as dictionaries; `local` when small reads are quick."""
    footer = pq.read_metadata(file)
    with pq.ParquetFile(
        file,
        metadata=footer,
        read_dictionary=_repetitive(footer),
        pre_buffer=False,
        buffer_size=BUFFER if local else 0,
    ) as opened:
        yield opened


def arrow_batches(
    file: pq.ParquetFile, names: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of some columns or of all, as many at a time as memory holds easily.

    A reader keeps memory of every group of rows that it has passed, so each few get their own.
    """
    most, waiting = _fitting(file.metadata), 0
    readers: list[list[int]] = []  # each one's groups
    for index, group in enumerate(_groups(file.metadata)):
        waiting += group.num_rows
        if not readers or waiting > most:
            readers.append([])
            waiting = group.num_rows
        readers[-1].append(index)
    for indices in readers:
        for batch in file.iter_batches(most, row_groups=indices, columns=names):
            yield from _pieces(batch)


def columns_with_gaps(footer: pq.FileMetaData) -> set[str]:
    """Columns with absent cells, as a footer says; where it does not say there may be some."""
    gaps = set()
    for group in _groups(footer):
        for index in range(footer.num_columns if group.num_rows else 0):
            chunk = group.column(index)
            counted = chunk.statistics
            if counted is None or not counted.has_null_count or counted.null_count:
                gaps.add(chunk.path_in_schema)
    return gaps


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A column's type in a batch: dictionaries are what they stand for, text is of one type."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if is_text(kind) else kind


def _groups(footer: pq.FileMetaData) -> list[pq.RowGroupMetaData]:
    return [footer.row_group(group) for group in range(footer.num_row_groups)]


def _fitting(footer: pq.FileMetaData) -> int:
    unpacked = sum(group.total_byte_size for group in _groups(footer))
    fitting = int(BATCH_BYTES * footer.num_rows // max(1, unpacked))
    return max(1, min(batch_rows(footer.num_columns), fitting))


def _repetitive(footer: pq.FileMetaData) -> list[int]:
    """Columns of text that are read as dictionaries: quick where values repeat, slow elsewhere."""
    groups, indices = _groups(footer), []
    for index in range(footer.num_columns):
        if footer.schema.column(index).logical_type.type == "STRING":
            size = sum(group.column(index).total_uncompressed_size for group in groups)
            indices += [index] * (size < REPETITIVE * footer.num_rows)
    return indices


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch, halved until its text fits once it is spread over the rows."""
    if batch.num_rows > 1 and sum(map(_letters, batch.columns)) > BATCH_BYTES:
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half))
        yield from _pieces(batch.slice(half))
    elif batch.num_rows:
        yield batch


def _letters(column: pa.Array) -> int:
    """Bytes of a dictionary column's text once it is spread over the rows; 0 for others."""
    if not pa.types.is_dictionary(column.type) or not is_text(column.type.value_type):
        return 0
    lengths = np.asarray(pc.binary_length(column.dictionary).fill_null(0), dtype=np.int64)
    used = np.asarray(column.indices.drop_null())
    return int(lengths[used].sum())
