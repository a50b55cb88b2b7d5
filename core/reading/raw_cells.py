"""Raw cells: a table's rows as they stand in their source, before anything is decided of them.

A text file and a workbook give text, others values of their own types. What a cell means is said by
its column's declaration alone (`core.reading.typed_cells`); a proposal of that may look at all
cells (`core.proposing.propose`). Stored, counted and read again are always the raw cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

import pandas as pd
import pyarrow as pa

from core.schema.form import FileForm
from core.schema.labels import to_labels

Series: TypeAlias = "pd.Series[Any]"

BATCH_ROWS, BATCH_CELLS = 131_072, 8_000_000  # rows of a batch, fewer where there are many columns
BATCH_BYTES = 8 * BATCH_CELLS  # of a batch: what the most cells take where all are numbers
_KEY, _WRITTEN = b"facsimile.cells", b"written"


class Source(Protocol):
    """A table's rows as raw cells, in batches of one Arrow schema."""

    form: FileForm
    doubts: tuple[str, ...]

    def batches(self) -> Iterator[pa.Table]:
        """The rows in order, from the beginning each time, at most `batch_rows` at once."""


def batch_rows(columns: int) -> int:
    """Rows of a batch of so many columns, ≥ 1.

    >>> batch_rows(10), batch_rows(2000)
    (131072, 4000)
    """
    return max(1, min(BATCH_ROWS, BATCH_CELLS // max(1, columns)))


def as_written(table: pa.Table) -> pa.Table:
    """The table with a mark that its cells are text as written, in which words such as NA occur."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: _WRITTEN})


def is_written(schema: pa.Schema) -> bool:
    """Whether cells are text as somebody wrote them; the mark is kept in Parquet files."""
    return (schema.metadata or {}).get(_KEY) == _WRITTEN


def raw_frame(frame: pd.DataFrame) -> pa.Table:
    """A frame's cells in types of their own; objects and what Arrow lacks are spelled singly."""
    plain = {str(name): _plain(frame[name]) for name in frame.columns}
    return pa.Table.from_pandas(pd.DataFrame(plain, copy=False), preserve_index=False)


def _plain(series: Series) -> Series:
    """A column that arrow takes as it is: what one object holds must not say how others read."""
    dtype = series.dtype
    if isinstance(dtype, pd.SparseDtype):
        return series.astype(dtype.subtype)
    if not isinstance(dtype, pd.CategoricalDtype):
        return series if _is_taken(dtype) else to_labels(series.astype(object))
    if _is_taken(dtype.categories.dtype):
        return series
    labels = to_labels(pd.Series(dtype.categories))
    if labels.is_unique:
        return series.cat.rename_categories(labels.tolist())
    return to_labels(series)


def _is_taken(dtype: Any) -> bool:
    """Whether Arrow holds values of a dtype; objects of several types and intervals it does not."""
    if isinstance(dtype, pd.StringDtype | pd.ArrowDtype):
        return True
    types = pd.api.types
    if types.is_numeric_dtype(dtype):
        return not types.is_complex_dtype(dtype)
    return bool(types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype))
