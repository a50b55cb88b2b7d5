"""Rows of a stored table, some at a time: what is larger than memory is read no other way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.runs.storage.artefacts import Readable

__all__ = ["BATCH_ROWS", "arrow_batches", "row_batches", "row_count"]

BATCH_ROWS = 131_072  # of a batch; 50 columns of numbers are then 50 MB


def row_batches(
    file: Readable, *, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS
) -> Iterator[pd.DataFrame]:
    """A Parquet file's rows in file order, in the dtypes of `pd.read_parquet`.

    A column of integers or booleans that has absent cells somewhere comes back in the same dtype
    in every batch, also in those that have none.

    Args:
      file: its path, or a stream that can seek.
      columns: only these, in this order; all by default.
      rows: of a batch at most, ≥ 1.
    """
    with pq.ParquetFile(file) as parquet:
        names = parquet.schema_arrow.names if columns is None else list(columns)
        dtypes = _dtypes(parquet, names)
        for batch in arrow_batches(parquet, names, rows):
            frame = pa.Table.from_batches([batch]).to_pandas()[names]
            odd = {name: kind for name, kind in dtypes.items() if frame[name].dtype != kind}
            yield frame.astype(odd) if odd else frame


def arrow_batches(
    file: pq.ParquetFile, names: Sequence[str], rows: int
) -> Iterator[pa.RecordBatch]:
    """The rows of some columns, at most so many at a time.

    A reader keeps memory of every group of rows that it has passed until it ends, so each few
    groups get a reader of their own.

    Args:
      file: opened.
      names: of columns.
      rows: of a batch at most, ≥ 1.
    """
    groups: list[int] = []
    waiting = 0
    for group in range(file.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        if groups and waiting + size > rows:
            yield from file.iter_batches(rows, row_groups=groups, columns=list(names))
            groups, waiting = [], 0
        groups, waiting = [*groups, group], waiting + size
    if groups:
        yield from file.iter_batches(rows, row_groups=groups, columns=list(names))


def row_count(file: Readable) -> tuple[int, int]:
    """How many rows and columns a Parquet file has."""
    told = pq.read_metadata(file)
    return told.num_rows, told.num_columns


def _dtypes(file: pq.ParquetFile, names: Sequence[str]) -> dict[str, Any]:
    """The dtype that each column has when all rows are read at once."""
    gaps, kinds = _with_gaps(file), {}
    for name in names:
        field = file.schema_arrow.field(name)
        if pa.types.is_dictionary(field.type):
            kinds[name] = _categories(file, field)
            continue
        bare = pa.schema([field], metadata=file.schema_arrow.metadata)
        cells = pa.nulls(1 if name in gaps else 0, field.type)
        kinds[name] = pa.Table.from_arrays([cells], schema=bare).to_pandas()[name].dtype
    return kinds


def _categories(file: pq.ParquetFile, field: pa.Field) -> pd.CategoricalDtype:
    """All categories of a column, which a file keeps by group of rows and each batch in part."""
    seen: dict[Any, None] = {}
    for group in range(file.num_row_groups):
        for chunk in file.read_row_group(group, columns=[field.name]).column(0).chunks:
            seen |= dict.fromkeys(chunk.dictionary.to_pylist())
    values = pa.array(list(seen), field.type.value_type).to_pandas()
    return pd.CategoricalDtype(values, ordered=field.type.ordered)


def _with_gaps(file: pq.ParquetFile) -> set[str]:
    """Columns that have absent cells, as the file's own statistics say."""
    gaps = set()
    meta = file.metadata
    for group in range(meta.num_row_groups):
        for place in range(meta.num_columns):
            chunk = meta.row_group(group).column(place)
            told = chunk.statistics
            if told is None or not told.has_null_count or told.null_count:
                gaps.add(chunk.path_in_schema)
    return gaps
