"""One reading of a table for every metric: common labels, real ranges, missing as its own state.

`Features` are fitted on the real table: a listed column becomes integer codes into one list of
labels shared by all tables, a numeric column floats with the real range. Surrogates are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.message import Message, clock, day
from core.quality.report.types import MISSING
from core.schema.column import Column, Kind
from core.schema.date_text import is_clock
from core.schema.labels import listed_labels, to_numbers
from core.schema.schema import Schema

BINS = 16  # equal-width bins over the real range, for marginal distances
QUANTILE_BINS = 20
HOT_LABELS = 60  # labels with a one-hot coordinate of their own; rarer ones share the last

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Feature:
    """One modelled column as metrics see it.

    Attributes:
      labels: the real table's by falling share, then those that only other tables hold; none of
        numbers.
      low, high: of numbers, the real table's range; NaN when every real value is missing.
    """

    column: Column
    labels: tuple[str, ...]
    low: float
    high: float
    missing: bool

    @property
    def name(self) -> str:
        """The column's header."""
        return self.column.name

    @property
    def numeric(self) -> bool:
        """Whether values lie on a line."""
        return self.column.kind.numeric

    @property
    def hot(self) -> int:
        """One-hot coordinates of a listed column: labels, at most `HOT_LABELS`, plus missing."""
        return min(len(self.labels), HOT_LABELS) + self.missing

    @property
    def width(self) -> int:
        """Coordinates in the encoded vector: position and missing flag, or one-hot labels."""
        return 1 + self.missing if self.numeric else self.hot

    @property
    def reach(self) -> float:
        """The largest squared distance between two encoded values."""
        if not self.numeric:
            return 2.0 if self.hot > 1 else 0.0  # two different one-hot vectors
        line = 1.0 if self.high > self.low else 0.0
        # From an end of the line (or a constant's 0) to "missing" at (½, 1): ¼ + 1.
        present = not np.isnan(self.low)
        return 1.25 if self.missing and present else line

    def bins(self, values: NDArray[np.generic], count: int = BINS) -> tuple[Ints, int]:
        """Codes for a marginal, and how many codes there are.

        Of numbers, `count` equal-width bins over the real range, then "below", "above" and
        "missing"; of labels, their index, then "missing".
        """
        if not self.numeric:
            codes = values.astype(np.int64)
            return np.where(codes < 0, len(self.labels), codes), len(self.labels) + 1
        x = values.astype(np.float64)
        span = self.high - self.low
        at = np.floor((x - self.low) / span * count) if span > 0 else np.zeros(len(x))
        at = np.clip(at, 0, count - 1)  # the upper bound belongs to the last bin
        at = np.where(x < self.low, count, at)
        # Written so that a NaN range (no real value at all) counts every value as outside.
        at = np.where((x <= self.high) | (x < self.low), at, count + 1)
        return np.where(np.isnan(x), count + 2, at).astype(np.int64), count + 3

    def spelled(self, value: float) -> str:
        """A number as people read it; dates are in seconds."""
        if self.column.kind is Kind.DATETIME:
            when = pd.Timestamp(value, unit="s")
            return clock(when) if is_clock(self.column.date_format) else day(when)
        return Message("{x:.12g}", x=value)

    def encode(self, values: NDArray[np.generic]) -> Floats:
        """[n, width] in [0, 1]: min–max position clipped to the real range, or one-hot labels."""
        out = np.zeros((len(values), self.width))
        rows = np.arange(len(values))
        if not self.numeric:
            codes = np.minimum(values.astype(np.int64), min(len(self.labels), HOT_LABELS) - 1)
            known = codes >= 0
            out[rows[known], codes[known]] = 1.0
            if self.missing:
                out[~known, -1] = 1.0
            return out
        x = values.astype(np.float64)
        absent = np.isnan(x)
        span = self.high - self.low
        if span > 0:
            out[:, 0] = np.clip((x - self.low) / span, 0.0, 1.0)
        out[absent, 0] = 0.5  # midway: the flag, not the position, says that nothing is there
        if self.missing:
            out[absent, 1] = 1.0
        return out


@dataclass(frozen=True)
class AlignedTable:
    """A table read through `Features`.

    `values` are by column, float64 [n] with NaN for missing, or int64 [n] label codes with -1.
    """

    features: Features
    n: int
    values: dict[str, NDArray[np.generic]]

    def take(self, rows: Ints) -> AlignedTable:
        """The rows at these indices."""
        values = {name: column[rows] for name, column in self.values.items()}
        return AlignedTable(self.features, len(rows), values)

    def without(self, name: str) -> AlignedTable:
        """The table but for one column, to predict that one."""
        kept = [feature for feature in self.features.items if feature.name != name]
        return AlignedTable(Features(kept), self.n, self.values)

    def sample(self, rows: int, rng: np.random.Generator) -> AlignedTable:
        """At most `rows` of the rows, drawn without replacement, in their order."""
        return self.take(sample_rows(self.n, rows, rng))

    def missing(self, name: str) -> NDArray[np.bool_]:
        """Where a column has no value, bool [n]."""
        column = self.values[name]
        return np.isnan(column) if column.dtype.kind == "f" else column.astype(np.int64) < 0

    def encode(self) -> Floats:
        """[n, width] in [0, 1]: each feature's coordinates side by side."""
        blocks = [feature.encode(self.values[feature.name]) for feature in self.features.items]
        return np.concatenate(blocks, axis=1) if blocks else np.zeros((self.n, 0))

    def bins(self, count: int = BINS) -> tuple[Ints, Ints]:
        """Codes [n, m] for marginals and the number of codes of each column [m]."""
        binned = [f.bins(self.values[f.name], count) for f in self.features.items]
        codes = np.empty((self.n, len(binned)), dtype=np.int64)
        for i, (code, _) in enumerate(binned):
            codes[:, i] = code
        return codes, np.array([size for _, size in binned], dtype=np.int64)


class Features:
    """The columns all metrics compare, with labels and ranges common to the given tables."""

    def __init__(self, items: Sequence[Feature]):
        self.items = tuple(items)

    @classmethod
    def fit(
        cls, schema: Schema, real: pd.DataFrame, *others: pd.DataFrame
    ) -> tuple[Features, list[AlignedTable]]:
        """Features of the real table, and all tables read through them, whatever they lack."""
        frames = (real, *others)
        items: list[Feature] = []
        values: list[dict[str, NDArray[np.generic]]] = [{} for _ in frames]
        keys = () if schema.person is None else schema.person.columns  # made up, like identifiers
        for column in schema.columns:
            if not column.modelled or column.name in keys or column.name not in real:
                continue
            feature, arrays = _read(column, frames)
            items.append(feature)
            for by_name, array in zip(values, arrays, strict=True):
                by_name[column.name] = array
        features, tables = cls(items), zip(frames, values, strict=True)
        return features, [AlignedTable(features, len(frame), by_name) for frame, by_name in tables]

    def read(self, frame: pd.DataFrame) -> AlignedTable:
        """One more table read alike; labels that none of the others holds count as missing."""
        values: dict[str, NDArray[np.generic]] = {}
        for item in self.items:
            if item.numeric:
                values[item.name] = to_numbers(frame[item.name], item.column)
            else:
                labels = listed_labels(frame[item.name], item.column)
                codes = pd.Categorical(labels, categories=list(item.labels)).codes
                values[item.name] = codes.astype(np.int64)
        return AlignedTable(self, len(frame), values)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, name: str) -> Feature:
        """The feature of that name; KeyError when there is none."""
        for feature in self.items:
            if feature.name == name:
                return feature
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(feature.name for feature in self.items)

    @property
    def diameter(self) -> float:
        """The largest Euclidean distance between two encoded records."""
        return float(np.sqrt(sum(feature.reach for feature in self.items)))


@dataclass(frozen=True)
class Coded:
    """A column of several tables as codes: each label, and numbers in 20 bins of the real table.

    Attributes:
      codes: of each table, int64 [n], an index of `names`.
      names: of labels and bins, of numbers beyond the real range, and of missing values.
    """

    codes: tuple[Ints, ...]
    names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        feature: Feature,
        tables: Sequence[AlignedTable],
        *,
        own: int = 0,
        parts: int | None = None,
    ) -> Coded:
        """Codes in tables, the real one first; at most `own` different numbers are not binned.

        Args:
          parts: of equally many real numbers each, from the least to the largest number of all,
            instead of 20 bins with those beyond the real range apart.
        """
        columns = [table.values[feature.name] for table in tables]
        if not feature.numeric:
            listed = [column.astype(np.int64) for column in columns]
            n = len(feature.labels)
            return cls(
                tuple(np.where(code < 0, n, code) for code in listed), (*feature.labels, MISSING)
            )
        numbers = [column.astype(np.float64) for column in columns]
        present = numbers[0][~np.isnan(numbers[0])]
        edges = np.unique(present)
        if parts is not None and len(edges) > own:
            cuts = np.unique(np.quantile(present, np.arange(1, parts) / parts, method="higher"))
            cuts = cuts[cuts > feature.low]
            at = [np.searchsorted(cuts, x, "right") for x in numbers]
            absent = len(cuts) + 1
            codes = [np.where(np.isnan(x), absent, c) for x, c in zip(numbers, at, strict=True)]
            return cls(tuple(codes), (*_spans(feature, cuts), MISSING))
        if binned := len(edges) > own:
            shares = np.linspace(0.0, 1.0, QUANTILE_BINS + 1)
            edges = np.unique(np.quantile(present, shares, method="higher"))
        codes = []
        for x in numbers:  # [edge, next edge), and the largest number by itself
            code = np.where(x > feature.high, len(edges) + 1, np.searchsorted(edges, x, "right"))
            codes.append(np.where(np.isnan(x), len(edges) + 2, code))
        ends = [feature.spelled(edge) for edge in edges]
        names = [_span(a, b) for a, b in pairwise(ends)] + ends[-1:] if binned else ends
        return cls(tuple(codes), ("<", *names, ">", MISSING))

    @classmethod
    def crossed(cls, columns: Sequence[Coded]) -> Coded:
        """Codes of all combinations of values of some columns."""
        first, *others = columns
        for other in others:
            pairs = zip(first.codes, other.codes, strict=True)
            codes = tuple(a * len(other.names) + b for a, b in pairs)
            sides = product(first.names, other.names)
            names = tuple(Message("{a}, {b}", a=a, b=b) for a, b in sides)
            first = cls(codes, names)
        return first


def _spans(feature: Feature, cuts: Floats) -> list[str]:
    """Names of the parts of a number that are cut at ≥ 1 values; each begins with its cut."""
    last = 1.0 if feature.column.kind is Kind.INTEGER else 0.0
    spans = [(feature.spelled(a), feature.spelled(b - last)) for a, b in pairwise(cuts)]
    below = Message("< {cut}", cut=feature.spelled(cuts[0]))
    above = Message("≥ {cut}", cut=feature.spelled(cuts[-1]))
    return [below, *(a if a == b else _span(a, b) for a, b in spans), above]


def _span(low: str, high: str) -> Message:
    return Message("{low} – {high}", low=low, high=high)


def sample_rows(n: int, rows: int, rng: np.random.Generator) -> Ints:
    """At most `rows` of n row indices without replacement, ascending."""
    if n <= rows:
        return np.arange(n)
    return np.sort(rng.choice(n, size=rows, replace=False))


def _read(
    column: Column, frames: Sequence[pd.DataFrame]
) -> tuple[Feature, list[NDArray[np.generic]]]:
    """A column's feature and its values in each table; all missing where a table lacks it."""
    name = column.name
    if column.kind.numeric:
        arrays: list[NDArray[np.generic]] = [
            to_numbers(frame[name], column) if name in frame else np.full(len(frame), np.nan)
            for frame in frames
        ]
        gaps = any(bool(np.isnan(x).any()) for x in arrays)
        present = arrays[0][~np.isnan(arrays[0])]
        low, high = (float(present.min()), float(present.max())) if len(present) else (np.nan,) * 2
        return Feature(column, (), low, high, gaps), arrays
    texts = [
        listed_labels(frame[name], column)
        if name in frame
        else pd.Series([None] * len(frame), dtype="str")
        for frame in frames
    ]
    labels = list(texts[0].value_counts().index)  # by falling share
    for text in texts[1:]:
        labels += sorted(set(text.dropna().unique()) - set(labels))
    index = pd.Index(labels, dtype="str")
    codes: list[NDArray[np.generic]] = [
        pd.Categorical(text, categories=index).codes.astype(np.int64) for text in texts
    ]
    gaps = any(bool((code.astype(np.int64) < 0).any()) for code in codes)
    return Feature(column, tuple(labels), np.nan, np.nan, gaps), codes
