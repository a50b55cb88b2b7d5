"""Whose rows are whose: rows put together by person, at most m of each.

A person is all rows with the same values in the columns that say who; rows in which one of these is
missing count together as one person. More than m rows of a person are cut to m by a fixed public
rule that looks at that person's rows alone, and people are held out, paired and grouped by a fixed
public function of their own key. So nobody's rows decide anything about another's, and neither does
the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.codec import Codec, Codes
from core.encoding.layout.layout import Layout
from core.encoding.window_rows import windows_of
from core.encoding.windows import MIX
from core.schema.labels import to_labels
from core.schema.person import Person

Indices = NDArray[np.int64]
_WHO = "who-comes-first-"  # public key of SipHash, 16 characters


@dataclass(frozen=True)
class PersonRows:
    """Where each person's rows lie in a table that is sorted by person.

    Attributes:
      offsets: int64 [n + 1]: rows offsets[i] … offsets[i + 1] - 1 are person i's, one at least.
      hashes: uint64 [n], public, of their keys; None where nothing looks at several people at a
        time.
    """

    offsets: Indices
    hashes: NDArray[np.uint64] | None = None

    def __post_init__(self) -> None:
        counts = np.diff(self.offsets)
        if not len(counts) or self.offsets[0] != 0 or counts.min() < 1:
            raise ValueError("Every person needs a row, and the first one the first row.")
        if self.hashes is not None and len(self.hashes) != len(counts):
            raise ValueError("Every person needs a hash of their key, or nobody one.")

    @property
    def n(self) -> int:
        """How many people there are."""
        return len(self.offsets) - 1

    @cached_property
    def counts(self) -> Indices:
        """How many rows each person has, int64 [n]."""
        return np.diff(self.offsets)

    @cached_property
    def weights(self) -> NDArray[np.float32]:
        """One over its person's rows for each row, float32 [rows]; nobody's sum exceeds one."""
        weight = (1.0 / self.counts).astype(np.float32)
        over = weight.astype(np.float64) * self.counts > 1.0
        weight[over] = np.nextafter(weight[over], np.float32(0.0))
        return np.repeat(weight, self.counts)

    @property
    def firsts(self) -> Indices:
        """Each person's first row, int64 [n]."""
        return self.offsets[:-1]

    def padded(self, chosen: Indices) -> tuple[Indices, NDArray[np.float32]]:
        """The rows of some people side by side, as many columns as the longest of them needs.

        Returns:
          Rows int64 [b, longest], a person's first one where there is no more, and what they count
            for, float32 [b, longest], 0 there.
        """
        counts = self.counts[chosen]
        slot = np.arange(max(1, int(counts.max(initial=1))))
        real = slot < counts[:, None]
        first = self.firsts[chosen][:, None]
        rows = np.where(real, first + slot, first)
        return rows, np.where(real, self.weights[rows], np.float32(0.0))


def number_people(keys: pd.DataFrame) -> tuple[Indices, NDArray[np.uint64]]:
    """Each row's person, int64 [r] below n, and the public hashes of their keys, uint64 [n].

    People are numbered by ascending hash, ties by the key itself.
    """
    coded = [_coded(keys.iloc[:, i]) for i in range(keys.shape[1])]  # labels of rows take memory
    codes = pd.DataFrame(np.stack([code for code, _ in coded], axis=1))
    codes[(codes < 0).any(axis=1).to_numpy()] = -1
    number = codes.groupby(list(codes), sort=False).ngroup().to_numpy()
    distinct = codes.drop_duplicates()  # in the order of `number`
    people = pd.DataFrame(
        {str(i): labels.reindex(distinct[i]).array for i, (_, labels) in enumerate(coded)}
    )
    names = [str(name) for name in people]
    hashes = pd.util.hash_pandas_object(people, index=False, hash_key=_WHO, categorize=False)
    ranked = people.assign(hash=hashes.to_numpy()).reset_index(drop=True)
    order = ranked.sort_values(["hash", *names]).index.to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[number], hashes.to_numpy()[order]


def _coded(cells: pd.Series[Any]) -> tuple[Indices, pd.Series[Any]]:
    """Which label each cell has, -1 where it is missing, and the labels."""
    index, values = pd.factorize(cells)
    own, labels = pd.factorize(to_labels(pd.Series(values)))
    return np.where(index < 0, -1, np.append(own, -1)[index]), pd.Series(labels, dtype="str")


def cell_hashes(columns: Iterable[pd.Series[Any]]) -> NDArray[np.uint64]:
    """One number for what is in each row, public, of one column after the other: uint64 [rows]."""
    total: NDArray[np.uint64] = np.zeros(1, dtype=np.uint64)
    for cells in columns:
        index, labels = _coded(cells)
        own = pd.util.hash_array(labels.to_numpy(dtype=object), categorize=False)
        total = total * MIX + np.append(own, np.uint64(0))[index]  # the last is of missing cells
    return total


def kept_rows(
    number: Indices, content: NDArray[np.uint64], most: int
) -> tuple[Indices, PersonRows]:
    """At most m rows of each person, chosen and ordered by what is in them.

    Args:
      number: int64 [r], whose each row is, every number from 0 to n - 1 at least once.
      content: uint64 [r], of what is in each row; equal ones are one as good as the other.

    Returns:
      Positions of the rows that stay, sorted by person, and where each person's lie then.
    """
    order = np.lexsort((content, number))
    counts = np.bincount(number)
    starts = np.cumsum(counts) - counts
    rank = np.arange(len(order)) - np.repeat(starts, counts)  # of a row among its person's
    stay = np.minimum(counts, most)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(stay)])
    return order[rank < most], PersonRows(offsets)


def encoded_records(
    frame: pd.DataFrame, layout: Layout, person: Person | None
) -> tuple[Codes, PersonRows | None]:
    """Rows as models see them, and each person's with their keys' hashes; None for rows alone."""
    codec = Codec(layout.domain)
    if person is None or not person.grouped:
        return codec.encode(layout.to_model(frame)), None
    number, hashes = number_people(frame[list(person.columns)])
    if layout.windows is not None:
        seen, offsets = windows_of(frame, layout, number, person)
        return seen, PersonRows(offsets, hashes)
    codes = codec.encode(layout.to_model(frame, np.bincount(number)[number]))
    content = pd.DataFrame(np.hstack([codes.states, codes.values]))
    own = pd.util.hash_pandas_object(content, index=False).to_numpy()
    index, people = kept_rows(number, own.astype(np.uint64), person.rows)
    return codes.take(index), replace(people, hashes=hashes)


def votes(frame: pd.DataFrame, person: Person | None) -> NDArray[np.float64]:
    """What rows of a synthetic table count for, float64 [rows]: those of a person one together."""
    if person is None or not person.grouped or not set(person.columns) <= set(frame.columns):
        return np.ones(len(frame))
    number, _ = number_people(frame[list(person.columns)])
    each: NDArray[np.float64] = (1.0 / np.bincount(number))[number]
    return each
