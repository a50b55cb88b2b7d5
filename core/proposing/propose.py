"""Proposing a schema from all rows, and picturing them under one; rows pass by in batches.

A first walk over the rows counts each column's different raw cells (`core.reading.tally`) and takes
nothing else. Of columns with more different cells than are kept, further walks count again what has
to be exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from core.message import Message, to_say
from core.proposing.code_patterns import are_codes, code_note
from core.proposing.kinds import infer_tally
from core.proposing.profile import PREVIEW_ROWS, ColumnProfile, Picture, Profile, preview
from core.proposing.proposed_form import code_word, written_columns
from core.proposing.rare import noted
from core.reading.cells import cells_counted
from core.reading.native_cells import MICROSECOND, native_values
from core.reading.raw_cells import is_written, raw_frame
from core.reading.tally import VALUES, Tally, TallyBuilder, count_cells
from core.reading.typed_cells import typed_column, typed_rows, typed_tally
from core.schema.column import Column, Kind, SchemaColumn, is_whole, nullable_dtype
from core.schema.form import FileForm, Form
from core.schema.labels import code_indices, dtype_of, to_numbers
from core.schema.magnitudes import LARGEST
from core.schema.round_bounds import date_bounds, date_step, number_step, round_bounds
from core.schema.schema import Schema

Reread: TypeAlias = "Callable[[Sequence[str]], Iterable[pa.Table]]"  # raw batches of some columns
# by column whose tally may lack them: least, greatest and step; whether some cells are absent
Extents: TypeAlias = dict[str, tuple[float, float, float, bool]]

FEWEST, CELLS = 1_000, 5_000_000  # different cells that are kept, of a column and of all together


class Counts:
    """Counts every column of batches; `scales` has all labels of ordered columns."""

    def __init__(self) -> None:
        self.n, self.head = 0, pa.table({})
        self.scales: dict[str, Sequence[Any]] = {}
        self._columns: dict[str, TallyBuilder] = {}

    @classmethod
    def of(cls, batches: Iterable[pa.Table]) -> Self:
        """Counts of batches, one at least."""
        counts = cls()
        for batch in batches:
            counts.add(batch)
        return counts

    def add(self, batch: pa.Table) -> None:
        """Count more rows; the columns are those of the first batch."""
        if not self._columns:
            self._begin(batch)
        if self.n < PREVIEW_ROWS:
            self.head = pa.concat_tables([self.head, batch.slice(0, PREVIEW_ROWS - self.n)])
        for name, column in self._columns.items():
            column.add(batch.column(name))
        self.n += batch.num_rows

    def tallies(self) -> dict[str, Tally]:
        """Each column's different raw cells."""
        return {name: column.tally() for name, column in self._columns.items()}

    def _begin(self, batch: pa.Table) -> None:
        most = max(FEWEST, min(VALUES, CELLS // max(1, batch.num_columns)))
        written = is_written(batch.schema)
        self._columns = {name: TallyBuilder(most, written=written) for name in batch.column_names}
        self.head = batch.schema.empty_table()
        for field in batch.schema:
            if pa.types.is_dictionary(field.type) and field.type.ordered:
                labels = batch.column(field.name).combine_chunks()
                self.scales[field.name] = labels.chunk(0).dictionary.to_pylist()


def infer_schema(frame: pd.DataFrame, form: FileForm | None = None) -> Schema:
    """Propose a schema of a frame in memory, n ≥ 1 rows; see `propose`."""
    rows = raw_frame(frame)
    return propose(Counts.of([rows]), lambda names: [rows.select(names)], form)[0]


def propose_table(
    counts: Counts, reread: Reread, form: FileForm | None = None, doubts: Sequence[str] = ()
) -> tuple[Schema, Profile]:
    """A proposed schema, and the table's picture under it; see `propose`."""
    schema, more, extents = propose(counts, reread, form)
    return schema, profile_rows(counts, schema, reread, (*doubts, *more), extents)


def propose(
    counts: Counts, reread: Reread, form: FileForm | None = None
) -> tuple[Schema, tuple[str, ...], Extents]:
    """A proposed schema, what was decided in doubt, a sentence each, and what was reread.

    Every modelled column has bounds or a list of categories proposed from the rows; columns without
    a single value are dropped. `reread` reads rows again, where not every value is kept.
    """
    form, tallies, columns = form or FileForm(), counts.tallies(), {}
    reading, doubts = written_columns({n: tally for n, tally in tallies.items() if tally.written})
    for name, tally in tallies.items():
        if not tally.written:
            reading[name], more = _native_column(name, tally, form.columns.get(name))
            doubts += more
    for name, tally in tallies.items():
        columns[name], unreadable = _proposed(tally, reading[name], counts.scales.get(name))
        if not code_word(reading[name].form):  # or that was weighed already
            columns[name] = _with_hint(tally, columns[name])
        if unreadable:
            doubts.append(_unreadable_doubt(name, tally, unreadable))
    extents = _extents(tallies, columns.values(), reread)
    columns |= {name: _within(columns[name], *found) for name, found in extents.items()}
    schema = Schema(
        columns=tuple(columns.values()),
        delimiter=form.delimiter,
        encoding=form.encoding,
        spaced=form.spaced,
    )
    return schema, tuple(doubts), extents


def propose_column(tally: Tally, name: str) -> SchemaColumn:
    """Propose one column of written cells."""
    return _proposed(tally, written_columns({name: tally})[0][name])[0]


def _native_column(name: str, tally: Tally, form: Form | None) -> tuple[SchemaColumn, list[str]]:
    cells, doubts = pa.array(tally.values), list[str]()
    kind, dtype = cells.type, dtype_of(native_values(cells))
    means = Kind.TEXT if dtype == "str" else Kind.BOOLEAN if dtype == "bool" else Kind.NUMBER
    if dtype.startswith("datetime64"):
        means, dtype = Kind.DATETIME, "datetime64[us]" if pa.types.is_date(kind) else dtype
    if pa.types.is_decimal(kind):
        words = to_say("'{name}' holds exact decimals; they were read as floating-point numbers.")
        doubts = [Message(words, name=name)]
    elif pa.types.is_duration(kind):
        doubts = [Message("'{name}' holds durations; they were read as seconds.", name=name)]
    elif pa.types.is_timestamp(kind) and kind.unit == "ns":
        cut = cells.cast(pa.int64()).to_numpy(zero_copy_only=False) % MICROSECOND != 0
        if cut.any():
            dtype = dtype.replace("[ns", "[us")
            doubts = [
                Message(
                    "'{name}' has times finer than a microsecond; they were cut to whole "
                    "microseconds ({cells}).",
                    name=name,
                    cells=cells_counted(int(tally.rows[cut].sum())),
                )
            ]
    return SchemaColumn(name=name, kind=means, dtype=dtype, form=form), doubts


def _unreadable_doubt(name: str, tally: Tally, cells: int) -> str:
    """A sentence on cells, so many, that are no numbers or dates, or too large to compute with."""
    values = pa.array(tally.values)
    what = Message("dates outside the years 1 to 9999")
    if not (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
        numbers = np.abs(pd.to_numeric(pd.Series(values.to_pylist(), dtype=object), "coerce"))
        large = numbers > LARGEST
        finite = (large & np.isfinite(numbers)).any()
        what = Message("numbers beyond 1e150") if finite else Message("infinite values")
        if not large.any():
            what = Message("values that do not read like most others")
    if not tally.exact:  # their number is an estimate
        return Message("'{name}' has {what}; they are treated as missing.", name=name, what=what)
    return Message(
        "'{name}' has {what}; they are treated as missing ({cells}).",
        name=name,
        what=what,
        cells=cells_counted(cells),
    )


def _proposed(
    tally: Tally, reading: SchemaColumn, scale: Sequence[Any] | None = None
) -> tuple[SchemaColumn, int]:
    """A column's proposal from raw cells, and how many of these could not be read."""
    typed, unreadable = typed_tally(tally, reading)
    if scale is not None:
        ordered = pd.Categorical(typed.values, categories=scale, ordered=True)
        typed = replace(typed, values=pd.Series(ordered))
    column = infer_tally(typed, reading.name, reading.form)
    form, word = reading.form or Form(), code_word(reading.form)
    labels = not column.kind.numeric or (word and are_codes(typed.numbers(column), column))
    words = typed.dtype == "str" or unreadable or word  # codes or infinities among the numbers
    if tally.written and reading.kind.numeric and words and labels:
        usual = [one for one in (form.absent, *form.codes) if one != word] or [""]
        form = Form(absent=usual[0], codes=tuple(usual[1:]))
        change = {"kind": Kind.TEXT, "dtype": "str", "form": form if form != Form() else None}
        return _proposed(tally, reading.model_copy(update=change))  # labels as they are written
    if word:
        column = column.model_copy(update={"note": noted(code_note(word), column.note)})
    if reading.categories and column.kind.surrogate:  # words such as NA that are values
        form = column.form or Form()
        form = form.model_copy(update={"codes": (*form.codes, *reading.categories)})
        column = column.model_copy(update={"form": form})
    elif reading.categories and typed_tally(tally, column)[0].absent:
        column = column.model_copy(update={"missing": True}).as_proposed()
    return column, unreadable


def _with_hint(tally: Tally, column: SchemaColumn) -> SchemaColumn:
    """The column with a note where words alone keep it from being one of numbers or dates."""
    digits = with_digits(tally) if tally.written and not column.kind.numeric else tally
    if not tally.known > digits.known > tally.known / 2:
        return column
    again = propose_column(digits, column.name)
    if not again.kind.numeric:
        return column
    note = Message(
        "Most values fit the kind {kind}, but some do not. Choose that kind to have the column "
        "learned; the other values then become missing.",
        kind=Message(again.kind.value),
    )
    before = "" if column.kind.surrogate else column.note
    return column.model_copy(update={"note": noted(note, before)})


def with_digits(tally: Tally) -> Tally:
    """The raw cells of text that hold a digit; all others are absent."""
    return tally.where(np.asarray(pc.match_substring_regex(pa.array(tally.values), r"\d")))


def bounded(tally: Tally, column: SchemaColumn, reread: Reread) -> SchemaColumn:
    """A column, proposed from a tally, with the bounds, step and type that all its rows need."""
    found = _extents({column.name: tally}, [column], reread)
    return _within(column, *found[column.name]) if found else column


def _extents(tallies: Mapping[str, Tally], columns: Iterable[Column], reread: Reread) -> Extents:
    """Of columns whose tally may lack them: least, greatest and step; whether some are absent."""
    unsure = [
        column
        for column in columns
        if column.kind.numeric
        and not tallies[column.name].exact
        and tallies[column.name].step is None
    ]
    found = {column.name: (np.inf, -np.inf, np.inf, False) for column in unsure}
    for batch in reread(list(found)) if found else ():
        for column in unsure:
            dates, exact = column.kind is Kind.DATETIME, column
            if not dates and is_whole(column.dtype):  # fractions rounded
                exact = column.model_copy(update={"dtype": "float64"})
            cells = typed_column(batch.column(column.name), exact, written=is_written(batch.schema))
            numbers = to_numbers(cells, exact)
            none = np.isnan(numbers)
            least, greatest, step, gaps = found[column.name]
            found[column.name] = (
                min(least, float(np.min(numbers, where=~none, initial=np.inf))),
                max(greatest, float(np.max(numbers, where=~none, initial=-np.inf))),
                min(step, (date_step if dates else number_step)(numbers[~none])),
                gaps or bool((none & (code_indices(cells, exact) < 0)).any()),
            )
    return found


def _within(
    column: SchemaColumn, least: float, greatest: float, step: float, gaps: bool
) -> SchemaColumn:
    change: dict[str, Any] = {"step": step, "missing": column.missing or gaps}
    dtype = column.dtype
    if column.kind is Kind.DATETIME:
        ends = date_bounds(least, greatest, step=step, dtype=dtype, date_format=column.date_format)
    else:
        if step < 1.0 and is_whole(dtype):
            dtype = "float64"
        ends = round_bounds(least, greatest, step=step, dtype=dtype)
        change["kind"] = Kind.INTEGER if step >= 1.0 else Kind.NUMBER
    change |= {"low": ends[0], "high": ends[1], "dtype": nullable_dtype(dtype) if gaps else dtype}
    return column.model_copy(update=change).as_proposed()


def pictures(
    tallies: Mapping[str, Tally],
    columns: Sequence[Column],
    reread: Reread,
    extents: Extents | None = None,
) -> tuple[ColumnProfile, ...]:
    """Each column's picture under its declaration."""
    extents = _extents(tallies, columns, reread) if extents is None else extents
    ends = {name: (least, greatest) for name, (least, greatest, *_) in extents.items()}
    drawn = {c.name: Picture(tallies[c.name], c, ends.get(c.name)) for c in columns}
    again = [name for name in drawn if not tallies[name].exact]
    for batch in reread(again) if again else ():
        for name in again:
            drawn[name].add(count_cells(batch.column(name), written=is_written(batch.schema)))
    return tuple(one.profile() for one in drawn.values())


def profile_rows(
    counts: Counts,
    schema: Schema,
    reread: Reread,
    reading: Sequence[str] = (),
    extents: Extents | None = None,
) -> Profile:
    """A table's picture under the schema by which its cells are read; see `pictures`."""
    return Profile(
        n=counts.n,
        columns=pictures(counts.tallies(), schema.columns, reread, extents),
        preview=preview(typed_rows(counts.head, schema.columns)),
        reading=tuple(reading),
    )
