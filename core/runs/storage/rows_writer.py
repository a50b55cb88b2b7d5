"""Rows written to a Parquet file batch by batch: whole or not at all, never more than one held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.runs.storage.artefacts import ROWS, ArtefactStore
from core.runs.storage.errors import RunStoreError

__all__ = ["alike", "write_rows"]


def write_rows(artefacts: ArtefactStore, batches: Iterable[pd.DataFrame]) -> int:
    """Write a table's rows; each batch becomes a group of rows.

    Args:
      artefacts: of the table.
      batches: rows, `alike`.

    Returns:
      The number of rows.

    Raises:
      RunStoreError: no rows; nothing was kept.
    """
    rows, writer = 0, None
    with artefacts.replacing(ROWS) as file:
        try:
            for batch in batches:
                if writer is None:
                    schema = pa.Schema.from_pandas(batch, preserve_index=False)
                    writer = pq.ParquetWriter(file, schema)
                table = pa.Table.from_pandas(batch, schema=schema, preserve_index=False)
                writer.write_table(table)
                rows += len(batch)
        finally:
            if writer is not None:
                writer.close()
        if not rows:
            raise RunStoreError("The table holds no records. Nothing was kept.")
    return rows


def alike(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The batches as they are, as long as they have the columns and dtypes of the first.

    Args:
      batches: rows.

    Raises:
      RunStoreError: one has not.
    """
    first: pd.DataFrame | None = None
    for batch in batches:
        first = batch.iloc[:0] if first is None else first
        _check_alike(batch, first)
        yield batch


def _check_alike(batch: pd.DataFrame, first: pd.DataFrame) -> None:
    if list(batch.columns) != list(first.columns):
        raise RunStoreError(
            "Rows further down have other columns than the first ones. Nothing was kept."
        )
    odd = [name for name in first.columns if batch[name].dtype != first[name].dtype]
    if odd:
        raise RunStoreError(
            f"The column '{odd[0]}' holds another type of values further down than at the top. "
            "Nothing was kept. Give it one type where the table comes from."
        )
