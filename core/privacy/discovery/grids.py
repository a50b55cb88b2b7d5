"""Public grids: where bounds are looked for, fixed by a column's kind before any row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.proposing.code_patterns import SENTINELS
from core.schema.calendar import CELLS, DAY
from core.schema.column import Column, Kind
from core.schema.labels import snap
from core.schema.magnitudes import FIRST_SECOND, LARGEST, LAST_SECOND
from core.schema.round_bounds import DIGITS, rung

FINE_BINS = 256  # of the second look, within what the first one found, at most
SMALL = 20.0  # whole numbers up to it have a bin each
ROUND = (1.0, 2.0, 5.0, 10.0, SMALL)  # those among them at which bounds end, beside zero
_SMALLEST, _LARGEST_INTEGER = -30, 19  # powers of ten: numbers below one, integers above the other
_YEARS = (
    *(1000, 1500, 1600, 1700, 1750, 1800, 1850, 1870),
    *range(1880, 2110, 10),
    *(2150, 2200, 2300, 2500, 3000),
)


_ATOMS = (0.0, *sorted(map(float, SENTINELS)))
# numbers of at most three digits, from .01 to 99,900,000, and whole ones of four, which are counted
# one by one
SINGLE = np.unique(
    [*(float(f"{x}e{k}") for x in range(100, 1000) for k in range(-4, 6)), *range(1000, 10_000)]
)
WAITS = tuple(86_400.0 * days for days in (1 / 24, 1, 3, 10, 30, 100, 300, 1000))
# each is a factor of the next, or of that after it
STEPS = (
    *(1e-4, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 5, 10, 50, 100, 500, 1000, 5000, 1e4, 1e5, 1e6),
)


@dataclass(frozen=True)
class PublicGrid:
    """Cells of one numeric column; every row lies in exactly one.

    In order: below the first edge, a bin between each two edges (left end included), from the last
    edge on, one for each atom (which are in no bin), missing.
    """

    edges: tuple[float, ...]
    atoms: tuple[float, ...] = ()

    @property
    def bins(self) -> int:
        """How many cells have two ends."""
        return len(self.edges) - 1

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.edges) + 1 + len(self.atoms) + 1


@dataclass(frozen=True)
class CalendarGrid:
    """Cells of one field of a date's calendar, see `core.schema.calendar`; then missing."""

    field: str

    @property
    def size(self) -> int:
        """How many cells there are."""
        return CELLS[self.field] + 1


Grid: TypeAlias = "PublicGrid | CalendarGrid"


@cache
def step_grid() -> PublicGrid:
    """The grid of `coarsest_steps`: no step, then each of `STEPS`."""
    return PublicGrid(tuple(i - 0.5 for i in range(len(STEPS) + 2)))


def coarsest_steps(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The coarsest of `STEPS` that each number is a multiple of, from 1 on, float64 [n].

    0 of none; NaN where that tells nothing: of zero and codes for "unknown", and where there is no
    number.
    """
    found = np.zeros(len(x))
    rows = np.flatnonzero(~np.isnan(x) & ~np.isin(x, _ATOMS))
    for i, step in enumerate(STEPS):
        own = rows[np.isclose(snap(x[rows], step), x[rows], rtol=1e-12, atol=0.0)]
        found[own] = i + 1
        if is_multiple(STEPS[min(i + 1, len(STEPS) - 1)], step):  # so are all that follow
            rows = own
    return np.where(np.isnan(x) | np.isin(x, _ATOMS), np.nan, found)


def is_multiple(number: float, of: float) -> bool:
    """Whether a number is a whole number of times a step, at least once."""
    return math.isclose(number / of, max(1.0, round(number / of)), rel_tol=1e-9)


@cache
def wait_grid() -> PublicGrid:
    """The grid of how long one date lies after another, in seconds: not at all, then `WAITS`."""
    return PublicGrid((0.0, *WAITS))


@cache
def value_grid() -> PublicGrid:
    """The grid of `single_values`: a cell for each of `SINGLE`."""
    return PublicGrid(tuple(i - 0.5 for i in range(len(SINGLE) + 1)))


def single_values(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Which of `SINGLE` each number is, float64 [n]; NaN for none."""
    index = np.searchsorted(SINGLE, x).clip(max=len(SINGLE) - 1)
    return np.where(SINGLE[index] == x, index, np.nan)


@cache
def year_grid() -> PublicGrid:
    """The second grid of dates: the years from 1900 to 2100."""
    return PublicGrid(tuple(map(_new_year, range(1900, 2102))))


@cache
def day_grid() -> PublicGrid:
    """The days from 1900 to 2100, which are counted one by one where dates have no time."""
    return PublicGrid(tuple(np.arange(_new_year(1900), _new_year(2101) + DAY, DAY).tolist()))


def _new_year(year: int) -> float:
    return float(np.datetime64(f"{year:04}-01-01", "s").astype(np.int64))


@cache
def _grid(kind: Kind) -> PublicGrid:
    if kind is Kind.DATETIME:
        return PublicGrid((FIRST_SECOND, *map(_new_year, _YEARS), LAST_SECOND + 1.0))
    integers = kind is Kind.INTEGER
    powers = range(0 if integers else _SMALLEST, _LARGEST_INTEGER if integers else 150)
    sizes = {float(f"{digit}e{power}") for power in powers for digit in DIGITS}
    sizes.add(float(f"1e{_LARGEST_INTEGER}") if integers else LARGEST)
    sizes.update(map(float, range(1, int(SMALL))) if integers else ())
    positive = sorted(sizes)
    return PublicGrid((*(-x for x in reversed(positive)), 0.0, *positive), _ATOMS)


def grid_of(column: Column) -> PublicGrid:
    """The grid of a numeric column's first look.

    Numbers: zero, and the rungs 1, 2, 5 × 10ᵏ on either side, so that bounds come out round; zero,
    the usual codes for "unknown" and small whole numbers have cells of their own. Dates: decades
    from 1880 to 2100, wider beyond; `year_grid` says which of their years are empty.
    """
    return _grid(column.kind)


def fine_grid(low: float, high: float, step: float) -> PublicGrid:
    """The grid of a second look at what lies from low to high > low: equal, round bins.

    Args:
      step: of the column, which no bin is shorter than; 0 for none.
    """
    if not (low < high and math.isfinite(high - low)):
        raise ValueError("A second look needs a range.")
    width = max(rung((high - low) / FINE_BINS), step)
    edges = np.unique(np.linspace(low, high, max(2, math.ceil((high - low) / width - 1e-9)) + 1))
    if len(edges) < 2:
        raise ValueError("A second look needs a range.")
    return PublicGrid(tuple(float(edge) for edge in edges))
