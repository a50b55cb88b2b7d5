"""Rows of a Parquet file, some at a time, in the memory of a few of its groups of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from core.table.raw_cells import batch_rows

__all__ = ["arrow_batches", "columns_with_gaps", "raw_batches"]


def raw_batches(
    file: Path | BinaryIO, columns: Sequence[str] | None = None, rows: int | None = None
) -> Iterator[pa.Table]:
    """A Parquet file's rows as they are, in file order.

    Args:
      file: its path, or a stream that can seek.
      columns: only these, in this order; all by default.
      rows: of a batch at most, ≥ 1; None takes `batch_rows` of all its columns.
    """
    with pq.ParquetFile(file) as parquet:
        most = rows or batch_rows(len(parquet.schema_arrow.names))
        for batch in arrow_batches(parquet, columns, most):
            table = pa.Table.from_batches([batch])
            yield table if columns is None else table.select(columns)


def arrow_batches(
    file: pq.ParquetFile, names: Sequence[str] | None, rows: int
) -> Iterator[pa.RecordBatch]:
    """The rows of some columns, at most so many at a time.

    A reader keeps memory of every group of rows that it has passed until it ends, so each few
    groups get a reader of their own.

    Args:
      file: opened.
      names: of columns; None for all.
      rows: of a batch at most, ≥ 1.
    """
    groups: list[int] = []
    waiting = 0
    for group in range(file.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        if groups and waiting + size > rows:
            yield from file.iter_batches(rows, row_groups=groups, columns=names)
            groups, waiting = [], 0
        groups, waiting = [*groups, group], waiting + size
    if groups:
        yield from file.iter_batches(rows, row_groups=groups, columns=names)


def columns_with_gaps(told: pq.FileMetaData) -> set[str]:
    """Columns with absent cells, as a file says; where it does not say there may be some.

    Args:
      told: the file's footer.
    """
    gaps = set()
    for group in range(told.num_row_groups):
        if not told.row_group(group).num_rows:
            continue
        for place in range(told.num_columns):
            chunk = told.row_group(group).column(place)
            counted = chunk.statistics
            if counted is None or not counted.has_null_count or counted.null_count:
                gaps.add(chunk.path_in_schema)
    return gaps
