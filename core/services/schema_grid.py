"""A schema as an editable grid of plain cells, and back again.

The grid is what a steward edits: one row a column, bounds as text (dates as dates), nothing that
needs a manual. Turning it back checks every cell and names the column that is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, time
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from core.message import Message, to_say
from core.proposing.kinds import EXACT
from core.proposing.propose import propose_column, with_digits
from core.proposing.rare import OTHER, common_labels, without_merged
from core.reading.tally import Tally
from core.reading.typed_cells import typed_tally
from core.schema.column import (
    MAX_CATEGORIES,
    Column,
    DomainSource,
    Kind,
    Provenance,
    SchemaColumn,
    SchemaError,
    changed,
    is_open,
    is_whole,
    origin_words,
)
from core.schema.date_text import date_text, is_clock
from core.schema.form import Form
from core.schema.labels import to_numbers
from core.schema.magnitudes import FIRST_SECOND, LAST_SECOND
from core.schema.round_bounds import date_bounds, date_step, round_bounds
from core.schema.schema import Schema

GRID = (
    "column", "kind", "keep", "from", "to", "values", "missing", "scale", "rare",
    "absent", "codes", "written", "origin",
)  # fmt: skip
AnyColumn = TypeVar("AnyColumn", bound=Column)
_GROUPED = r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"
_SCALES = {"linear": to_say("even"), "log": to_say("heavy tail")}
_SOURCES = {
    to_say("learn"): DomainSource.LEARNED,
    to_say("learned earlier"): DomainSource.LEARNED,  # by a run that the column names
    to_say("declare"): DomainSource.DECLARED,
    to_say("make up"): DomainSource.DECLARED,  # identifiers and text, which have no domain
    to_say("leave out"): DomainSource.DROP,
}


def grid_of(
    schema: Schema, rare: Mapping[str, str] | None = None, said: Callable[[str], str] = str
) -> pd.DataFrame:
    """One row a column, all cells text but `missing` (bool); see `GRID`.

    Args:
      rare: by column, what is said of its rare values.
      said: says messages in a language, before the grid keeps their English alone.
    """
    rows = [
        {
            "column": c.name,
            "kind": c.kind.value,
            "missing": c.missing,
            "from": _bound(c.low, c),
            "to": _bound(c.high, c),
            "scale": _SCALES[c.scale] if c.kind.numeric else "—",
            "values": said(Message("{n} listed", n=len(c.categories))) if c.categories else "",
            "rare": said((rare or {}).get(c.name, "")),
            "keep": _source_word(c),
            "origin": "—" if c.kind.surrogate else said(_origin(c)),
            "absent": "" if c.form is None else c.form.absent,
            "codes": ", ".join(c.codes),
            "written": example(c),
        }
        for c in schema.columns
    ]
    return pd.DataFrame(rows, columns=list(GRID))


def _source_word(column: SchemaColumn) -> str:
    if column.kind.surrogate and column.source is not DomainSource.DROP:
        return to_say("make up")
    if column.provenance is Provenance.LEARNED:
        return to_say("learned earlier")
    return next(word for word, source in _SOURCES.items() if source is column.source)


def _origin(column: SchemaColumn) -> str:
    return Message("learned with noise") if is_open(column) else origin_words(column)


def schema_of(grid: pd.DataFrame, schema: Schema) -> Schema:
    """The schema with the grid's `missing`, bounds, scale and `keep`; kinds stay as they are."""
    columns = []
    for (_, row), column in zip(grid.iterrows(), schema.columns, strict=True):
        change: dict[str, object] = {"missing": bool(row["missing"])}
        change["source"] = _SOURCES[row["keep"]]
        if column.kind.surrogate and row["keep"] == _source_word(column):
            change["source"] = column.source
        if column.kind.numeric:
            low = _parse(row["from"], column, Message("from"))
            high = _parse(row["to"], column, Message("to"))
            scale = next((s for s, word in _SCALES.items() if word == row["scale"]), "linear")
            ends = (-math.inf if low is None else low, math.inf if high is None else high)
            spikes = tuple(spike for spike in column.spikes if ends[0] <= spike <= ends[1])
            change |= {"low": low, "high": high, "scale": scale, "spikes": spikes}
        change |= _form(row, column)
        columns.append(_set_by_hand(column, changed(column, **change)))
    return schema.model_copy(update={"columns": tuple(columns)})


def _form(row: pd.Series[Any], column: Column) -> dict[str, object]:
    """What the grid says of absent cells, where it says something new."""
    form = column.form or Form()
    absent, words = _words(row["absent"]), _words(row["codes"])
    codes = tuple(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
    if codes == column.codes and absent == form.absent:
        return {}
    if codes and not column.kind.numeric:
        raise SchemaError(
            "'{name}' has a list of values: a code for a missing value is one of its "
            "categories and is written back as it is. Nothing was changed.",
            name=column.name,
        )
    update = {"absent": absent} | ({"codes": codes} if column.kind.numeric else {})
    return {"form": form.model_dump() | update}


def _words(cell: object) -> str:
    return "" if cell is None or cell is pd.NA or cell != cell else str(cell).strip()


def example(column: Column) -> str:
    """A made-up value as the column writes it; "" where that is nothing special."""
    form = column.form or Form()
    if column.kind is Kind.DATETIME and column.date_format:
        moment = pd.Series([pd.Timestamp("2031-03-07 14:05:09.123456")]).dt.as_unit("us")
        return str(date_text(moment, column.date_format, form).iloc[0])
    numbers = column.kind.numeric and column.kind is not Kind.DATETIME
    whole = column.kind is Kind.INTEGER and not form.decimal_places
    return form.number("1234" if whole else "1234.5") if numbers and form.spells_numbers else ""


def _set_by_hand(before: SchemaColumn, column: SchemaColumn) -> SchemaColumn:
    """The edited column; a domain that was set by hand is declared."""
    edited = column.domain_digest != before.domain_digest
    if not edited or before.source is not DomainSource.LEARNED:
        return column
    if column.source is DomainSource.LEARNED:
        return column.model_copy(update={"source": DomainSource.DECLARED, "learned": None})
    return column


def with_categories(column: AnyColumn, text: str) -> AnyColumn:
    """The column with the categories listed one a line; see `with_list`."""
    known = {category for category in column.categories or () if category}
    # a label that is listed already keeps its outer spaces, or its rows would become "OTHER"
    lines = (line if line in known else line.strip() for line in text.split("\n"))
    return with_list(column, [line for line in lines if line])


def with_list(column: AnyColumn, labels: Sequence[str]) -> AnyColumn:
    """The column with these categories; what was listed and is not any more becomes "OTHER"."""
    listed = tuple(labels)
    if not listed:
        raise SchemaError(
            "'{name}' needs at least one category. Nothing was changed.", name=column.name
        )
    other = column.other if column.other in listed else None
    if other is None and set(column.categories or ()) - set(listed):
        listed, other = (*(c for c in listed if c != OTHER), OTHER), OTHER
    change: dict[str, object] = {"categories": listed, "other": other}
    if isinstance(column, SchemaColumn) and listed != column.categories:
        change["note"] = without_merged(column.note)  # it is true no longer
        if column.source is DomainSource.LEARNED:  # a list that was set by hand is declared
            change |= {"source": DomainSource.DECLARED, "learned": None}
    return changed(column, **change)


def as_kind(tally: Tally, column: Column, kind: Kind) -> SchemaColumn:
    """The column as another kind, with a domain proposed from the rows as inference would."""
    bare: dict[str, object] = {
        "kind": kind, "low": None, "high": None, "step": 0.0, "scale": "linear", "spikes": (),
        "categories": None, "other": None,
    }  # fmt: skip
    plain = SchemaColumn(**column.fields()).model_copy(update=bare)
    if kind.surrogate:
        return changed(plain).as_proposed()
    if kind.listed:
        listed = _list_of(typed_tally(tally, plain)[0], column.name, kind)
        return changed(plain, **listed).as_proposed()
    plain, typed = _as_numbers(tally, plain)
    numbers = to_numbers(typed.values, plain)
    present = numbers[~np.isnan(numbers)]
    if is_whole(plain.dtype) and len(present):
        if np.abs(present).max() > EXACT:
            raise SchemaError(
                "'{name}' holds whole numbers beyond 2⁵³, whose last digits would be lost in "
                "computations. Nothing was changed. Keep it as an identifier or as categories.",
                name=column.name,
            )
    if not len(present):
        raise SchemaError(
            "'{name}' has no value to take bounds from. Nothing was changed.", name=column.name
        )
    least, greatest = float(present.min()), float(present.max())
    if kind is Kind.DATETIME:
        known = typed.step if plain.dtype.startswith("datetime64") else None
        step = date_step(present) if known is None else known
        low, high = date_bounds(
            least, greatest, step=step, dtype=plain.dtype, date_format=plain.date_format
        )
    else:
        step = 1.0 if kind is Kind.INTEGER else 0.0
        low, high = round_bounds(least, greatest, step=step, dtype=plain.dtype)
    return changed(plain, low=low, high=high, step=step).as_proposed()


def _as_numbers(tally: Tally, column: SchemaColumn) -> tuple[SchemaColumn, Tally]:
    """A column of numbers or dates in the form in which most of its cells read, and these."""
    typed, unreadable = typed_tally(tally, column)
    if unreadable and tally.written:  # in the form that the cells themselves propose, perhaps
        again = propose_column(tally, column.name)
        if not again.kind.numeric:  # or those alone that hold digits
            again = propose_column(with_digits(tally), column.name)
        dates = column.kind is Kind.DATETIME
        if again.kind.numeric and (again.kind is Kind.DATETIME) is dates:
            form = {name: getattr(again, name) for name in ("dtype", "form", "date_format")}
            column = column.model_copy(update=form)
            typed, unreadable = typed_tally(tally, column)
    if 2 * unreadable > tally.known:
        raise SchemaError(
            "Most values of '{name}' do not read as {kind}. Nothing was changed.",
            name=column.name,
            kind=Message(column.kind.value),
        )
    return column.model_copy(update={"missing": column.missing or bool(unreadable)}), typed


def _list_of(tally: Tally, name: str, kind: Kind) -> dict[str, object]:
    """Categories for a kind that has a list; rare ones are merged where no order would break."""
    counts = tally.labels()
    labels = [str(label) for label in counts.index]
    if kind is Kind.CATEGORY and tally.exact:
        common = common_labels(counts)
        if common is not None and len(common) < len(labels):
            named = _sorted([label for label in common if label != OTHER])
            return {"categories": (*named, OTHER), "other": OTHER}
    if len(labels) > MAX_CATEGORIES or (kind is Kind.BOOLEAN and len(labels) > 2):
        most = 2 if kind is Kind.BOOLEAN else MAX_CATEGORIES
        raise SchemaError(
            "'{name}' has {n:,} different values; as {kind} it may have {most:,}. Nothing was "
            "changed.",
            name=name,
            n=tally.distinct,
            kind=Message(kind.value),
            most=most,
        )
    return {"categories": _sorted(labels)}


def _sorted(labels: list[str]) -> tuple[str, ...]:
    """Numbers by size, then text by alphabet."""

    def key(label: str) -> tuple[int, float, str]:
        try:
            return (0, float(label), label)
        except ValueError:
            return (1, 0.0, label)

    return tuple(sorted(labels, key=key))


def _bound(value: float | None, column: Column) -> str:
    """A bound as people write it.

    >>> _bound(86400.0, Column(name="day", kind=Kind.DATETIME, step=86400))
    '1970-01-02'
    """
    if value is None:
        return ""
    if column.kind is Kind.DATETIME:
        if not FIRST_SECOND <= value <= LAST_SECOND:
            return ""  # no calendar has it; the declaration asks for another
        moment = datetime.fromtimestamp(value, tz=UTC)
        if is_clock(column.date_format):
            return moment.time().isoformat()
        if value % 86_400 == 0:
            return moment.date().isoformat()
        return moment.replace(tzinfo=None).isoformat(sep=" ")
    short = f"{value:.15g}"
    return short if float(short) == value else repr(value)  # an untouched bound must not move


def _parse(cell: object, column: Column, side: str) -> float | None:
    text = _words(cell)
    if not text:
        return None
    try:
        if column.kind is Kind.DATETIME:
            if is_clock(column.date_format):
                text = f"1900-01-01 {time.fromisoformat(text.zfill(5))}"
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        # a comma groups digits; one that could be a decimal mark is not guessed at
        number = float(text.replace(",", "") if re.fullmatch(_GROUPED, text) else text)
        if not math.isfinite(number):
            raise ValueError(text)
        return number
    except ValueError:
        words = to_say("'{name}', {side}: write a number. Nothing was changed.")
        if is_clock(column.date_format):
            words = to_say("'{name}', {side}: write a time such as 14:05. Nothing was changed.")
        elif column.kind is Kind.DATETIME:
            words = to_say(
                "'{name}', {side}: write a date such as 2024-01-31. Nothing was changed."
            )
        raise SchemaError(words, name=column.name, side=side) from None
