"""Rows of stored Parquet files, some at a time: larger ones are read no other way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.reading.row_groups import columns_with_gaps, raw_batches
from core.runs.storage.artefacts import ROWS, ArtefactStore, Readable


def row_batches(file: Readable) -> Iterator[pd.DataFrame]:
    """The rows of a file that a data frame was written to, in file order and in its dtypes.

    A column of integers or booleans that has absent cells somewhere comes back in the same dtype
    in every batch, also in those that have none.
    """
    with pq.ParquetFile(file) as parquet:
        gaps, schema = columns_with_gaps(parquet.metadata), parquet.schema_arrow
    cells = [pa.nulls(1 if one.name in gaps else 0, one.type) for one in schema]
    dtypes = {
        one.name: pa.Table.from_arrays([cell], schema=pa.schema([one], schema.metadata))
        .to_pandas()[one.name]
        .dtype
        for one, cell in zip(schema, cells, strict=True)
    }
    for batch in raw_batches(file):
        frame = batch.to_pandas()
        odd = {name: kind for name, kind in dtypes.items() if frame[name].dtype != kind}
        yield frame.astype(odd) if odd else frame


def table_batches(
    artefacts: ArtefactStore, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Raw cells of a table's rows, by what is kept of the table."""
    with artefacts.readable(ROWS) as file:
        yield from raw_batches(file, columns)


def row_count(file: Readable) -> tuple[int, int]:
    """How many rows and columns a Parquet file has."""
    metadata = pq.read_metadata(file)
    return metadata.num_rows, metadata.num_columns
