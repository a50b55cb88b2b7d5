"""Frames to files, whole or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.reading.arrow_types import arrow_table
from core.schema.column import Column, Kind
from core.schema.form import FORMULA_STARTS, Form
from core.schema.labels import to_labels
from core.schema.schema import Schema
from core.writing.whole_files import replacing

Series: TypeAlias = "pd.Series[Any]"
Label: TypeAlias = Mapping[str, Any] | None
ROWS_AT_ONCE = 2**18  # that are text at a time
LABEL = "facsimile"  # key of a Parquet file's metadata

NUMBER = r"[+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?"
# Which mark parts cells is the spreadsheet's choice, by its country, so that inside a cell of ours
# another one may begin, also after the end of a line and a quote. Numbers there are no exception:
# what stands after them, up to the next mark, goes on as the same formula.
PARTED = rf"([,;|\t\r\n][\"\s]*)([{re.escape(''.join(FORMULA_STARTS))}])"


def write_csv_parts(
    parts: Iterable[pd.DataFrame],
    path: Path,
    *,
    schema: Schema | None = None,
    escape_formulas: bool = False,
) -> None:
    """Write UTF-8 text with a header, cells written as the original's are by its schema.

    `escape_formulas` is for spreadsheets: it puts an apostrophe before text that they would run,
    and a mark before other letters than ASCII, which they would misread; the file then no longer
    reads back as it was.
    """
    with replacing(path) as file:
        write_csv_rows(parts, file, schema=schema, escape_formulas=escape_formulas)


def write_csv_rows(
    parts: Iterable[pd.DataFrame],
    file: BinaryIO | IO[bytes],
    *,
    schema: Schema | None = None,
    escape_formulas: bool = False,
) -> None:
    """Write to an open file; see `write_csv_parts`."""
    slices = (
        part.iloc[start : start + ROWS_AT_ONCE]
        for part in parts
        for start in range(0, max(1, len(part)), ROWS_AT_ONCE)
    )
    for number, part in enumerate(slices):
        shown = _escaped(part) if escape_formulas else part
        if schema is not None:
            shown = as_written(shown, schema, headers=list(part.columns))
        delimiter = "," if schema is None else schema.delimiter
        text = shown.to_csv(sep=delimiter, index=False, header=number == 0, lineterminator="\n")
        marked = escape_formulas and number == 0 and not text.isascii()
        file.write(text.encode("utf-8-sig" if marked else "utf-8"))


def as_written(frame: pd.DataFrame, schema: Schema, headers: Sequence[str] = ()) -> pd.DataFrame:
    """Rows with the cells of columns that have a form as text in that form.

    Forms hold nothing that a spreadsheet runs, so escaping comes before.
    """
    forms = {column.name: column for column in schema.columns if column.form is not None}
    out = frame.copy(deep=False)
    for shown, name in zip(frame.columns, headers if len(headers) else frame.columns, strict=True):
        column = forms.get(str(name))
        if column is not None and column.form is not None:
            out[shown] = _written(frame[shown], column, column.form)
    return out


def _written(cells: Series, column: Column, form: Form) -> Series:
    numbers = form.spells_numbers and column.kind is not Kind.DATETIME
    if not numbers and not (form.absent and cells.isna().any()):
        return cells
    labels = to_labels(cells)
    if numbers and not column.kind.surrogate:
        codes, distinct = pd.factorize(labels)
        own = set(form.codes)
        spelled = [x if x in own else form.number(x) for x in distinct]
        labels = pd.Series(np.array([*spelled, None], dtype=object)[codes], dtype="str")
    return labels.fillna(form.absent) if form.absent else labels


def csv_text(frame: pd.DataFrame) -> str:
    """What `write_csv_parts` writes with formulas escaped, as text; for small frames."""
    text = str(_escaped(frame).to_csv(index=False, lineterminator="\n"))
    return text if text.isascii() else f"\ufeff{text}"


def write_parquet_parts(
    parts: Iterable[pd.DataFrame], path: Path, *, schema: Schema | None = None, label: Label = None
) -> None:
    """Write Parquet without an index, whole or not at all, a part a group of rows.

    `label` is what the file's metadata says under `LABEL`, as JSON.
    """
    with replacing(path) as file:
        write_row_groups(parts, file, schema=schema, label=label)


def write_row_groups(
    parts: Iterable[pd.DataFrame],
    file: BinaryIO,
    *,
    schema: Schema | None = None,
    label: Label = None,
) -> int:
    """Write Parquet to an open file, a part a group of rows; how many rows there are."""
    writer, rows = None, 0
    try:
        for part in parts:
            kinds = None if writer is None else writer.schema
            if schema is not None:
                table = arrow_table(part, schema.columns)
                table = table if kinds is None else table.cast(kinds)
            else:
                table = pa.Table.from_pandas(part, kinds, preserve_index=False)
            if writer is None:
                writer = pq.ParquetWriter(file, table.schema)
                writer.add_key_value_metadata({LABEL: json.dumps(label)} if label else {})
            writer.write_table(table)
            rows += len(part)
    finally:
        if writer is not None:
            writer.close()
    return rows


def escape_formulas(text: Series) -> Series:
    """Text cells made inert for spreadsheets; numbers are inert and keep their sign.

    >>> escape_formulas(pd.Series(["=1+1", "plain", "-5", "-5+1", "a;=1+1"])).tolist()
    ["'=1+1", 'plain', '-5', "'-5+1", "a;'=1+1"]
    """
    text = text.str.replace(PARTED, r"\1'\2", regex=True)
    runs = text.str.startswith(FORMULA_STARTS, na=False) & ~text.str.fullmatch(NUMBER, na=True)
    return text.mask(runs, "'" + text)


def _escaped(frame: pd.DataFrame) -> pd.DataFrame:
    out = frame.copy(deep=False)
    for name in out.columns:
        dtype = out[name].dtype
        if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_object_dtype(dtype):
            out[name] = out[name].astype("str")
        if pd.api.types.is_string_dtype(out[name].dtype):
            out[name] = escape_formulas(out[name])
    out.columns = pd.Index(escape_formulas(pd.Series(out.columns, dtype="str")))
    return out
