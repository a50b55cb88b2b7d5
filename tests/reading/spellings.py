"""Cells as people and programs write them: a grammar of spellings, and columns to read them by."""

from __future__ import annotations

import string
from typing import Any

from hypothesis import strategies as st

from core.reading.cells import MISSING_MARKERS
from core.schema.column import Kind
from core.schema.form import Form
from core.schema.schema import DomainColumn

__all__ = ["CELLS", "COLUMNS", "DTYPES"]

BLANKS = ("", " ", "\u00a0", "\u202f", "\t")
UNITS = ("", "€", " €", "$", "US$", "%", " %", "kr", "zł", "CHF ", "£", "‰", "₹")
GROUPS = ("", ",", ".", "'", "’", " ", "\u00a0", "\u202f", "_")
MARKS = (".", ",", "٫", "·")
YES = (
    "True", "False", "true", "FALSE", "yes", "no", "ja", "nein", "oui", "non", "sí", "tak", "nie",
    "да", "нет", "はい", "いいえ", "是", "否", "evet", "hayır", "y", "n", "t", "f", "on", "off",
)  # fmt: skip
ODD = (
    "a\0b", "\0", "\ufffd", "😀", "שלום", "مرحبا", "\u202eabc", "\ufeff1", "=1+1", '"1"', "'1'",
    "0x1F", "1_000", "٣", "½", "Ⅷ", "1e", "e5", "+", "-", ".", ",", "--1", "+-1", "1-", "(1)", "∞",
    "inf", "-Infinity", "1e400", "1e-400", "1e150", "1.1e150", "now", "today", "NaT", "unknown",
    "255", "256", "-129", "2147483648", "9223372036854775807", "9223372036854775808", "-99",
    "-99,0",
)  # fmt: skip
LABELS = ("1", "2", "1.0", "2.5", "True", "NA", "Null", "ward a", "-99", "2020-01-31", "x y", "é")
CODES = ("-99", "N/A", "99", "?", "none", "9999-12-31", "1e3", "inf")
DTYPES = (
    "str", "int64", "Int64", "int8", "uint8", "UInt64", "float64", "float32", "Float64", "bool",
    "boolean", "datetime64[us]", "datetime64[ns]", "datetime64[s]", "datetime64[us, UTC]",
    "datetime64[us, Europe/Berlin]", "object", "category",
)  # fmt: skip
FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%Y%m%d", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S%z", "%H:%M")


@st.composite
def numbers(draw: st.DrawFn) -> str:
    """A number in some locale: signs, units, groups, zeros, dots, exponents."""
    digits = draw(
        st.one_of(
            st.integers(0, 120).map(str),
            st.integers(0, 10**9).map(str),
            st.text(string.digits, min_size=1, max_size=5),
            st.text(string.digits, min_size=15, max_size=20),
            st.text(string.digits, min_size=38, max_size=42),
        )
    )
    group = draw(st.sampled_from(GROUPS))
    if group and draw(st.booleans()):
        digits = f"{int(digits):,}".replace(",", group)
    fraction = draw(st.sampled_from(("", "0", "5", "50", "000", "10", "123456789")))
    mark = draw(st.sampled_from(("", *MARKS)))
    digits = draw(st.sampled_from((digits, digits, ""))) + mark + (fraction if mark else "")
    exponent = draw(st.sampled_from(("", "", "", "e3", "E-2", "e+0", "e0", "e22")))
    sign, inner = (draw(st.sampled_from(("", "", "-", "+", "−"))) for _ in range(2))
    before, after = (draw(st.sampled_from(UNITS)) for _ in range(2))
    if draw(st.booleans()):
        before = after = inner = ""
    return f"{sign}{before}{inner}{digits}{exponent}{after}"


@st.composite
def dates(draw: st.DrawFn) -> str:
    """A day or a moment, in some format, real or not, with a zone, a fraction or none."""
    years = (1, 1582, 1677, 1900, 1970, 2020, 2024, 2262, 9999)
    year, month, day = (
        draw(st.sampled_from(years)),
        draw(st.integers(1, 13)),
        draw(st.integers(1, 31)),
    )
    written = draw(
        st.sampled_from(
            (f"{year:04d}-{month:02d}-{day:02d}", f"{day:02d}.{month:02d}.{year:04d}",
             f"{month}/{day}/{year}", f"{year:04d}{month:02d}{day:02d}", f"{year:04d}")
        )
    )  # fmt: skip
    clock = st.sampled_from(("", "", " 00:00", "T10:00:00", " 23:59:59", " 24:00:00", " 10:61"))
    fraction = st.sampled_from(("", "", ".5", ",25", ".123456", ".123456789"))
    zone = st.sampled_from(("", "", "Z", "+02:00", "-0530", "+14:00", " UTC"))
    return written + draw(clock) + draw(fraction) + draw(zone)


SPELLED = st.one_of(
    numbers(),
    numbers(),
    dates(),
    st.sampled_from((*MISSING_MARKERS, *YES, *ODD, *LABELS, *CODES)),
    st.sampled_from(MISSING_MARKERS).map(str.upper),
    st.text(max_size=4),
)
CELLS = st.builds(
    "{}{}{}".format,
    st.sampled_from(("", "", "", *BLANKS)),
    SPELLED,
    st.sampled_from(("", "", "", *BLANKS)),
)


@st.composite
def forms(draw: st.DrawFn) -> Form | None:
    """How a column is written, or None."""
    if draw(st.booleans()):
        return None
    decimal = draw(st.sampled_from((".", ",")))
    groups = [mark for mark in ("", ",", ".", "'", " ", "\u202f") if mark != decimal]
    codes = draw(st.lists(st.sampled_from(CODES), max_size=3, unique=True))
    return Form(
        decimal=decimal,
        thousands=draw(st.sampled_from(groups)),
        prefix=draw(st.sampled_from(("", "", "$", "€ ", "CHF "))),
        suffix=draw(st.sampled_from(("", "", " €", "%", " kr"))),
        absent=draw(st.sampled_from(("", "", "?", "-1", "k. A."))),
        codes=tuple(codes),
    )


@st.composite
def columns(draw: st.DrawFn) -> DomainColumn:
    """A declaration, also one that nobody would propose."""
    kind, dtype = draw(st.sampled_from(tuple(Kind))), draw(st.sampled_from(DTYPES))
    declared: dict[str, Any] = {}
    if kind.listed:
        labels = draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=6, unique=True))
        declared = {"categories": tuple(labels), "other": draw(st.sampled_from((None, labels[0])))}
    elif kind is Kind.DATETIME:
        declared = {"low": -2e9, "high": 4e9, "step": draw(st.sampled_from((0.0, 1.0, 86400.0)))}
        if not dtype.startswith("datetime64"):
            declared["date_format"] = draw(st.sampled_from((None, *FORMATS)))
    elif kind.numeric:
        declared = {"low": -500.0, "high": 1e6, "step": draw(st.sampled_from((0.0, 0.01, 1.0)))}
        declared |= {"scale": draw(st.sampled_from(("linear", "log"))), "spikes": (0.0,)}
    return DomainColumn(
        name="cell", kind=kind, dtype=dtype, form=draw(forms()), missing=draw(st.booleans()),
        **declared,
    )  # fmt: skip


COLUMNS = columns()
