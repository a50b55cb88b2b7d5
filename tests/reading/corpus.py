"""Column forms as files of the world have them, each with a reader of its own that owes us nothing.

A form is a list of cells, and one or more shapes: what a cell looks like, and how whoever made the
file reads it. Nothing here uses the product's own reader or writer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa

__all__ = ["CORPUS", "STORED", "ColumnForm", "Shape", "shapes_of"]

ROWS = 240
Reader = Callable[[str], object]


@dataclass(frozen=True)
class Shape:
    """One way in which a column's cells are written.

    Attributes:
      pattern: that the whole cell matches.
      read: the cell's meaning; raises ValueError for what the maker of the file could not read.
    """

    pattern: str
    read: Reader = str


@dataclass(frozen=True)
class ColumnForm:
    """A column as a file has it.

    Attributes:
      name: of the form.
      cells: ROWS of them, as text.
      shapes: each cell has one of them.
      exact: whether every cell must come back from the codec as it was; else only its shape,
        as with identifiers, which are made up.
    """

    name: str
    cells: tuple[str, ...]
    shapes: tuple[Shape, ...]
    exact: bool = True


def shapes_of(form: ColumnForm, cells: Sequence[str]) -> set[int]:
    """Which shapes the cells have; a cell that has none, or that does not read, raises."""
    seen = set()
    for cell in cells:
        at = next((i for i, s in enumerate(form.shapes) if re.fullmatch(s.pattern, cell)), None)
        if at is None:
            raise ValueError(f"{form.name}: a cell has none of the original's shapes")
        form.shapes[at].read(cell)
        seen.add(at)
    return seen


def _number(decimal: str = ".", thousands: str = "", *units: str) -> Reader:
    def read(cell: str) -> float:
        for unit in units:
            cell = cell.replace(unit, "")
        return float(cell.replace(thousands, "").replace(decimal, ".") if thousands else
                     cell.replace(decimal, "."))  # fmt: skip

    return read


def _date(form: str) -> Reader:
    return lambda cell: datetime.strptime(cell, form)


_random = random.Random(7)
_money = [round(_random.lognormvariate(6, 1.4), 2) for _ in range(ROWS)]
_whole = [int(x * 37) for x in _money]
_small = [round(_random.uniform(0, 40), 1) for _ in range(ROWS)]
_ages = [_random.randint(18, 90) for _ in range(ROWS)]
_moments = [datetime(2019, 1, 1, 8).timestamp() + _random.randint(0, 10**8) for _ in range(ROWS)]
_dates = [datetime.fromtimestamp(x) for x in _moments]


def _grouped(x: float, places: int, thousands: str, decimal: str) -> str:
    text = f"{x:,.{places}f}"
    return text.translate({ord(","): thousands, ord("."): decimal})


def _pick(words: Sequence[str]) -> list[str]:
    return [words[i % len(words)] for i in _random.sample(range(ROWS * 3), ROWS)]


def _with(cells: list[str], **gaps: int) -> list[str]:
    """The cells with markers in every k-th row."""
    markers = {"blank": "", "question": "?", "na": "N/A", "null": "null", "unknown": "-99"}
    out = list(cells)
    for at, (word, every) in enumerate(gaps.items()):
        for i in range(at, len(out), every):
            out[i] = markers[word]
    return out


BLANK, QUESTION, NA = Shape(""), Shape(r"\?"), Shape("N/A")
INTEGER = Shape(r"-?\d+", int)
PLAIN = Shape(r"-?\d+\.\d", float)


def _form(name: str, cells: Sequence[object], *shapes: Shape, exact: bool = True) -> ColumnForm:
    return ColumnForm(name, tuple(str(cell) for cell in cells), shapes, exact)


def _numbers() -> list[ColumnForm]:
    euro = "\u00a0€"
    group = r"-?\d{1,3}"
    return [
        _form("integers", _ages, INTEGER),
        _form("one decimal", _small, PLAIN),
        _form("decimals where needed", [f"{x:g}" for x in [*_small[1:], 22]],
              Shape(r"\d+|\d+\.\d", float)),
        _form("two decimals", [f"{x:.2f}" for x in _small], Shape(r"\d+\.\d\d", float)),
        _form("decimal comma", [f"{x:.2f}".replace(".", ",") for x in _money],
              Shape(r"\d+,\d\d", _number(","))),
        _form("thousands and point", [f"{x:,.2f}" for x in _money],
              Shape(rf"{group}(,\d{{3}})*\.\d\d", _number(".", ","))),
        _form("thousands alone", [f"{x * 50:,d}" for x in _whole],
              Shape(rf"{group}(,\d{{3}})*", _number(".", ","))),
        _form("points and comma", [_grouped(x, 2, ".", ",") for x in _money],
              Shape(rf"{group}(\.\d{{3}})*,\d\d", _number(",", "."))),
        _form("spaced thousands", [_grouped(x, 0, "\u202f", ",") for x in _whole],
              Shape("\\d{1,3}(\u202f\\d{3})*", _number(",", "\u202f"))),
        _form("apostrophes", [_grouped(x, 2, "'", ".") for x in _money],
              Shape(r"\d{1,3}('\d{3})*\.\d\d", _number(".", "'"))),
        _form("percent", [f"{x}%" for x in _small], Shape(r"\d+\.\d%", _number(".", "", "%"))),
        _form("percent, comma, space", [f"{x} %".replace(".", ",") for x in _small],
              Shape(r"\d+,\d %", _number(",", "", " %"))),
        _form("dollars", [f"${x:,.2f}" for x in _money],
              Shape(r"\$\d{1,3}(,\d{3})*\.\d\d", _number(".", ",", "$"))),
        _form("signed dollars", [f"-${x:.2f}" if i % 3 else f"${x:.2f}"
                                 for i, x in enumerate(_small)],
              Shape(r"-?\$\d+\.\d\d", _number(".", "", "$"))),
        _form("euros behind", [_grouped(x, 2, ".", ",") + euro for x in _money],
              Shape(r"\d{1,3}(\.\d{3})*,\d\d\u00a0€", _number(",", ".", euro))),
        _form("beyond 2^53", [9_007_199_254_740_993 + 12_345 * i for i in range(ROWS)],
              Shape(r"\d+", int), exact=False),
    ]  # fmt: skip


def _gaps() -> list[ColumnForm]:
    ages = [str(age) for age in _ages]
    wards = _pick(["north", "south", "east"])
    days = [f"{d:%d.%m.%Y}" for d in _dates]
    day = Shape(r"\d\d\.\d\d\.\d{4}", _date("%d.%m.%Y"))
    return [
        _form("blank gaps", _with(ages, blank=7), BLANK, INTEGER),
        _form("question marks", _with(ages, question=7), QUESTION, INTEGER),
        _form("N/A in decimals", _with([str(x) for x in _small], na=9), NA, PLAIN),
        _form("? and N/A in numbers", _with(ages, question=7, na=11), QUESTION, NA, INTEGER),
        _form("blank and null in decimals", _with([f"{x:.2f}" for x in _small], blank=7, null=9),
              BLANK, Shape("null"), Shape(r"\d+\.\d\d", float)),
        _form("-99 in numbers", _with(ages, unknown=8), Shape("-99"), Shape(r"\d+", int)),
        _form("-99 and blank", _with(ages, unknown=8, blank=11), BLANK, Shape("-99"),
              Shape(r"\d+", int)),
        _form("? in labels", _with(wards, question=7), QUESTION, Shape("north|south|east")),
        _form("? and blank in labels", _with(wards, question=7, blank=9), BLANK, QUESTION,
              Shape("north|south|east")),
        _form("N/A in dates", _with(days, na=7), NA, day),
        _form("N/A and ? in dates", _with(days, na=7, question=9), NA, QUESTION, day),
        _form("N/A in decimal commas",
              _with([f"{x}".replace(".", ",") for x in _small], na=7), NA,
              Shape(r"\d+,\d", _number(","))),
        _form("one gap in 240", ["?", *ages[1:]], QUESTION, INTEGER),
    ]  # fmt: skip


def _words() -> list[ColumnForm]:
    def listed(name: str, *words: str) -> ColumnForm:
        return _form(name, _pick(words), Shape("|".join(map(re.escape, words))))

    return [
        listed("TRUE and FALSE", "TRUE", "FALSE"),
        listed("true and false", "true", "false"),
        listed("True and False", "True", "False"),
        listed("yes and no", "yes", "no"),
        listed("Y and N", "Y", "N"),
        listed("ja and nein", "ja", "nein"),
        listed("1 and 0", "1", "0"),
        listed("leading zeros, few", "007", "010", "123", "042"),
        listed("scripts", "Zürich", "東京", "Αθήνα", "القاهرة", "Кіровоград", "नई दिल्ली"),
        listed("commas and quotes", 'a, "b"', "c; d", "e|f", "g\th"),
        _form("leading zeros, many", [f"{i * 37 % 99_999:05d}" for i in range(ROWS)],
              Shape(r"\d{5}"), exact=False),
        _form("keys", [f"P-{i * 37:06d}" for i in range(ROWS)], Shape(r"P-\d{6}"), exact=False),
    ]  # fmt: skip


def _times() -> list[ColumnForm]:
    def dated(name: str, form: str, pattern: str) -> ColumnForm:
        return _form(name, [d.strftime(form) for d in _dates], Shape(pattern, _date(form)))

    unpadded = [f"{d.month}/{d.day}/{d.year}" for d in _dates]
    milli = [f"{d:%Y-%m-%d %H:%M:%S}.{i * 37 % 1000:03d}" for i, d in enumerate(_dates)]
    return [
        dated("ISO days", "%Y-%m-%d", r"\d{4}-\d\d-\d\d"),
        dated("dotted days", "%d.%m.%Y", r"\d\d\.\d\d\.\d{4}"),
        dated("American days", "%m/%d/%Y", r"\d\d/\d\d/\d{4}"),
        _form("days without zeros", unpadded, Shape(r"[1-9]\d?/[1-9]\d?/\d{4}", _date("%m/%d/%Y"))),
        dated("named months", "%d %b %Y", r"\d\d [A-Z][a-z]{2} \d{4}"),
        dated("days as numbers", "%Y%m%d", r"\d{8}"),
        dated("to the minute", "%d.%m.%Y %H:%M", r"\d\d\.\d\d\.\d{4} \d\d:\d\d"),
        dated("to the second", "%Y-%m-%dT%H:%M:%S", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"),
        _form("milliseconds", milli,
              Shape(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", _date("%Y-%m-%d %H:%M:%S.%f"))),
        _form("an offset", [f"{d:%Y-%m-%dT%H:%M:%S}+02:00" for d in _dates],
              Shape(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+02:00", _date("%Y-%m-%dT%H:%M:%S%z"))),
        dated("Zulu", "%Y-%m-%dT%H:%M:%SZ", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
        dated("before noon", "%m/%d/%Y %I:%M %p", r"\d\d/\d\d/\d{4} \d\d:\d\d [AP]M"),
        dated("months", "%Y-%m", r"\d{4}-\d\d"),
    ]  # fmt: skip


CORPUS = (*_numbers(), *_gaps(), *_words(), *_times())


def _stored() -> dict[str, pa.Array]:
    """Columns of Parquet files."""
    wards = _pick(["north", "south", "東京"])
    gap = [i % 9 == 0 for i in range(ROWS)]
    days = [d.date() for d in _dates]
    zoned = [d.replace(microsecond=0, tzinfo=UTC) for d in _dates]
    clock = [time(8 + i % 3, 15 * (i % 4)) for i in range(ROWS)]
    moments = [d.replace(microsecond=0) for d in _dates]

    def gapped(values: Sequence[object]) -> list[object]:
        return [None if absent else value for value, absent in zip(values, gap, strict=True)]

    return {
        "int8": pa.array(_ages, pa.int8()),
        "int16": pa.array(_ages, pa.int16()),
        "int32": pa.array(_whole, pa.int32()),
        "int64": pa.array(_whole, pa.int64()),
        "uint8": pa.array(_ages, pa.uint8()),
        "int32 with nulls": pa.array(gapped(_ages), pa.int32()),
        "float32": pa.array([i % 37 / 4 for i in range(ROWS)], pa.float32()),
        "float64": pa.array(_money, pa.float64()),
        "float64 with nulls": pa.array(gapped(_money), pa.float64()),
        "booleans": pa.array([i % 3 == 0 for i in range(ROWS)]),
        "booleans with nulls": pa.array(gapped([i % 2 == 0 for i in range(ROWS)]), pa.bool_()),
        "text": pa.array(wards, pa.string()),
        "dictionary": pa.array(wards).dictionary_encode(),
        "dictionary with nulls": pa.array(gapped(wards), pa.string()).dictionary_encode(),
        "date32": pa.array(days, pa.date32()),
        "date32 with nulls": pa.array(gapped(days), pa.date32()),
        "timestamp[ms]": pa.array(moments, pa.timestamp("ms")),
        "timestamp[us]": pa.array(moments, pa.timestamp("us")),
        "timestamp[ns]": pa.array(moments, pa.timestamp("ns")),
        "midnights": pa.array(days, pa.date32()).cast(pa.timestamp("us")),
        "timestamp in Berlin": pa.array(zoned, pa.timestamp("us", "Europe/Berlin")),
        "decimals": pa.array([Decimal(str(x)) for x in _money], pa.decimal128(12, 2)),
        "tight decimals": pa.array([Decimal(f"{x:.2f}") for x in _small], pa.decimal128(4, 2)),
        "times of day": pa.array(clock, pa.time32("ms")),
        "durations": pa.array([timedelta(seconds=60 * x) for x in _ages], pa.duration("s")),
        "text of dates": pa.array([d.isoformat() for d in days], pa.string()),
    }


STORED = _stored()
