"""A source kept as one Parquet file of raw cells, counted on its way, with what it proposes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

import pandas as pd
import pyarrow.parquet as pq
from pydantic import PlainSerializer, TypeAdapter

from core.importing.record_hashes import DrawnRows
from core.message import Text
from core.proposing.profile import Profile
from core.proposing.propose import Counts, propose_table
from core.reading.cells import TableReadError
from core.reading.raw_cells import Source
from core.reading.row_groups import raw_batches
from core.reading.typed_cells import typed_rows
from core.schema.form import FileForm
from core.schema.schema import Schema
from core.writing.whole_files import replacing

Progress: TypeAlias = Callable[[int], None]  # hears how many rows have passed
DRAWN = "drawn.parquet"  # beside the rows
SET_FIELDS = partial(FileForm.model_dump, mode="json", exclude_unset=True)


@dataclass(frozen=True, kw_only=True)
class RawTable:
    """A table whose raw cells were kept; its form's delimiter is set of text files alone.

    `drawn` is a Parquet file of a random part of the rows in random order; None where all are few
    enough to be compared with other tables.
    """

    path: Path
    n: int
    names: tuple[str, ...]
    form: Annotated[FileForm, PlainSerializer(SET_FIELDS)]
    doubts: tuple[Text, ...] = ()
    sums: str = ""
    drawn: Path | None = None
    schema: Schema | None = None
    profile: Profile | None = None

    def compared(self, schema: Schema) -> pd.DataFrame:
        """The rows that are compared with other tables, typed under a schema."""
        return typed_rows(pq.read_table(self.drawn or self.path), schema.columns)


TABLE = TypeAdapter(RawTable)  # for another process


def keep_rows(
    source: Source, rows: Path, *, proposing: bool, progress: Progress = lambda rows: None
) -> RawTable:
    """Read a source once and keep its rows, whole or not at all."""
    counts, drawn, n = Counts(), DrawnRows(), 0
    with replacing(rows) as file, ExitStack() as written:
        writer = None
        for batch in source.batches():
            if writer is None:
                writer = written.enter_context(pq.ParquetWriter(file, batch.schema))
            if proposing:
                counts.add(batch)
                drawn.add(batch)
            n += batch.num_rows
            writer.write_table(batch)
            progress(n)
        if writer is None or not n:
            raise TableReadError("The table holds no records. Nothing was kept.")
    names = tuple(writer.schema.names)
    raw = RawTable(path=rows, n=n, names=names, form=source.form, doubts=source.doubts)
    if not proposing:
        return raw
    part = rows.parent / DRAWN if drawn.n > drawn.most else None
    if part is not None:
        pq.write_table(drawn.rows(), part)
    reread = partial(raw_batches, rows)
    schema, profile = propose_table(counts, reread, source.form, source.doubts)
    return replace(
        raw, doubts=profile.reading, sums=drawn.sums(), drawn=part, schema=schema, profile=profile
    )
