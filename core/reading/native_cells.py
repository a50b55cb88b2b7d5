"""Raw cells of a source that has types: what Arrow holds, in the dtypes that the product knows."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from core.reading.arrow_types import TICKS, is_text
from core.schema.column import nullable_dtype
from core.schema.magnitudes import FIRST_SECOND, LARGEST, LAST_SECOND

Series: TypeAlias = "pd.Series[Any]"
Cells: TypeAlias = pa.Array | pa.ChunkedArray

FIRST, LAST = int(FIRST_SECOND), int(LAST_SECOND)
MICROSECOND = 1_000  # in ns


def plain_cells(cells: Cells) -> pa.Array:
    """Cells as one array, text as large_string, dictionaries as values, decimals as floats."""
    kind = cells.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        cells = cells.cast(kind)
    if is_text(kind) or pa.types.is_null(kind):
        cells = cells.cast(pa.large_string())
    elif pa.types.is_time(kind):
        cells = cells.cast(pa.string()).cast(pa.large_string())
    elif pa.types.is_decimal(kind):
        cells = cells.cast(pa.float64())
    return cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells


def text_series(text: pa.Array) -> Series:
    """Text as a pandas column."""
    return pd.Series(pd.array(text, dtype="str"))


def native_values(cells: Cells) -> Series:
    """Raw cells in the pandas dtype that they have without a declaration.

    Decimals are floats, durations seconds, times of day text. Infinite numbers, those beyond ±1e150
    and dates outside the years 1 to 9999 are absent; dates are cut to whole microseconds.
    """
    cells = plain_cells(cells)
    kind = cells.type
    if is_text(kind):
        return text_series(cells)
    if pa.types.is_duration(kind):
        seconds = cells.cast(pa.int64()).cast(pa.float64(), safe=False)
        return pd.Series(np.asarray(seconds.fill_null(np.nan)) / TICKS[kind.unit])
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        stamps: Series = _stamps(cells).to_pandas()
        return stamps
    if cells.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        dtype: Any = pd.api.types.pandas_dtype(nullable_dtype(str(kind)))
        return pd.Series(dtype.__from_arrow__(cells))
    values: Series = cells.to_pandas()
    if not pd.api.types.is_float_dtype(values.dtype):
        return values
    with np.errstate(over="ignore"):  # half precision has no such number
        return values.mask(np.abs(values.to_numpy(np.float64)) > LARGEST)


def _stamps(cells: pa.Array) -> pa.Array:
    """Moments and days of the years 1 to 9999, to the microsecond."""
    if pa.types.is_date(cells.type):
        cells = cells.cast(pa.timestamp("s" if pa.types.is_date32(cells.type) else "ms"))
    kind = cells.type
    ticks, raw = TICKS[kind.unit], cells.cast(pa.int64())
    first, last = FIRST * ticks, (LAST + 1) * ticks - 1
    if -(2**63) <= first and last < 2**63:  # nanoseconds reach no such year
        inside = pc.and_(pc.greater_equal(raw, first), pc.less_equal(raw, last))
        cells = pc.if_else(inside, cells, pa.scalar(None, kind))
    if kind.unit == "ns":
        whole = pc.multiply(pc.divide(raw, MICROSECOND), MICROSECOND)
        return whole.cast(kind)
    return cells
