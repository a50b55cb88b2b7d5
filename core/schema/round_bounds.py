"""Round bounds that many tables share, in place of a table's own extremes; and the coarsest step.

The least and the greatest value of a column each belong to somebody. A proposal moves both outward:
to zero and a rung of the ladder 1, 2, 5 × 10ᵏ, so that all columns with a greatest value above
2,000 and up to 5,000 get the same bound; dates to whole years. This is no privacy mechanism (a new
extreme can still move a bound to the next rung), so a certificate says where bounds come from.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from core.schema.calendar import DAY
from core.schema.date_text import CLOCK_DAY, is_clock
from core.schema.labels import snap
from core.schema.magnitudes import FIRST_SECOND, LAST_SECOND

DIGITS = (1, 2, 5)
NEAR_ZERO = 0.5  # a range whose inner end is less than this share of the outer begins at zero
WHOLE_STEPS = (1e6, 1e5, 1e4, 5000.0, 1000.0, 500.0, 100.0, 50.0, 10.0, 5.0, 1.0)
MAX_DECIMALS = 6  # decimals looked for when finding the step
GRID_SHARE = 1e-6  # of a step; nearer to the grid than this is on it
ROUNDING = 1e-12  # of the greatest number, far more than a few sums of floats err by
NANOSECONDS = 106_751 * 86_400.0  # whole days that "datetime64[ns]" can hold on either side of 1970


def number_step(numbers: NDArray[np.float64]) -> float:
    """The coarsest of `WHOLE_STEPS`, else decimal step that keeps all, 0 if finer than 10⁻⁶.

    What sums and differences of floats leave behind is on the grid that it lies next to.

    >>> number_step(np.array([1.5, 0.1 + 0.2])), number_step(np.array([20.0, 4e-16]))
    (0.1, 10.0)
    """
    if _on_grid(numbers, 1.0):
        whole = np.rint(numbers)
        return next(step for step in WHOLE_STEPS if not np.any(whole % step))
    steps = (float(10.0**-decimals) for decimals in range(1, MAX_DECIMALS + 1))
    return next((step for step in steps if _on_grid(numbers, step)), 0.0)


def _on_grid(numbers: NDArray[np.float64], step: float) -> bool:
    near = min(GRID_SHARE * step, ROUNDING * float(np.abs(numbers).max(initial=0.0)))
    return bool(np.all(np.abs(snap(numbers, step) - numbers) <= near))


def date_step(seconds: NDArray[np.float64]) -> float:
    """The coarsest of day, hour, minute, second, 1 ms, 1 µs that keeps every date, in seconds."""
    steps = (86400.0, 3600.0, 60.0, 1.0, 0.001)
    return next((s for s in steps if np.array_equal(snap(seconds, s), seconds)), 1e-6)


def rung(x: float) -> float:
    """The least of 1, 2, 5 × 10ᵏ that is at least x > 0.

    >>> [rung(x) for x in (4356, 100, 0.03, 1.1)]
    [5000.0, 100.0, 0.05, 2.0]
    """
    power = math.floor(math.log10(x))
    tens = range(power - 1, power + 2)  # log10 may be off by one ulp at a power of ten
    return next(y for k in tens for d in DIGITS if (y := float(f"{d}e{k}")) >= x)


def round_bounds(
    low: float, high: float, *, step: float = 0.0, dtype: str = ""
) -> tuple[float, float]:
    """Bounds of a number, outward from its extremes low ≤ high.

    A range that reaches zero, comes near it or lies on both sides of it ends at zero or on rungs;
    one far from zero ends at multiples of the rung that is at least half as wide. A small integer
    type's own limits are not passed.

    >>> round_bounds(17, 90, step=1), round_bounds(-3.2, 41.0), round_bounds(1951, 2024, step=1)
    ((0.0, 100.0), (-5.0, 50.0), (1950.0, 2050.0))
    """
    if low >= 0.0 and low <= NEAR_ZERO * high:
        ends = (0.0, rung(high) if high else 0.0)
    elif high <= 0.0 and high >= NEAR_ZERO * low:
        ends = (-rung(-low) if low else 0.0, 0.0)
    elif low < 0.0 < high:
        ends = (-rung(-low), rung(high))
    else:
        unit = max(rung((high - low or abs(high)) / 2.0), step)
        ends = (math.floor(low / unit) * unit, math.ceil(high / unit) * unit)
    # Division and product round: an extreme must never fall outside.
    down, up = min(ends[0], low) + 0.0, max(ends[1], high) + 0.0
    if dtype.lower() in ("int8", "int16", "int32", "uint8", "uint16", "uint32"):
        limits = np.iinfo(dtype.lower())
        down, up = max(down, float(limits.min)), min(up, float(limits.max))
    if dtype.lower() in ("float16", "float32"):
        widest = float(np.finfo(dtype.lower()).max)
        down, up = max(down, -widest), min(up, widest)
    return down, up


def date_bounds(
    low: float, high: float, *, step: float, dtype: str, date_format: str | None
) -> tuple[float, float]:
    """Bounds of dates from low to high, in seconds: `whole_years`, or of times the whole day."""
    if is_clock(date_format):
        return CLOCK_DAY, CLOCK_DAY + DAY - (step or 1.0)
    return whole_years(low, high, step=step, dtype=dtype)


def whole_years(low: float, high: float, *, step: float, dtype: str = "") -> tuple[float, float]:
    """Bounds of a date in seconds, outward: from a year's first instant to the last step of one.

    >>> whole_years(86_400.0, 5 * 86_400.0, step=86_400)
    (0.0, 31449600.0)
    """
    years = np.array([math.floor(low), math.floor(high)], dtype="datetime64[s]")
    years = years.astype("datetime64[Y]")
    begin = float(years[0].astype("datetime64[s]").astype(np.int64))
    after = float((years[1] + 1).astype("datetime64[s]").astype(np.int64))
    end = max(after - max(step, 1.0), high)  # fractions of a year's very last second
    if "[ns" in dtype:
        begin, end = max(begin, -NANOSECONDS), min(end, NANOSECONDS)
    # An offset can move a date past the last year that can be written.
    return max(min(begin, low), FIRST_SECOND), min(end, LAST_SECOND)
