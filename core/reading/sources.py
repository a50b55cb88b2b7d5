"""Sources: where a table's rows come from, some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from core.schema.form import FileForm


class Source(Protocol):
    """A table's rows as raw cells, in batches of one Arrow schema."""

    form: FileForm
    doubts: tuple[str, ...]

    def batches(self) -> Iterator[pa.Table]:
        """The rows in order, from the beginning each time, at most `batch_rows` of them at once.

        Text as written carries the mark of `core.reading.raw_cells.as_written`.
        """
