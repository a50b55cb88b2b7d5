"""How finely a column's numbers or dates are divided: the coarsest step that keeps them all."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from core.table.column import Column, Kind
from core.table.labels import snap, to_numbers
from core.table.native_cells import native_values

__all__ = ["cells_step", "date_step", "finest", "number_step"]

Numbers: TypeAlias = npt.NDArray[np.float64]

MAX_PLACES = 6  # decimals looked for when finding the step


def number_step(distinct: Numbers) -> float:
    """1 for whole numbers, else the coarsest decimal step, 0 when finer than 10⁻⁶.

    Args:
      distinct: different numbers, none absent.
    """
    if np.all(distinct == np.rint(distinct)):
        return 1.0
    for places in range(1, MAX_PLACES + 1):
        if np.array_equal(snap(distinct, 10.0**-places), distinct):
            return float(10.0**-places)
    return 0.0


def date_step(seconds: Numbers) -> float:
    """The coarsest of day, hour, minute, second, 1 ms and 1 µs that keeps every date, in seconds.

    Args:
      seconds: dates as seconds since 1970-01-01, none absent.
    """
    steps = (86400.0, 3600.0, 60.0, 1.0, 0.001)
    return next((s for s in steps if np.array_equal(snap(seconds, s), seconds)), 1e-6)


def cells_step(values: pa.Array) -> float | None:
    """The step of different raw cells; None where these are no numbers or dates."""
    natural = native_values(values)
    if pd.api.types.is_datetime64_any_dtype(natural.dtype):
        return date_step(to_numbers(natural.dropna(), Column(name="x", kind=Kind.DATETIME)))
    if pd.api.types.is_bool_dtype(natural.dtype) or natural.dtype == "str":
        return None
    return number_step(natural.dropna().to_numpy(np.float64))


def finest(one: float | None, other: float | None) -> float | None:
    """The finer of two steps; that of none is the other's."""
    known = [step for step in (one, other) if step is not None]
    return min(known) if known else None
