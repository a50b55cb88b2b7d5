"""Cells of the grammar of spellings, and declarations of columns to read them by."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from core.reading.cells import MISSING_MARKERS
from core.schema.column import DomainColumn, Kind
from core.schema.form import Form
from tests.contract.spellings import spelling

__all__ = ["CELLS", "COLUMNS", "DTYPES"]

LIMITS = ("255", "256", "-129", "2147483648", "9223372036854775807", "9223372036854775808", "1e150")
LABELS = ("1", "2", "1.0", "2.5", "True", "NA", "Null", "ward a", "-99", "2020-01-31", "x y", "é")
CODES = ("-99", "N/A", "99", "?", "none", "9999-12-31", "1e3", "inf")
DTYPES = (
    "str", "int64", "Int64", "int8", "uint8", "UInt64", "float64", "float32", "Float64", "bool",
    "boolean", "datetime64[us]", "datetime64[ns]", "datetime64[s]", "datetime64[us, UTC]",
    "datetime64[us, Europe/Berlin]", "object", "category",
)  # fmt: skip
FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%Y%m%d", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S%z", "%H:%M")


CELLS = st.one_of(
    st.builds(spelling, st.randoms(use_true_random=False)),
    st.sampled_from((*MISSING_MARKERS, *LABELS, *CODES, *LIMITS)),
    st.text(max_size=4),
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
