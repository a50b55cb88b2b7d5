"""Synthetic rows some at a time, so that how many are wanted is no matter of memory.

Up to `part_rows` rows are one part, and the model's own for the seed. Of more, each part is drawn
with a seed of its own that follows from the given one and the part's place, so that the same rows
come again whoever asks for them. Made-up values of identifiers and text go on from part to part. A
person's rows lie in one part; the last person of a part may be cut, as the last of a table may.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pandas as pd

from core.models.saved_model import Fitted
from core.privacy.summation import in_threads
from core.schema.schema import Domain
from core.schema.surrogates import renewed_links, surrogate

PART_ROWS = 2**18  # another number draws other rows where more are wanted
PART_PEOPLE = 2**16  # of histories, each of which is several rows


def part_rows(domain: Domain) -> int:
    """How many rows of these are a part; of histories, how many people."""
    person = domain.person
    return PART_ROWS if person is None or not person.walked else PART_PEOPLE


def sample_parts(fitted: Fitted, rows: int, seed: int | None = None) -> Iterator[pd.DataFrame]:
    """Draw rows of a model.

    Yields:
      Frames in the domain's columns and dtypes, together `rows` rows, each numbered from 0.
    """
    size = part_rows(fitted.domain)
    if rows <= size:
        yield fitted.sample(rows, seed)
        return
    root = secrets.randbits(63) if seed is None else seed
    starts = range(0, rows, size)

    def draw(number: int) -> pd.DataFrame:
        own = np.random.SeedSequence((root, number)).generate_state(1, np.uint64)[0]
        count = min(size, rows - starts[number])
        return fitted.sample(count, int(own >> np.uint64(1)))

    keys = _Keys(fitted.domain, rows)
    with closing(in_threads(draw, len(starts))) as parts:
        for part in parts:
            yield keys.renewed(part)


def sampled(fitted: Fitted, rows: int, seed: int | None = None) -> pd.DataFrame:
    """The rows of `sample_parts` as one frame."""
    parts = list(sample_parts(fitted, rows, seed))
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


class _Keys:
    """Made-up values that go on where those of the part before ended."""

    def __init__(self, domain: Domain, rows: int):
        person = domain.person
        made_up = () if person is None else person.columns
        kept = None if person is None else person.counter
        self._columns = [
            c for c in domain.columns if c.name in made_up or not (c.modelled or c.name == kept)
        ]
        self._rows = rows
        self._people = self._done = 0  # so far, and rows
        self._files = () if person is None or not person.walked else person.files
        self._keys: list[str] = []
        self._of_person: set[str] = set()
        if person is not None and person.grouped and person.rows > 1:
            self._keys, self._of_person = list(made_up), {*made_up, *person.constant}

    def renewed(self, part: pd.DataFrame) -> pd.DataFrame:
        """A part with values of its own."""
        start, self._done = self._done, self._done + len(part)
        if not self._columns:
            return part
        who = None
        if self._keys:
            who = part.groupby(self._keys, sort=False, dropna=False).ngroup().to_numpy()
        own = {}
        for column in self._columns:
            if who is not None and column.name in self._of_person:
                people = int(who.max()) + 1
                values = surrogate(column, people, start=self._people, of=self._rows)
                own[column.name] = values.iloc[who].reset_index(drop=True)
            else:
                most = max(self._rows, self._done)  # a person may have several
                there = part[column.name].notna()
                own[column.name] = surrogate(column, len(part), start=start, of=most, there=there)
        if who is not None:
            self._people += int(who.max()) + 1
        for file in self._files:  # the key of whose event it is
            if file.event is not None and file.owner is not None:
                keys = part[file.event], part[file.owner], own[file.owner]
                own[file.event] = renewed_links(*keys)
            elif file.event is not None:
                own[file.event] = own[self._keys[0]].where(part[file.event].notna())
        return part.assign(**own)
