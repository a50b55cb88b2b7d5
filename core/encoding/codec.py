"""Codec: a reversible map between rows and compact codes, made from the public domain alone.

A row becomes one *state* per modelled column and one *value* per numeric column. The state of a
listed column is the category. That of a numeric one says which atom the cell sits on ("a value on
the line", a declared spike, or missing), and the value is its position in [0, 1] along the declared
scale. So a zero-inflated amount keeps its spike and its tail, and a missing cell is never a number.

Nothing is fitted: building a codec reveals nothing, and what lies outside the domain is moved
inside by a fixed rule (see `Codec.encode`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.schema.column import Column, DomainColumn, SchemaError
from core.schema.labels import (
    category_indices,
    code_indices,
    from_labels,
    from_numbers,
    listed_neighbours,
    to_labels,
    to_numbers,
    with_codes,
)
from core.schema.schema import Domain
from core.schema.surrogates import surrogate, with_made_up_rest

if TYPE_CHECKING:
    from torch import Tensor


Floats = NDArray[np.float64]
LOG_UNITS = 10_000.0  # a continuous log scale is linear below 1/10,000 of the declared range


@dataclass(frozen=True)
class Line:
    """The monotone map between a numeric column's values and [0, 1].

    "linear" is min–max, "log" asinh((x - centre) / unit): linear near the centre, which is
    zero or the bound nearest to it, and logarithmic in the tails.
    """

    low: float
    high: float
    step: float
    log: bool
    centre: float

    @classmethod
    def of(cls, column: Column) -> Line:
        """The line of a numeric column with declared bounds."""
        if column.low is None or column.high is None:
            raise SchemaError("Column '{name}' has no declared bounds.", name=column.name)
        nearest_zero = min(max(0.0, column.low), column.high)
        return cls(column.low, column.high, column.step, column.scale == "log", nearest_zero)

    @property
    def unit(self) -> float:
        """Below this distance from the centre the log scale is linear; > 0, in column units."""
        return self.step or (self.high - self.low) / LOG_UNITS or 1.0

    def _bend(self, x: Floats) -> Floats:
        if not self.log:
            return x
        bent: Floats = np.arcsinh((x - self.centre) / self.unit)
        return bent

    def position(self, x: Floats) -> Floats:
        """Values → positions in [0, 1]; values outside the bounds are clipped to them."""
        low, high = self._bend(np.array([self.low, self.high]))
        if high == low:
            return np.zeros_like(x)
        bent = self._bend(np.clip(x, self.low, self.high))
        position: Floats = np.clip((bent - low) / (high - low), 0.0, 1.0)
        return position

    def value(self, u: Floats) -> Floats:
        """Positions in [0, 1] → values on the step grid within the bounds."""
        return self.snap(self._unbent(u))

    def within(self, first: Floats, last: Floats, share: Floats) -> Floats:
        """Positions of the step grid's values above one position and up to another, all as likely.

        Where there is none, or no grid, a position between them.

        Args:
          share: uniform in [0, 1), says which.
        """
        anywhere = np.clip(first + share * (last - first), 0.0, 1.0)
        if not self.step:
            return anywhere
        start, end = self.steps_between(first, last)
        some = end > start
        chosen = self.low + (start + np.floor(share * (end - start))) * self.step
        return np.where(some, self.position(chosen), anywhere)

    def steps_between(self, first: Floats, last: Floats) -> tuple[Floats, Floats]:
        """From … to: the steps of values above one position and up to another; of a step grid."""
        start, end = (np.floor(self.steps(u) + 1e-9) + 1.0 for u in (first, last))
        return np.where(first <= 0.0, 0.0, start), end

    def steps(self, u: Floats) -> Floats:
        """How many steps positions lie above the low bound; of a step grid."""
        return (self._unbent(u) - self.low) / self.step

    def _unbent(self, u: Floats) -> Floats:
        low, high = self._bend(np.array([self.low, self.high]))
        bent: Floats = low + np.clip(u, 0.0, 1.0) * (high - low)
        return np.sinh(bent) * self.unit + self.centre if self.log else bent

    def snap(self, x: Floats) -> Floats:
        """Round to the step grid (multiples of the step, from low) and clip to the bounds."""
        if self.step > 0:
            x = self.low + np.round((x - self.low) / self.step) * self.step
            x = np.round(x, _decimals(self.step, self.low))
        clipped: Floats = np.clip(x, self.low, self.high)
        return clipped


def _decimals(*numbers: float) -> int:
    """Decimals that write every number exactly, at most 12.

    >>> _decimals(0.01, 3.0)
    2
    """
    return max(len(f"{x:.12f}".rstrip("0").partition(".")[2]) for x in numbers)


@dataclass(frozen=True)
class Block:
    """Where one modelled column lives.

    Attributes:
      index: column of `Codes.states`.
      number: column of `Codes.values`, or None.
      states: in order: a listed column's categories, or "value", the spikes, "missing" and one for
        each code that stands for missing.
    """

    column: DomainColumn
    index: int
    number: int | None
    states: tuple[str, ...]
    start: int
    width: int

    @cached_property
    def line(self) -> Line:
        """The value scale; numeric columns only."""
        return Line.of(self.column)

    @property
    def missing_state(self) -> int | None:
        """Index of the first state without a value, or None when nothing may be missing."""
        return self.present if self.absent else None

    @property
    def present(self) -> int:
        """How many states, the first ones, say that there is a value."""
        return len(self.states) - self.absent

    @property
    def absent(self) -> int:
        """How many states, the last ones, say that there is no value."""
        return self.column.missing + len(self.column.codes)

    def snapped(self, x: Floats) -> tuple[NDArray[np.int32], Floats]:
        """Numbers on the line, none missing → the spike each is (0 for none), and its position."""
        snapped = self.line.snap(x)
        state = np.zeros(len(x), dtype=np.int32)
        for i, spike in enumerate(self.column.spikes):
            state[snapped == self.line.snap(np.array([spike]))[0]] = i + 1
        return state, np.where(state == 0, self.line.position(x), 0.0)

    def numbers(self, state: NDArray[Any], position: Floats) -> Floats:
        """States and positions of a numeric column → its numbers, nan where one is missing."""
        x = self.line.value(position)
        for i, spike in enumerate(self.column.spikes):
            x[state == i + 1] = spike
        if self.missing_state is not None:
            x[state >= self.missing_state] = np.nan
        return x

    @cached_property
    def label_numbers(self) -> Floats:
        """Of a listed column's states, the number that a label is, float64 [states]; else NaN."""
        labels = pd.to_numeric(pd.Series(self.states, dtype="str"), errors="coerce")
        return np.asarray(labels, dtype=np.float64)

    @property
    def slice(self) -> slice:
        """Its slice of the expanded vector."""
        return slice(self.start, self.start + self.width)


@dataclass(frozen=True)
class Codes:
    """Encoded rows: NumPy arrays, or torch tensors after `to`.

    Attributes:
      states: int32 [n, m], m modelled columns.
      values: float64 [n, q], q numeric columns, in [0, 1]; 0 where the state is not "value".
    """

    states: Any
    values: Any

    def __len__(self) -> int:
        return len(self.states)

    def slice(self, start: int, stop: int) -> Codes:
        """Rows start … stop - 1, as views."""
        return Codes(self.states[start:stop], self.values[start:stop])

    def take(self, index: Any) -> Codes:
        """The rows at `index`, copied."""
        return Codes(self.states[index], self.values[index])

    def project(self, blocks: Sequence[Block]) -> Codes:
        """The same rows' codes of some columns, for the codec of `Domain.project`, copied."""
        numbers = [block.number for block in blocks if block.number is not None]
        return Codes(self.states[:, [block.index for block in blocks]], self.values[:, numbers])

    def numbers(self, block: Block) -> Floats:
        """The numbers of a column, float64 [n]; nan where one is missing, or a label is none."""
        if block.number is None:
            of_labels: Floats = block.label_numbers[np.asarray(self.states[:, block.index])]
            return of_labels
        position = np.asarray(self.values[:, block.number], dtype=np.float64)
        return block.numbers(np.asarray(self.states[:, block.index]), position)

    def at(self, position: float, block: Block) -> NDArray[np.bool_]:
        """Which records lie there on a column's line, bool [n]; none of a list."""
        if block.number is None:
            return np.zeros(len(self.states), dtype=bool)
        on_line = np.asarray(self.states[:, block.index]) == 0
        there: NDArray[np.bool_] = on_line & (np.asarray(self.values[:, block.number]) == position)
        return there

    def to(self, device: str) -> Codes:
        """The same rows as torch tensors (int64, float32) on a device."""
        import torch  # pages import this module, and compute nothing

        states = torch.as_tensor(self.states).to(device=device, dtype=torch.int64)
        values = torch.as_tensor(self.values).to(device=device, dtype=torch.float32)
        return Codes(states, values)


def concat_codes(parts: Sequence[Codes]) -> Codes:
    """Several NumPy codes as one, rows in order; at least one part."""
    return Codes(
        np.concatenate([part.states for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


class Codec:
    """Encode rows, decode them, expand codes to vectors. Built from the domain, never fitted."""

    def __init__(self, domain: Domain):
        self.domain = domain
        self.blocks = tuple(_blocks(domain))
        self._by_name = {block.column.name: block for block in self.blocks}
        self.width = sum(block.width for block in self.blocks)
        self.numbers = sum(block.number is not None for block in self.blocks)

    def block(self, name: str) -> Block:
        """The block of a modelled column; KeyError when it is not modelled."""
        return self._by_name[name]

    def target_block(self, most: int) -> Block | None:
        """The target's block when it is a list of at most so many states, else None."""
        if self.domain.target is None:
            return None
        block = self.block(self.domain.target)
        return block if block.number is None and len(block.states) <= most else None

    def encode(self, rows: pd.DataFrame) -> Codes:
        """Rows → codes.

        What the domain does not hold is moved inside by fixed rules, without an error that could
        reveal it: numbers are clipped; unknown categories become `other`, or missing where that is
        allowed and no list was learned, or else a neighbour by alphabet; missing cells in a
        complete column become the low bound or the first category.
        """
        states = np.zeros((len(rows), len(self.blocks)), dtype=np.int32)
        values = np.zeros((len(rows), self.numbers), dtype=np.float64)
        for block in self.blocks:
            series = rows[block.column.name]
            if block.number is None:
                states[:, block.index] = _encode_listed(block, series)
            else:
                state, value = _encode_numeric(block, series)
                states[:, block.index] = state
                values[:, block.number] = value
        return Codes(states, values)

    def expand(self, codes: Codes) -> Tensor:
        """Codes → float32 [b, width] in [0, 1]: one-hot states, and the position of each number."""
        import torch  # pages import this module, and compute nothing

        batch = codes.to("cpu") if isinstance(codes.states, np.ndarray) else codes
        parts = []
        for block in self.blocks:
            state = batch.states[:, block.index]
            if block.number is not None:
                parts.append(batch.values[:, block.number : block.number + 1])
            if block.number is None or len(block.states) > 1:
                hot = torch.nn.functional.one_hot(state, len(block.states))
                parts.append(hot.to(torch.float32))  # [b, states]
        return torch.cat(parts, dim=1)

    def decode_codes(self, codes: Codes) -> pd.DataFrame:
        """Codes → rows with the domain's columns, order and dtypes; surrogates are made up."""
        columns: dict[str, pd.Series[Any]] = {}
        for column in self.domain.columns:
            if column.name not in self._by_name:
                columns[column.name] = surrogate(column, len(codes))
                continue
            block = self.block(column.name)
            state = np.asarray(codes.states[:, block.index])
            if block.number is None:
                columns[column.name] = _decode_listed(block, state)
            else:
                value = np.asarray(codes.values[:, block.number], dtype=np.float64)
                columns[column.name] = _decode_numeric(block, state, value)
        return pd.DataFrame(columns)


def _blocks(domain: Domain) -> Iterator[Block]:
    start, number = 0, 0
    for index, column in enumerate(domain.modelled):
        missing = ("missing",) if column.missing else ()
        if column.kind.numeric:
            states = ("value", *(f"{spike:g}" for spike in column.spikes), *missing)
            states += tuple(f"missing: {code}" for code in column.codes)
            width = 1 + (len(states) if len(states) > 1 else 0)
            yield Block(column, index, number, states, start, width)
            number += 1
        else:
            states = (*(column.categories or ()), *missing)
            width = len(states)
            yield Block(column, index, None, states, start, width)
        start += width


def _encode_listed(block: Block, series: pd.Series[Any]) -> NDArray[np.int32]:
    column, gone = block.column, series.isna().to_numpy()
    code, absent = category_indices(series, column), block.missing_state or 0
    unlisted = np.flatnonzero((code < 0) & ~gone)
    if column.other is not None:
        code[unlisted] = (column.categories or ()).index(column.other)
    elif column.missing and getattr(column, "learned", None) is None:
        code[unlisted] = absent
    elif len(unlisted):
        code[unlisted] = listed_neighbours(to_labels(series.iloc[unlisted]), column)
    code[gone] = absent
    return np.asarray(code, dtype=np.int32)


def _encode_numeric(block: Block, series: pd.Series[Any]) -> tuple[NDArray[np.int32], Floats]:
    x = to_numbers(series, block.column)
    absent = np.isnan(x)
    state, position = block.snapped(np.where(absent, block.line.low, x))
    state[absent] = block.missing_state or 0
    code = code_indices(series, block.column)
    state = np.where(code < 0, state, _first_code(block) + code).astype(np.int32)
    return state, np.where(state == 0, position, 0.0)


def _decode_listed(block: Block, state: NDArray[Any]) -> pd.Series[Any]:
    names = np.array([*(block.column.categories or ()), None], dtype=object)
    labels = pd.Series(names[np.minimum(state, len(names) - 1)], dtype="str")
    return from_labels(with_made_up_rest(labels, block.column), block.column)


def _decode_numeric(block: Block, state: NDArray[Any], value: Floats) -> pd.Series[Any]:
    x = block.numbers(state, value)
    code = np.maximum(state.astype(np.int64) - _first_code(block), -1)
    return with_codes(from_numbers(x, block.column), block.column, code)


def _first_code(block: Block) -> int:
    return len(block.states) - len(block.column.codes)
