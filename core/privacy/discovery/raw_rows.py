"""Raw rows: cells as numbers and as indices in lists of labels, before any domain is known.

The lists hold every label that occurs, so they and their lengths depend on rows: nothing here
leaves but through `core.privacy.discovery`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.privacy.discovery.grids import coarsest_steps, single_values
from core.privacy.discovery.open_domain import OpenDomain, known_labels, possible_labels
from core.schema.labels import to_labels, to_numbers

THERE = ("there",)  # key of a made-up cell that is not missing
Keys = tuple[tuple[str, ...], ...]  # what one histogram counts: labels, or combinations of them


@dataclass(frozen=True)
class RawRows:
    """Rows before encoding: NumPy arrays, or torch tensors after `to`.

    Attributes:
      numbers: float64 [n, ·], one numeric column each, then dates once more, then of numbers
        `coarsest_steps` and then `single_values`, then how long after another date each of some
        lies; NaN where a cell is missing. Dates are seconds.
      key_indices: int64 [n, H], the row's key in each of H lists; a list's length for missing.
    """

    numbers: Any
    key_indices: Any

    def __len__(self) -> int:
        return len(self.numbers)

    def slice(self, start: int, stop: int) -> RawRows:
        """Rows start … stop - 1, as views."""
        return RawRows(self.numbers[start:stop], self.key_indices[start:stop])

    def take(self, index: Any) -> RawRows:
        """The rows at `index`, copied."""
        return RawRows(self.numbers[index], self.key_indices[index])

    def to(self, device: str) -> RawRows:
        """The same rows as torch tensors (float64, int64) on a device."""
        import torch  # pages import this module's importers, and compute nothing

        return RawRows(
            torch.as_tensor(self.numbers).to(device=device, dtype=torch.float64),
            torch.as_tensor(self.key_indices).to(device=device, dtype=torch.int64),
        )


def read_raw(rows: pd.DataFrame, wanted: OpenDomain) -> tuple[RawRows, tuple[Keys, ...]]:
    """The cells that something is to be learned of, and the keys of each list.

    Listed columns come first, then the beginnings of codes, then made-up columns, of which it is
    counted whether cells are there, then rules; of each the keys that are known without rows, then
    all others in the order they occur.
    """
    values = {column.name: to_numbers(rows[column.name], column) for column in wanted.numeric}
    numbers = chain(  # one after another: of many rows, each takes much memory
        values.values(),
        (values[column.name] for column in wanted.dated),
        (coarsest_steps(values[column.name]) for column in wanted.stepped),
        (single_values(values[column.name]) for column in wanted.single),
        (values[high] - values[low] for low, high in wanted.waits),
    )
    count = len(values) + len(wanted.dated) + len(wanted.stepped)
    count += len(wanted.single) + len(wanted.waits)
    lists = [
        _key_indices(
            [rows[column.name]],
            tuple((label,) for label in (*known_labels(column), *possible_labels(column))),
        )
        for column in wanted.listed
    ]
    lists += [
        _key_indices([to_labels(rows[column.name]).str[:length]], ())
        for column, length in wanted.beginnings
    ]
    lists += [_key_indices([_there(rows[one.name])], (THERE,)) for one in wanted.made_up]
    lists += [_key_indices([rows[name] for name in rule.columns], ()) for rule in wanted.rules]
    return (
        RawRows(
            _side_by_side(numbers, (len(rows), count), np.float64),
            _side_by_side((indices for indices, _ in lists), (len(rows), len(lists)), np.int64),
        ),
        tuple(keys for _, keys in lists),
    )


def _there(cells: pd.Series[Any]) -> pd.Series[Any]:
    """One label for all cells that hold something."""
    return pd.Series(THERE[0], index=cells.index, dtype="str").where(to_labels(cells).notna())


def _side_by_side(
    columns: Iterable[NDArray[Any]], shape: tuple[int, int], dtype: type
) -> NDArray[Any]:
    table: NDArray[Any] = np.empty(shape, dtype=dtype)
    for i, column in enumerate(columns):
        table[:, i] = column
    return table


def _key_indices(series: Sequence[pd.Series[Any]], known: Keys) -> tuple[NDArray[np.int64], Keys]:
    coded = [pd.factorize(to_labels(one)) for one in series]
    codes = pd.DataFrame(np.stack([code for code, _ in coded], axis=1))  # -1 for absent
    there = (codes >= 0).all(axis=1).to_numpy()
    codes = codes[there]
    flat = codes.groupby(list(codes), sort=False).ngroup().to_numpy(dtype=np.int64)
    distinct = codes.drop_duplicates()  # in the order of `flat`
    observed = zip(*(found[distinct[i]] for i, (_, found) in enumerate(coded)), strict=True)
    own = tuple(tuple(str(label) for label in key) for key in observed)
    keys = tuple(dict.fromkeys((*known, *own)))
    index_of = {key: index for index, key in enumerate(keys)}
    key_indices = np.full(len(there), len(keys), dtype=np.int64)
    key_indices[there] = np.array([index_of[key] for key in own], dtype=np.int64)[flat]
    return key_indices, keys
