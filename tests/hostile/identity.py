"""Is a cell still what it was? From the file to the frame, and from the frame through the codec."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd

from core.encoding.codec import Codec
from core.proposing.misfits import misfits
from core.reading.cells import MISSING_MARKERS
from core.reading.tally import Tally
from core.schema.column import Column, DomainSource
from core.schema.form import Form
from core.schema.labels import to_labels, to_numbers
from core.schema.schema import Schema
from tests.reading.files import ReadResult


def changed_cells(series: pd.Series, column: Column) -> int:
    """Cells that encoding and decoding changes, in a modelled column."""
    codec = Codec(Schema(columns=(column,)).domain())
    back = codec.decode_codes(codec.encode(pd.DataFrame({column.name: series})))[column.name]
    absent = series.isna().to_numpy()
    if column.kind.listed:
        same = (to_labels(back) == to_labels(series)).to_numpy(dtype=bool, na_value=False)
    else:
        before, after = to_numbers(series, column), to_numbers(back, column)
        # Twelve digits of the widest bound: what a position on the declared scale can hold.
        near = max(column.step / 1000, 1e-12 * max(abs(column.low or 0.0), abs(column.high or 0.0)))
        same = np.abs(before - after) <= near
    return int(np.where(absent, ~back.isna().to_numpy(), ~same).sum())


def codec_faults(frame: pd.DataFrame, schema: Schema) -> list[str]:
    """Columns in which the codec changes more or fewer cells than are counted and shown.

    Args:
      frame: rows, typed by the schema.
      schema: as proposed.
    """
    faults = []
    for column in schema.columns:
        if column.source is DomainSource.DROP or column.kind.surrogate:
            if not column.note:
                faults.append(f"{column.name}: left out or made up without a word")
            continue
        counted, changed = (
            misfits(Tally.of(frame[column.name]), column),
            changed_cells(frame[column.name], column),
        )
        if counted != changed:
            faults.append(f"{column.name}: {changed} changed, {counted} counted")
    return faults


def reading_faults(result: ReadResult, text: str) -> list[str]:
    """Cells of delimited text that the frame holds otherwise, in columns that no doubt names."""
    delimiter = result.form.delimiter
    spaced = f'{delimiter} "' in text
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=spaced)
    _, *rows = [row for row in lines if row]
    faults = []
    for place, name in enumerate(result.frame.columns):
        told = any(f"'{name}'" in doubt for doubt in result.warnings)
        for row, value in zip(rows, result.frame[name], strict=True):
            form = result.form.columns.get(str(name), Form())
            cell = row[place].strip().replace("\0", "\ufffd")
            if not told and not _same(cell, value, form):
                faults.append(f"{name}: {row[place][:40]!r} is {value!r}"[:120])
    return faults


def _same(cell: str, value: object, form: Form) -> bool:
    if pd.isna(value):  # type: ignore[call-overload]
        return cell == ""  # another marker has to be named in a doubt
    if isinstance(value, str):
        return value == cell and (cell.lower() not in MISSING_MARKERS or cell != "")
    if isinstance(value, bool | np.bool_):
        return cell == str(bool(value))
    plain = cell.replace(form.prefix, "").replace(form.suffix, "")
    plain = plain.replace(form.thousands, "").replace(form.decimal, ".")
    number = int(plain) if isinstance(value, int | np.integer) else float(plain)
    return bool(number == value)
