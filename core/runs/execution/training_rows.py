"""The rows that a run trains on, as models see them: in memory, or on disk where there are many.

Which of the two is a matter of how many cells there are, a public number; what is released is the
same. Rows that are put together by person are always read at once: who comes first among them is
known only when all have been seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import disk_usage
from typing import Protocol

import pandas as pd

from core.encoding.codec import Codec, Codes
from core.encoding.holdout import training_batches
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import PersonRows, encoded_records
from core.encoding.stored_codes import StoredCodes, bytes_needed, store_codes
from core.models.events import Emitter, OnEvent
from core.privacy.plan import Plan
from core.reading.raw_cells import BATCH_ROWS
from core.runs.errors import RunStoreError
from core.runs.storage.store import RunStore
from core.schema.person import Person
from core.schema.schema import Schema

MOST_IN_MEMORY = 2**24  # cells; a table of more is encoded some rows at a time
SPARE_BYTES = 2**30  # of the disk, for what else a run writes


class TrainingRows(Protocol):
    """Where rows come from that are trained on; nothing is read before it is asked for."""

    def whole(self, names: Sequence[str]) -> pd.DataFrame:
        """All of them, these columns."""

    def batches(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """The same rows in the same order, some at a time; not where rows are put together."""

    def read_as(self, schema: Schema) -> TrainingRows:
        """The same rows, read as this schema declares them where cells are kept as they stood."""


@dataclass(frozen=True)
class StoredRows:
    """The training rows of a stored table.

    Attributes:
      schema: of the run: reads the cells, and says who is kept out.
    """

    store: RunStore
    table_id: str
    schema: Schema

    def whole(self, names: Sequence[str]) -> pd.DataFrame:
        """See `TrainingRows`."""
        return self.store.load_split(self.table_id, self.schema, names)[0]

    def batches(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """See `TrainingRows`."""
        every = self.store.batches(self.table_id, schema=self.schema, columns=names)
        return training_batches(every, self.store.table(self.table_id).n, self.schema.holdout)

    def read_as(self, schema: Schema) -> StoredRows:
        """See `TrainingRows`."""
        return replace(self, schema=schema)


@dataclass(frozen=True)
class FrameRows:
    """Training rows that are in memory already."""

    frame: pd.DataFrame

    def whole(self, names: Sequence[str]) -> pd.DataFrame:
        """See `TrainingRows`."""
        return self.frame[list(names)]

    def batches(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """See `TrainingRows`."""
        for start in range(0, len(self.frame), BATCH_ROWS):
            yield self.frame[list(names)].iloc[start : start + BATCH_ROWS].reset_index(drop=True)

    def read_as(self, schema: Schema) -> FrameRows:
        """See `TrainingRows`: these are typed already."""
        return self


def check_disk(plan: Plan, layout: Layout, person: Person | None, folder: Path) -> None:
    """Refuse a fit that has no room on disk for its codes, before anything is spent."""
    if not _on_disk(plan, layout, person):
        return
    needed = bytes_needed(Codec(layout.domain), plan.n) + SPARE_BYTES
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = disk_usage(there).free
    if free < needed:
        raise RunStoreError(
            "Training needs {needed:.1f} GB of disk for its working copy of the rows "
            "and {free:.1f} GB are free. Nothing more was spent. Make room, or "
            "train on fewer rows.",
            needed=needed / 1e9,
            free=free / 1e9,
        )


def training_records(
    rows: TrainingRows,
    layout: Layout,
    plan: Plan,
    person: Person | None,
    *,
    folder: Path,
    on_event: OnEvent,
) -> tuple[Codes | StoredCodes, PersonRows | None]:
    """Read and encode.

    Args:
      folder: of the run; what is too large for memory takes room there, see
        `core.encoding.stored_codes`.

    Raises:
      RunStoreError: there are other rows than the plan says, or no room on disk.
    """
    who = () if person is None else person.columns
    names = list(dict.fromkeys((*layout.reads, *who)))
    if not _on_disk(plan, layout, person):
        return encoded_records(rows.whole(names), layout, person)
    tick, codec, n = Emitter(on_event).rows("read", pausable=True), Codec(layout.domain), plan.n
    batches = rows.batches(names)

    def parts() -> Iterator[Codes]:
        done = 0
        for batch in batches:
            yield codec.encode(layout.to_model(batch))
            done += len(batch)
            tick(min(done, n), n)

    codes = store_codes(parts(), codec, n, folder)
    if codes is None:
        raise RunStoreError(
            "The plan is for {n} records and the table has another number. Nothing "
            "was released, what was paid stays spent; make a plan for this table.",
            n=n,
        )
    return codes, None


def _on_disk(plan: Plan, layout: Layout, person: Person | None) -> bool:
    together = person is not None and person.grouped
    return not together and plan.n * len(layout.domain.modelled) > MOST_IN_MEMORY
