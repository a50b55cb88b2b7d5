"""Sources: where a table's rows come from, some at a time.

What is said of a source is stored and shown, so it holds no password, no token and no query.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from core.table.form import FileForm

__all__ = ["Prepared", "Source"]


class Source(Protocol):
    """A table's rows as raw cells, in batches of one Arrow schema."""

    @property
    def words(self) -> str:
        """Where the table comes from, for people; without anything secret."""

    @property
    def form(self) -> FileForm:
        """How it is written, as declared or as its first bytes propose; of Parquet its types."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """What was decided in doubt, a sentence each, once the rows were read."""

    def prepare(self, folder: Path) -> None:
        """Fetch what can be read only once, before the first batch.

        Args:
          folder: private, for files that may lie there until the rows were read.

        Raises:
          TableReadError: one plain line that quotes no value.
        """

    def batches(self) -> Iterator[pa.Table]:
        """The rows in order, from the beginning each time, at most `batch_rows` of them at once.

        Text as written carries the mark of `core.table.raw_cells.as_written`.

        Raises:
          TableReadError: one plain line that quotes no value.
        """


class Prepared:
    """The part of a `Source` that another source has, which `prepare` makes."""

    source: Source | None = None

    @property
    def form(self) -> FileForm:
        """See `Source.form`."""
        return FileForm() if self.source is None else self.source.form

    @property
    def doubts(self) -> tuple[str, ...]:
        """See `Source.doubts`."""
        return () if self.source is None else self.source.doubts

    def batches(self) -> Iterator[pa.Table]:
        """See `Source.batches`."""
        assert self.source is not None, "prepare() comes first"
        return self.source.batches()
