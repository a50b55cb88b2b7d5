"""Columns as a few integer codes: numbers in quantile bins of the real table, labels as they are.

A list of more than a few codes that are numbers is binned as a number is, and its other labels stay
values of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.quality.aligned_tables import AlignedTable, Feature
from core.quality.report.types import MISSING
from core.schema.column import Kind

QUANTILE_BINS = 20

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Coded:
    """One column of several tables, the real one first.

    Attributes:
      codes: of each table, int64 [n], below `size`.
      names: of the codes that real rows hold; other tables may hold `len(names)`, for all values
        that the real table does not have.
    """

    codes: tuple[Ints, ...]
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many codes there are, the one of unknown values among them."""
        return len(self.names) + 1


def coded(feature: Feature, tables: Sequence[AlignedTable], *, own: int = 0) -> Coded:
    """A column's codes in several tables.

    Args:
      own: so many different numbers have a code each; more are cut in 20 quantile bins.
    """
    numbers, others = zip(*(_parts(feature, table, own) for table in tables), strict=True)
    present = numbers[0][np.isfinite(numbers[0])]
    edges = np.unique(present)
    if len(edges) > own:
        shares = np.linspace(0.0, 1.0, QUANTILE_BINS + 1)
        edges = np.unique(np.quantile(present, shares, method="higher"))
    words = np.unique(others[0][~np.isfinite(numbers[0])])
    bins, codes = len(edges), []
    for x, other in zip(numbers, others, strict=True):
        # [edge, next edge), and the largest number by itself; NaN comes last
        code = np.searchsorted(edges, x, side="right") - 1
        outside = (code < 0) | (x > edges[-1]) if bins else np.isfinite(x)
        if 0 < bins <= own:
            outside |= edges[code] != x
        at = np.searchsorted(words, other).clip(max=max(0, len(words) - 1))
        known = words[at] == other if len(words) else np.zeros(len(x), dtype=bool)
        code = np.where(np.isfinite(x), code, bins + np.where(known, at, len(words)))
        codes.append(np.where(outside & np.isfinite(x), bins + len(words), code))
    names = [_name(feature, edge) for edge in edges]
    if len(names) > own:
        names[:-1] = [f"{low} – {high}" for low, high in zip(names, names[1:], strict=False)]
    names += [MISSING if word < 0 else feature.labels[word] for word in words]
    return Coded(tuple(codes), tuple(names))


def _parts(feature: Feature, table: AlignedTable, own: int) -> tuple[Floats, Ints]:
    """A column's numbers, NaN for other values, and the codes of its labels, -1 for missing."""
    if feature.numeric:
        return table.values[feature.name].astype(np.float64), np.full(table.n, -1)
    codes = table.values[feature.name].astype(np.int64)
    spelled = pd.to_numeric(pd.Series(feature.labels, dtype="str"), errors="coerce").to_numpy(float)
    if np.isfinite(spelled).sum() <= max(own, QUANTILE_BINS, len(spelled) / 2):
        spelled = np.full(len(spelled), np.nan)  # a list of words, or of a few codes
    return np.append(spelled, np.nan)[codes], codes  # a missing cell's -1 is the last


def _name(feature: Feature, value: float) -> str:
    if feature.column.kind is Kind.DATETIME:
        return f"{pd.Timestamp(value, unit='s'):%Y-%m-%d}"
    return f"{value:.12g}"
