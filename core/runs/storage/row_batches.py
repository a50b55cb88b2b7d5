"""Rows of a stored table, some at a time: what is larger than memory is read no other way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.runs.storage.artefacts import ROWS, ArtefactStore, Readable
from core.table.io.row_groups import arrow_batches, columns_with_gaps

__all__ = ["BATCH_ROWS", "row_batches", "row_count", "table_batches"]

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


def table_batches(
    artefacts: ArtefactStore, columns: Sequence[str] | None = None
) -> Iterator[pd.DataFrame]:
    """`row_batches` of a table's rows, by what is kept of the table."""
    with artefacts.readable(ROWS) as file:
        yield from row_batches(file, columns=columns)


def row_count(file: Readable) -> tuple[int, int]:
    """How many rows and columns a Parquet file has."""
    told = pq.read_metadata(file)
    return told.num_rows, told.num_columns


def _dtypes(file: pq.ParquetFile, names: Sequence[str]) -> dict[str, Any]:
    """The dtype that each column has when all rows are read at once."""
    gaps, kinds = columns_with_gaps(file.metadata), {}
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
