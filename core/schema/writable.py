"""Whether cells of a column can be written as it declares, asked before anything is spent.

A schema file may name a type or a date format that is none, or bounds that a type cannot hold, and
rows are written last. So the ends of each domain are written once beforehand.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from core.schema.column import Column, SchemaError
from core.schema.labels import from_labels, from_numbers, to_numbers
from core.schema.surrogates import surrogate

A_YEAR = 366 * 86_400.0  # seconds; a format may name no more than years


def check_writable(column: Column) -> None:
    """Refuse a column that its type or format cannot write, or with a spike out of bounds."""
    if column.kind.numeric and column.low is not None and column.high is not None:
        for spike in column.spikes:
            if not column.low <= spike <= column.high and f"{spike:g}" not in column.codes:
                raise SchemaError(
                    "Column '{name}': the spike {spike:g} lies outside the bounds {low:g} and "
                    "{high:g}. Nothing more was spent. Widen the bounds, or leave the spike out.",
                    name=column.name,
                    spike=spike,
                    low=column.low,
                    high=column.high,
                )
    if not _can_write(column):
        raise SchemaError(
            "Column '{name}': its declared values cannot be written as '{dtype}'. Nothing more "
            "was spent. Correct its type, date format or bounds, or leave the column out.",
            name=column.name,
            dtype=column.dtype,
        )


@lru_cache(maxsize=1024)
def _can_write(column: Column) -> bool:
    try:
        if column.kind.surrogate:
            return len(surrogate(column, 1)) == 1
        if column.kind.listed:
            absent = [None] if column.may_be_absent else []
            names = column.categories or ()
            written = from_labels(pd.Series([*names, *absent], dtype="str"), column)
            # whole numbers that stay text are beyond the type that others of them have
            return written.dtype != "str" or column.dtype == "str" or not all(map(_is_whole, names))
        ends = np.array([column.low, column.high, *column.spikes], dtype=np.float64)
        gap = [np.nan] if column.may_be_absent else []
        cells = from_numbers(np.append(ends, gap), column)
        form = None if column.form is None else column.form.model_copy(update={"codes": ()})
        plain = column.model_copy(update={"form": form})  # a bound may be a code too
        read = to_numbers(cells, plain)[: len(ends)]
        if column.date_format is not None and (np.abs(read - ends) > A_YEAR).any():
            return False  # a format without the year, say: what is written means another year
        return bool(np.isfinite(read).all())
    except Exception:  # each library raises its own of what it was not made for
        return False


def _is_whole(label: str) -> bool:
    return label.removeprefix("-").isdecimal()
