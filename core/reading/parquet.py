"""Parquet files that are one table, read some rows at a time from a disk or a store.

Footers settle the types before any row is read: whole numbers in one part and fractions in another
are numbers, anything else that differs is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from core.message import Message
from core.reading.arrow_types import DICTIONARY, is_text, stored_type
from core.reading.cells import ReadLimits, TableReadError, unique_names
from core.reading.row_groups import arrow_batches, parquet_file, plain_type
from core.schema.form import FileForm, Form

PARQUET_MAGIC = b"PAR1"
INDEX = re.compile("__index_level_.*__", re.DOTALL)
DAMAGE = (pa.ArrowException, OSError, ValueError, OverflowError)  # what arrow raises on bad bytes


@dataclass
class ParquetParts:
    """A `Source`: one or more Parquet files with the same columns."""

    files: Sequence[str]
    system: Any = field(default_factory=LocalFileSystem)

    def __post_init__(self) -> None:
        self.doubts: tuple[str, ...] = ()
        self._schema, listed = self._settle()
        kinds = {one.name: stored_type(one.type) for one in self._schema}
        kinds |= dict.fromkeys(listed, DICTIONARY)
        self.form = FileForm(
            columns={name: Form(arrow=kind) for name, kind in kinds.items() if kind}
        )

    def batches(self) -> Iterator[pa.Table]:
        """See `Source.batches`."""
        for part in self.files:
            with self._opened(part) as file:
                indices = {name: index for index, name, _ in _columns(file)[0]}
                for batch in arrow_batches(file):
                    yield self._plain(batch, indices)

    def _plain(self, batch: pa.RecordBatch, indices: dict[str, int]) -> pa.Table:
        columns = []
        for one in self._schema:
            cells = batch.column(indices[one.name])
            rounded = pa.types.is_floating(one.type)  # whole numbers may have more digits
            try:
                cells = cells.cast(plain_type(cells.type)).cast(one.type, safe=not rounded)
            except pa.ArrowInvalid:
                raise _differs(one.name) from None
            columns.append(self._decoded(cells, one.name) if is_text(one.type) else cells)
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _decoded(self, text: pa.Array, name: str) -> pa.Array:
        """The text, cells that are not UTF-8 with U+FFFD for what cannot be read."""
        try:
            text.validate(full=True)
        except pa.ArrowInvalid:
            doubt = Message(
                "'{name}' holds text that is not in UTF-8; unreadable characters are shown as "
                "\N{REPLACEMENT CHARACTER}.",
                name=name,
            )
            self.doubts = tuple(dict.fromkeys([*self.doubts, doubt]))
            cells = text.cast(pa.binary()).to_pylist()
            spelled = [None if cell is None else cell.decode("utf-8", "replace") for cell in cells]
            return pa.array(spelled, pa.string())
        return text

    def _settle(self) -> tuple[pa.Schema, set[str]]:
        settled, listed, rows = pa.schema([]), set[str](), 0
        for part in self.files:
            with self._opened(part) as file:
                columns, doubts = _columns(file)
                rows += file.metadata.num_rows
            schema = pa.schema([(name, plain_type(kind)) for _, name, kind in columns])
            dictionaries = {name for _, name, kind in columns if pa.types.is_dictionary(kind)}
            if not settled.names:
                settled, listed, self.doubts = schema, dictionaries, doubts
                continue
            differing = sorted(set(settled.names) ^ set(schema.names))
            if differing:
                raise TableReadError(
                    "The column '{name}' is in some files and not in others (compare {file}). "
                    "Nothing was kept. Give all files the same columns.",
                    name=differing[0],
                    file=PurePath(part).name,
                )
            settled, listed = _unified(settled, schema), listed & dictionaries
        if not settled.names:
            raise TableReadError("There is no Parquet file with columns here. Nothing was kept.")
        if not rows:
            raise TableReadError("The table has columns but no rows. Choose one with rows.")
        kinds = [pa.string() if pa.types.is_null(kind) else kind for kind in settled.types]
        for name, kind in zip(settled.names, kinds, strict=True):
            check_kind(kind, name)
        return pa.schema(zip(settled.names, kinds, strict=True)), listed

    @contextmanager
    def _opened(self, part: str) -> Iterator[pq.ParquetFile]:
        local = isinstance(self.system, LocalFileSystem)
        try:
            with self.system.open(part, "rb") as stream, parquet_file(stream, local=local) as file:
                yield file
        except (TableReadError, MemoryError):  # a ValueError and an ArrowException, like damage
            raise
        except DAMAGE:
            if len(self.files) == 1:
                raise TableReadError(
                    "The Parquet file is damaged or incomplete. Write or download it again."
                ) from None
            raise TableReadError(
                "The Parquet file {file} is damaged or incomplete, or could not be read to its "
                "end. Nothing was kept. Write or download it again.",
                file=PurePath(part).name,
            ) from None


def _columns(file: pq.ParquetFile) -> tuple[list[tuple[int, str, pa.DataType]], tuple[str, ...]]:
    """Index, name and type of each column but the row index that pandas adds, and doubts."""
    fields = list(enumerate(file.metadata.schema.to_arrow_schema()))
    kept = [(index, one) for index, one in fields if not INDEX.fullmatch(one.name)]
    names, doubts = unique_names([one.name for _, one in kept], ReadLimits())
    if len(kept) < len(fields):
        doubts = [*doubts, Message("The row index stored beside the table was left out.")]
    columns = zip(kept, names, strict=True)
    return [(index, name, one.type) for (index, one), name in columns], tuple(doubts)


def check_kind(kind: pa.DataType, name: str) -> None:
    """Refuse a column that holds no plain values."""
    checks = (is_text, pa.types.is_primitive, pa.types.is_decimal, pa.types.is_null)
    if not any(check(kind) for check in checks):
        raise TableReadError(
            "The column '{name}' holds lists, records or binary data ({type}). Leave it out, "
            "or turn it into plain columns.",
            name=name,
            type=str(kind),
        )


def _unified(settled: pa.Schema, schema: pa.Schema) -> pa.Schema:
    fields = []
    for one in settled:
        pair = [pa.schema([one]), pa.schema([schema.field(one.name)])]
        try:
            fields.append(pa.unify_schemas(pair, promote_options="permissive").field(0))
        except pa.ArrowException:
            raise _differs(one.name) from None
    return pa.schema(fields)


def _differs(name: str) -> TableReadError:
    return TableReadError(
        "The column '{name}' holds values of different types in different files. Nothing was "
        "kept. Write all files with one type for it.",
        name=name,
    )
