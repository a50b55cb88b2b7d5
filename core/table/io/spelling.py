"""How numbers are spelled in a column of text cells: units, groups of digits, places, gaps.

A spelling is only taken off where nothing else could be meant. `1,234` alone may be a thousand or a
fraction and stays text; `1,234,567`, `1 234`, `$1,234` and `12,5 %` are numbers beyond doubt.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any, TypeAlias

import pandas as pd
import pyarrow.compute as pc

from core.table.form import MOST_CODES, UNIT, Form
from core.table.io.cells import COMMA_DECIMAL, Distinct, typed
from core.table.labels import to_labels
from core.table.rare import FEW_ROWS

__all__ = ["plain_spelling", "typed_as_written"]

Series: TypeAlias = "pd.Series[Any]"

SPACES = " \u00a0\u202f"
AFFIXED = re.compile(
    rf"(?P<sign>[+-]?)(?P<prefix>{UNIT}[{SPACES}]?)?[+-]?(\d[\d.,'’{SPACES}]*)?\d"
    rf"(?P<suffix>[{SPACES}]?{UNIT})?"
)
DIGITS = re.compile(rf"[+-]?\d[\d.,'’{SPACES}]*")
SURE_MARKS = ("'", "’", *SPACES)  # none of them is ever a decimal mark
DOLLARS = ("$", "£", "¥", "₹", "US$")  # written with a decimal point wherever they are used


def plain_spelling(column: Distinct) -> tuple[Distinct, Form]:
    """The column without units and groups of digits, and the form that puts them back.

    Args:
      column: k distinct values.

    Returns:
      The column as given and an empty form where the values are no such numbers. A decimal comma
      stays in the values: whether it is one, the whole file tells.
    """
    if not len(column.present):
        return column, Form()
    plain, form = _without_units(column)
    return _without_groups(plain, form)


def _without_units(column: Distinct) -> tuple[Distinct, Form]:
    first = AFFIXED.fullmatch(column.present[0].as_py())
    if first is None or not (first["prefix"] or first["suffix"]):
        return column, Form()
    before, after = first["prefix"] or "", first["suffix"] or ""
    for outer in (True, False):
        signed = f"(-?){re.escape(before)}" if outer else f"{re.escape(before)}(-?)"
        pattern = rf"^{signed}(\d[\d.,'’{SPACES}]*){re.escape(after)}$"
        if column.matches(pattern):
            values = pc.replace_substring_regex(column.values, pattern, r"\1\2")
            form = Form(prefix=before, suffix=after, inner_sign=bool(before) and not outer)
            return replace(column, values=values), form
    return column, Form()


def _without_groups(column: Distinct, form: Form) -> tuple[Distinct, Form]:
    if not DIGITS.fullmatch(column.present[0].as_py()):  # text needs no second look
        return column, form
    marks = [mark for mark in (*SURE_MARKS, ",", ".") if column.any(re.escape(mark))]
    for mark in marks:
        decimal = "[.,]" if mark in SURE_MARKS else re.escape("." if mark == "," else ",")
        group = re.escape(mark)
        body = rf"^[+-]?(\d{{1,3}}|[1-9]\d{{0,2}}({group}\d{{3}})+)({decimal}\d+)?$"
        if not column.matches(body) or not _beyond_doubt(column, mark, form):
            continue
        values = pc.replace_substring(column.values, mark, "")
        decimal_mark = "," if mark == "." or (mark != "," and column.any(",")) else "."
        return replace(column, values=values), form.model_copy(
            update={"thousands": mark, "decimal": decimal_mark}
        )
    return column, form


def _beyond_doubt(column: Distinct, mark: str, form: Form) -> bool:
    """Whether a mark between digits can only group them."""
    group = re.escape(mark)
    if mark in SURE_MARKS:
        # numbers differ in length; telephone numbers and serial numbers do not
        lengths = pc.utf8_length(pc.replace_substring_regex(column.present, r"\D", ""))
        return bool(pc.count_distinct(lengths).as_py() > 1)
    if mark == "," and form.prefix.strip(SPACES) in DOLLARS:
        return True
    other = re.escape("." if mark == "," else ",")
    twice, both = rf"{group}\d{{3}}{group}\d{{3}}", rf"{group}\d{{3}}{other}\d"
    return column.any(both) or (column.any(twice) and not _versions(column, mark))


def _versions(column: Distinct, mark: str) -> bool:
    """Whether 1.234.567 might be a version or an address: all values have as many groups."""
    counts = pc.count_substring(column.present, mark)
    return mark == "." and bool(pc.count_distinct(counts).as_py() == 1)


def typed_as_written(
    column: Distinct, name: str, decimal: str, spelling: tuple[Distinct, Form] | None = None
) -> tuple[Series, Form, list[str]]:
    """The column typed, how it is written, and warnings.

    Where it says in several ways that a value is absent, the commonest becomes absent and the
    others (of ten rows or more) stay in the rows as text: the form names them as codes. Where a
    schema says which words stay, these do and no others.

    Args:
      column: n cells as in the file.
      name: header.
      decimal: decimal mark of the file, "." or ",".
      spelling: what `plain_spelling` gives, if it is known already.
    """
    plain, form = plain_spelling(column) if spelling is None else spelling
    own = form.decimal if form.thousands else decimal
    series, doubts = typed(plain, name, own)
    if pd.api.types.is_string_dtype(series.dtype) and form != Form():
        plain, form = column, Form()
        series, doubts = typed(column, name, decimal)
    if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_bool_dtype(series.dtype):
        fractions = pd.api.types.is_float_dtype(series.dtype)
        form = _number_form(plain, form, own, fractions=fractions)
    else:
        form = Form()
    series, form = _with_codes(series, column, form, name)
    return series, form, doubts


def _number_form(plain: Distinct, form: Form, decimal: str, *, fractions: bool) -> Form:
    """Marks and places of a column that became numbers, with fractions or whole."""
    update: dict[str, object] = {}
    if decimal == "," and plain.any(",") and plain.matches(COMMA_DECIMAL):
        update["decimal"] = ","
        if plain.any(r"\."):
            update["thousands"] = "."
    elif not form.thousands:
        update["decimal"] = "."
    mark = re.escape(str(update.get("decimal", form.decimal)))
    if not plain.any("[eE]") and plain.matches(rf"{mark}\d+$"):
        fraction = pc.replace_substring_regex(plain.present, rf"^.*{mark}", "")
        places = pc.unique(pc.utf8_length(fraction)).to_pylist()
        if len(places) == 1 and places[0] <= 12:
            update["places"] = places[0]
    elif fractions and not plain.any("[eE]"):
        update["trimmed"] = not plain.matches(mark)
    return form.model_copy(update=update)


def _with_codes(series: Series, column: Distinct, form: Form, name: str) -> tuple[Series, Form]:
    """The column with the rarer spellings of "absent" back in its cells, and the form."""
    spelled = sorted(column.spelled, key=lambda word: (-column.spelled[word], word))
    if column.stay is not None:
        absent = next((word for word in spelled if word not in column.stay), "")
        form = form.model_copy(update={"absent": absent})
        return _with_words(series, column, column.stay, name), form
    if not spelled:
        return series, form
    form = form.model_copy(update={"absent": spelled[0]})
    codes = tuple(word for word in spelled[1:] if word and column.spelled[word] >= FEW_ROWS)
    if "" in spelled[1:] and column.spelled[""] >= FEW_ROWS:  # an empty cell is no text
        codes = (spelled[0], *codes)
        form = form.model_copy(update={"absent": ""})
    codes = codes[:MOST_CODES]  # no more can be kept; cells of rarer ones are absent
    if not codes:
        return series, form
    return _with_words(series, column, codes, name), form.model_copy(update={"codes": codes})


def _with_words(series: Series, column: Distinct, stay: Collection[str], name: str) -> Series:
    """The column with words for "missing" back in the cells that say them.

    Args:
      series: n typed cells.
      column: the same as in the file.
      stay: the words.
      name: of the column.
    """
    back = {place: word for place, word in column.words.items() if word in stay}
    if not back:
        return series
    labels = to_labels(series)
    for place, word in back.items():
        labels = labels.mask(column.codes == place, word)
    return labels.rename(name)
