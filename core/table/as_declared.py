"""Cells as their column was declared, whatever type the rest of the column made them.

A file's column gets its type from all of its cells: a single 3.5 among whole numbers makes each 1 a
1.0, a single word leaves "12,50 €" as text. Under a schema that was declared before, that would let
one record move all others, which no noise is made for. So cells are put back one by one, by what is
declared and by how the file is written, never by what stands in other rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pandas as pd

from core.table.column import WHOLE_NUMBERS, Column, Kind
from core.table.form import FileForm, Form
from core.table.io.cells import MISSING_MARKERS, DeclaredWords
from core.table.labels import dtype_of, to_labels
from core.table.schema import Schema

__all__ = ["as_declared", "declared_words", "respelled"]

Series: TypeAlias = "pd.Series[Any]"

_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_EXACT = 2**53  # whole numbers below it are the same as floats


def declared_words(schema: Schema) -> DeclaredWords:
    """Which words for "missing", such as NA, are a column's values or codes as it is declared.

    All others are missing. That Namibia is no missing country is otherwise told from the other
    cells, and that N/A is a state of its own from how many there are.
    """
    declared = {
        column.name: tuple(
            word
            for word in (*(column.categories or ()), *(column.form or Form()).codes)
            if word.strip().lower() in MISSING_MARKERS
        )
        for column in schema.columns
    }
    return {name: words for name, words in declared.items() if words}


def respelled(labels: Sequence[str], before: str, dtype: str) -> tuple[str, ...]:
    """Labels of a column of one type as they are spelled in a column of another.

    Whole numbers become fractions where a file has gaps: 1 is 1.0 there.

    Args:
      labels: of the earlier column.
      before: its dtype.
      dtype: of the later one.

    Returns:
      The labels themselves where they are no numbers, or two would become one.
    """
    family = _family(dtype)
    if family not in ("whole", "number") or _family(before) in (family, None):
        return tuple(labels)
    spelled = tuple(_spelled(label, family) for label in labels)
    return spelled if len(set(spelled)) == len(labels) else tuple(labels)


def as_declared(frame: pd.DataFrame, schema: Schema, form: FileForm | None) -> pd.DataFrame:
    """The rows with the cells of each column spelled as the schema declares them.

    Numbers stay as they are where they are numbers; labels, dates and keys of people are spelled
    as the declared type spells them, and numbers that were left as text are read in the declared
    form. A cell that is nothing of the kind keeps its text.

    Args:
      frame: n rows; columns of the schema that it lacks are passed over.
      schema: as declared.
      form: how the rows' file is written; None where nobody knows.

    Returns:
      The frame itself where nothing changes.
    """
    who = () if schema.person is None else schema.person.columns
    changed: dict[str, Series] = {}
    for column in schema.columns:
        if column.name not in frame or (column.kind.surrogate and column.name not in who):
            continue
        cells = frame[column.name]
        written = None if form is None else form.columns.get(column.name, Form())
        told = _told(cells, column, written)
        if told is not cells:
            changed[column.name] = told
    return frame.assign(**changed) if changed else frame


def _told(cells: Series, column: Column, written: Form | None) -> Series:
    """One column's cells; `written` is how its file has them."""
    declared, there = _family(column.dtype), _family(dtype_of(cells))
    if there is None or declared is None or isinstance(cells.dtype, pd.CategoricalDtype):
        return cells
    on_a_line = column.kind in (Kind.NUMBER, Kind.INTEGER)
    if there == "text":
        return cells if declared == "text" else _read(cells, column, declared, written)
    if on_a_line or there == declared:
        return cells
    if declared == "text":
        return cells if written is None else _mapped(cells, column, written.number)
    return _mapped(cells, column, lambda label: _spelled(label, declared))


def _read(cells: Series, column: Column, declared: str, written: Form | None) -> Series:
    """Text cells of a column that was declared to hold numbers, or labels that are numbers."""
    own = column.form or Form()
    if written is None and column.codes:
        return cells  # it cannot be told whether the marks were taken off
    if written is not None and _has_marks(written):
        own = Form()  # they were: the text is of codes for "missing" alone
    if column.kind.numeric:
        plain = column.kind is Kind.DATETIME or not _has_marks(own)
        return cells if plain else _mapped(cells, column, lambda label: _plain(label, own))
    return _mapped(cells, column, lambda label: _spelled(_plain(label, own), declared))


def _mapped(cells: Series, column: Column, spell: Callable[[str], str]) -> Series:
    """Cells as labels, each distinct one spelled anew; absent ones and the column's own stay so."""
    own = frozenset((*(column.categories or ()), *column.codes))
    labels = to_labels(cells)
    distinct = {one: one if one in own else spell(one) for one in labels.dropna().unique()}
    told: Series = labels.map(distinct).astype("str")
    return told


def _plain(label: str, form: Form) -> str:
    """A number's plain spelling, taken from the one in a form; what is none stays as it is."""
    text = label.strip()
    sign = "-" if text.startswith("-") else ""
    text = text.lstrip("+-").removeprefix(form.prefix).removesuffix(form.suffix)
    if text.startswith("-") and not sign:
        sign, text = "-", text[1:]
    grouping = form.thousands or ("." if form.decimal == "," else "")
    if grouping:
        group, mark = re.escape(grouping), re.escape(form.decimal)
        if re.fullmatch(rf"\d{{1,3}}({group}\d{{3}})+({mark}\d+)?", text):
            text = text.replace(grouping, "")
    if form.decimal == ",":
        text = text.replace(".", " ").replace(",", ".")  # a point is no decimal mark here
    return f"{sign}{text}" if _PLAIN.fullmatch(text) else label


def _spelled(label: str, declared: str) -> str:
    """A number's label in a column of whole numbers, or of others; other labels stay."""
    if not _PLAIN.fullmatch(label):
        return label
    value = float(label)
    if declared == "whole":
        return str(int(value)) if abs(value) < _EXACT and value == int(value) else label
    return str(value)


def _family(dtype: str) -> str | None:
    """What labels of a declared type look like; None for types of which there is one spelling."""
    low = dtype.lower()
    if low.startswith(WHOLE_NUMBERS):
        return "whole"
    if low.startswith("float"):
        return "number"
    return "text" if low in ("str", "object", "string", "category") else None


def _has_marks(form: Form) -> bool:
    """Whether plain digits are not how its numbers are written."""
    return bool(form.prefix or form.suffix or form.thousands or form.decimal != ".")
