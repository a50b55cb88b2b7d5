"""Filling: a missing cell gets the value of the most similar drawn row that has one.

All columns that a rule ties to the cell come from that one row, so every rule holds afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.schema.column import DomainColumn
from core.schema.labels import category_indices, is_absent, to_numbers
from core.schema.rules.relations import tied
from core.schema.schema import Domain

DONORS = 500  # rows among which the most similar one is looked for
AT_ONCE = 2_000  # rows compared with them at a time

Floats = NDArray[np.float64]


def complete_rows(rows: pd.DataFrame, domain: Domain) -> NDArray[np.bool_]:
    """Which rows have every modelled cell, bool [n]."""
    whole = np.ones(len(rows), dtype=bool)
    for column in domain.modelled:
        whole &= ~is_absent(rows[column.name], column)
    return whole


def fill_gaps(
    rows: pd.DataFrame, domain: Domain, random: np.random.Generator
) -> tuple[pd.DataFrame, int]:
    """Rows with their missing cells filled, and how many cells those were.

    A gap stays where no row has a value for the cell and all that rules tie to it.

    Args:
      rows: n synthetic rows of the domain, each a person of its own.
      random: draws among whom the most similar row is looked for; data-free.
    """
    rows = rows.reset_index(drop=True)
    modelled = [column.name for column in domain.modelled]
    scales = {column.name: _scaled(rows, column) for column in domain.modelled}
    cells = {name: rows[name] for name in rows.columns}
    gap = {column.name: is_absent(rows[column.name], column) for column in domain.modelled}
    filled = 0
    named = [*((name,) for name in modelled), *(rule.columns for rule in domain.rules)]
    for group in tied(named, lambda names: names):
        together = sorted({name for names in group for name in names})
        whole = ~np.logical_or.reduce([gap[name] for name in together])
        donors, gaps = np.flatnonzero(whole), np.flatnonzero(~whole)
        if not len(donors) or not len(gaps):
            continue
        donors = random.permutation(donors)[:DONORS]
        by = [scales[name] for name in modelled if name not in together]
        source = np.arange(len(rows))
        for start in range(0, len(gaps), AT_ONCE):
            some = gaps[start : start + AT_ONCE]
            source[some] = donors[_distances(by, some, donors).argmin(axis=1)]
        for name in together:
            cells[name] = rows[name].iloc[source].reset_index(drop=True)
            filled += int(gap[name].sum())
    return pd.DataFrame(cells), filled


def _scaled(rows: pd.DataFrame, column: DomainColumn) -> tuple[bool, Floats]:
    """Whether a column is a list; its cells as codes, or as numbers on [0, 1]; NaN if absent."""
    if column.kind.numeric:
        low, high = column.low or 0.0, column.high or 0.0
        return False, (to_numbers(rows[column.name], column) - low) / ((high - low) or 1.0)
    cells = rows[column.name]
    codes = category_indices(cells, column)
    return True, np.where((codes < 0) | is_absent(cells, column), np.nan, codes)


def _distances(
    columns: Iterable[tuple[bool, Floats]], some: NDArray[np.intp], donors: NDArray[np.intp]
) -> Floats:
    """Gower's distances of rows to donors, float [rows, donors], up to a factor: 0 alike, 1 not."""
    total = np.zeros((len(some), len(donors)))
    for listed, values in columns:
        a, b = values[some][:, None], values[donors][None, :]
        apart = (a != b).astype(float) if listed else np.abs(a - b)
        unknown = np.isnan(a) | np.isnan(b)
        total += np.where(unknown, (np.isnan(a) != np.isnan(b)).astype(float), apart)
    return total
