"""Columns of every kind with ordinary cells, and what a steward may declare of them beforehand."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from core.schema.column import Column, Kind
from core.schema.form import Form

__all__ = ["COLUMNS", "KEY", "SpelledColumn", "declaration"]

KEY = "who"  # whose a row is
EPOCH = dt.datetime(1970, 1, 1)
FIRST, LAST = 1.5e9, 1.75e9  # seconds since 1970, of ordinary days


@dataclass(frozen=True)
class SpelledColumn:
    """A column of the tables.

    Attributes:
      name: of the column.
      cell: draws an ordinary cell, in a type of its own.
      text: that cell in a file of text.
      declarations: fields of `Column` but its name, several ways.
    """

    name: str
    cell: Callable[[Random], object]
    text: Callable[[object], str]
    declarations: tuple[dict[str, object], ...]


def _number(dtype: str, **fields: object) -> dict[str, object]:
    return {"kind": Kind.NUMBER, "dtype": dtype, "low": -10.0, "high": 5000.0, **fields}


def _whole(dtype: str, **fields: object) -> dict[str, object]:
    bounds = {"low": -5.0, "high": 120.0, "step": 1.0}
    return {"kind": Kind.INTEGER, "dtype": dtype, **bounds, **fields}


def _list(dtype: str, *labels: str, **fields: object) -> dict[str, object]:
    return {"kind": Kind.CATEGORY, "dtype": dtype, "categories": labels, **fields}


def _dates(dtype: str, date_format: str | None, **fields: object) -> dict[str, object]:
    bounds = {"low": FIRST, "high": LAST}
    return {"kind": Kind.DATETIME, "dtype": dtype, "date_format": date_format, **bounds, **fields}


def _day(random: Random) -> dt.datetime:
    return EPOCH + dt.timedelta(seconds=86_400 * random.randrange(17_400, 20_200))


def _moment(random: Random) -> dt.datetime:
    return _day(random) + dt.timedelta(seconds=random.randrange(86_400))


def _european(amount: object) -> str:
    return f"{amount:,.2f}".translate({ord(","): ".", ord("."): ","})


def _pick(*cells: object) -> Callable[[Random], object]:
    return lambda random: random.choice(cells)


def _money(random: Random) -> float:
    return random.randrange(100, 400_000) / 100


def _share(random: Random) -> float:
    return random.randrange(1000) / 10


PRODUCTS = ("1234567890123456", "9007199254740993", "9007199254740995")
CITIES = ("Zürich", "Genève", "Bern", "NA", "São Tomé")
MILLI = "%Y-%m-%d %H:%M:%S.%f"
DOLLARS = Form(prefix="$", thousands=",", decimal_places=2)
EUROS = Form(decimal=",", thousands=".", suffix=" €", decimal_places=2)
SHARES = Form(decimal=",", suffix=" %")

COLUMNS = (
    SpelledColumn(KEY, lambda random: random.randrange(100, 112), str,
        ({"kind": Kind.IDENTIFIER, "dtype": "int64"}, {"kind": Kind.IDENTIFIER, "dtype": "str"},
         {"kind": Kind.IDENTIFIER, "dtype": "float64"})),
    SpelledColumn("age", lambda random: random.randrange(0, 100), str,
        (_whole("int64"), _whole("int8"), _whole("Int64", missing=True), _whole("str"),
         _whole("float64", missing=True), _number("float64", spikes=(0.0,), missing=True),
         _list("int64", *map(str, range(100)), "-1", other="-1"), _whole("uint8", low=0.0),
         _list("str", *map(str, range(0, 100, 2)), "other", other="other", missing=True))),
    SpelledColumn("dose", lambda random: random.randrange(0, 4000) / 100, lambda x: f"{x:.2f}",
        (_number("float64", step=0.01), _number("float32", missing=True), _number("str"),
         _number("float64", scale="log", missing=True), _whole("int64"),
         _list("float64", *(str(i / 100) for i in range(0, 4000, 3)), missing=True))),
    SpelledColumn("dollars", _money, lambda x: f"${x:,.2f}",
        (_number("float64", form=DOLLARS), _number("float64", form=DOLLARS, missing=True),
         _number("int64", form=DOLLARS), _number("str", form=DOLLARS))),
    SpelledColumn("grouped", lambda random: random.randrange(1000, 99_999), lambda x: f"{x:,}",
        (_whole("int64", form=Form(thousands=","), high=1e5), _number("float64", high=1e5),
         _whole("Int64", form=Form(thousands=","), high=1e5, missing=True))),
    SpelledColumn("euros", _money, lambda x: f"{_european(x)} €",
        (_number("float64", form=EUROS), _number("float64", form=EUROS, missing=True))),
    SpelledColumn("share", _share, lambda x: f"{x} %".replace(".", ","),
        (_number("float64", form=SHARES), _number("float32", form=SHARES, missing=True))),
    SpelledColumn("bmi", _pick(-99.0, 17.5, 22.0, 31.25, 40.0), str,
        (_number("float64", form=Form(codes=("-99", "N/A")), missing=True),
         _number("float64", form=Form(codes=("-99.0",))),
         _whole("int64", form=Form(codes=("-99", "unknown"), absent="?"), missing=True))),
    SpelledColumn("city", _pick(*CITIES), str,
        (_list("str", *CITIES), _list("str", *CITIES[:3], "other", other="other", missing=True),
         _list("str", *CITIES[:4], form=Form(codes=("NA",), absent="?"), missing=True))),
    SpelledColumn("grade", _pick(1, 2, 3), str,
        (_list("int64", "1", "2", "3"), _list("str", "1", "2", "3"), _list("float64", "1.0", "2.0"),
         _list("Int64", "1", "2", "3", "9", other="9", missing=True),
         {**_list("int64", "3", "2", "1"), "kind": Kind.ORDERED}, _whole("int64"))),
    SpelledColumn("level", _pick(0.5, 1.0, 2.5), str,
        (_list("float64", "0.5", "1.0", "2.5"), _list("str", "0.5", "1.0", "2.5", "n.b."),
         _list("str", "0.5", "1", "2.5", missing=True), _number("float64"))),
    SpelledColumn("product", _pick(*PRODUCTS), str,
        (_list("int64", *PRODUCTS), _list("str", *PRODUCTS), _list("Int64", *PRODUCTS))),
    SpelledColumn("flag", _pick(True, False), str,
        ({**_list("bool", "False", "True"), "kind": Kind.BOOLEAN}, _list("str", "True", "False"),
         {**_list("boolean", "False", "True", missing=True), "kind": Kind.BOOLEAN},
         {**_list("int64", "0", "1"), "kind": Kind.BOOLEAN}, _number("float64", missing=True))),
    SpelledColumn("oui", _pick("oui", "non"), str,
        ({**_list("str", "non", "oui"), "kind": Kind.BOOLEAN}, _list("str", "oui", missing=True))),
    SpelledColumn("day", _day, lambda x: f"{x:%d.%m.%Y}",
        (_dates("str", "%d.%m.%Y", step=86_400.0), _dates("str", "%d.%m.%Y", missing=True))),
    SpelledColumn("compact", _day, lambda x: f"{x:%Y%m%d}",
        (_dates("str", "%Y%m%d", missing=True), _dates("int64", "%Y%m%d"),
         _number("float64", low=2e7, high=2.1e7))),
    SpelledColumn("stamp", _moment, lambda x: f"{x:%Y-%m-%dT%H:%M:%S}Z",
        (_dates("datetime64[us]", None), _dates("str", None, missing=True),
         _dates("datetime64[us, UTC]", None, missing=True), _dates("str", "%Y-%m-%dT%H:%M:%S%z"),
         _dates("datetime64[s]", None))),
    SpelledColumn("milli", _moment, lambda x: f"{x:%Y-%m-%d %H:%M:%S}.250",
        (_dates("str", MILLI, form=Form(decimal_places=3)),
         _dates("datetime64[us]", None, missing=True))),
)  # fmt: skip


def declaration(column: SpelledColumn, random: Random) -> Column:
    """One of the ways in which a column may be declared."""
    return Column.model_validate({"name": column.name, **random.choice(column.declarations)})
