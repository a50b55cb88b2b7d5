"""Numbers as text: which text is a number in a column's form, and which number that is.

Each cell is read alone: how many other cells are numbers, and how those are written, is not asked.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.schema.column import is_whole
from core.schema.form import Form
from core.schema.magnitudes import LARGEST

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Series: TypeAlias = "pd.Series[Any]"

FLAGS = ("bool", "boolean")
EXACT = 2**53  # whole numbers below it are the same as floats
_SPACES = " \u00a0\u202f"
_GAP = f"[{_SPACES}]?"
_DIGITS = re.compile("[+-]?[0-9]+")
_WORDS = pa.array(["false", "true"], pa.large_string())
_VALUES = pa.array(["0", "1"], pa.large_string())


def plain_numbers(text: pa.Array, form: Form, *, flags: bool = False) -> pa.Array:
    """Trimmed text as numbers without unit and groups and with a decimal point; null for none.

    A unit may be left out, with its space or without, and a sign may stand on either side of it.
    Digits are grouped by three or not at all; where a comma is the decimal mark and no other is
    declared, points group them.

    Args:
      flags: whether True and False are 1 and 0, as in columns of flags; else they are no numbers.
    """
    number = pc.match_substring_regex(text, _pattern(form))
    plain = pc.if_else(number, text, pa.scalar(None, text.type))
    prefix, suffix = form.prefix.strip(_SPACES), form.suffix.strip(_SPACES)
    spaced = bool(prefix or suffix) or (form.thousands != "" and form.thousands in _SPACES)
    for mark in (prefix, suffix, _grouping(form), *(_SPACES if spaced else "")):
        plain = pc.replace_substring(plain, mark, "") if mark else plain
    if form.decimal == ",":
        plain = pc.replace_substring(plain, ",", ".")
    if not flags:
        return plain
    others = pc.fill_null(pc.invert(number), False)
    words = pc.index_in(pc.utf8_lower(text.filter(others)), value_set=_WORDS)
    return pc.replace_with_mask(plain, others, _VALUES.take(words))


def of_flags(dtype: str) -> bool:
    """Whether a dtype is that of True and False."""
    return dtype.lower() in FLAGS


def number_values(plain: pa.Array) -> Floats:
    """Plain numbers as float64 [k]; NaN where there is none or it is beyond ±1e150."""
    values = np.asarray(plain.cast(pa.float64()).fill_null(np.nan), dtype=np.float64)
    return np.where(np.abs(values) <= LARGEST, values, np.nan)


def numbers_as(plain: pa.Array, dtype: str) -> Series:
    """Plain numbers in a dtype or its nullable twin, rounded, clipped; digits alone are exact."""
    floats = number_values(plain)
    if is_whole(dtype):
        return _with_gaps(_whole(plain, floats, dtype)[0], np.isnan(floats), dtype)
    return values_as(pd.Series(floats), dtype)


def exact_as(plain: pa.Array, dtype: str) -> Series:
    """The same, absent where a number would have to be rounded or clipped to the dtype."""
    floats = number_values(plain)
    if is_whole(dtype):
        whole, exact = _whole(plain, floats, dtype)
        return _with_gaps(whole, ~exact, dtype)
    if of_flags(dtype):
        floats = np.where((floats == 0.0) | (floats == 1.0), floats, np.nan)
    return values_as(pd.Series(floats), dtype)


def values_as(values: Series, dtype: str) -> Series:
    """Numbers within ±1e150 or flags in a dtype of either, rounded and clipped to it."""
    absent = values.isna().to_numpy()
    if is_whole(dtype):
        if not pd.api.types.is_integer_dtype(values.dtype):
            near = _nearest(values.to_numpy(dtype=np.float64, na_value=0.0), dtype)
            return _with_gaps(near, absent, dtype)
        exact: Any = np.dtype(str(values.dtype).lower())
        own, bounds = np.iinfo(exact), np.iinfo(dtype.lower())
        low, high = max(own.min, bounds.min), min(own.max, bounds.max)
        return _with_gaps(np.clip(values.to_numpy(exact, na_value=0), low, high), absent, dtype)
    floats = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if dtype.lower() in FLAGS:
        return _with_gaps(floats >= 0.5, absent, dtype)
    with np.errstate(over="ignore"):
        series = pd.Series(floats).astype(pd.api.types.pandas_dtype(dtype))
    return series.mask(np.isinf(series.to_numpy(dtype=np.float64, na_value=np.nan)))


def _whole(plain: pa.Array, floats: Floats, dtype: str) -> tuple[NDArray[Any], Mask]:
    """Plain numbers rounded and clipped, 0 where there is none; and which are exactly that."""
    whole = _nearest(np.nan_to_num(floats), dtype)
    exact = whole.astype(np.float64) == floats
    bounds = np.iinfo(whole.dtype)
    for index in np.flatnonzero(np.abs(floats) >= EXACT):
        digits = plain[index].as_py()
        exact[index] = False
        if _DIGITS.fullmatch(digits):
            number = int(digits)
            whole[index] = min(max(number, bounds.min), bounds.max)
            exact[index] = int(whole[index]) == number
    return whole, exact


def _nearest(floats: Floats, dtype: str) -> NDArray[Any]:
    bounds = np.iinfo(dtype.lower())
    # 2⁶³ as a float is one past the largest int64, so the upper end steps down to the next float
    top = float(bounds.max) if bounds.bits < 64 else np.nextafter(float(bounds.max), 0)
    return np.clip(np.rint(floats), float(bounds.min), top).astype(bounds.dtype)


def _with_gaps(values: NDArray[Any], absent: Mask, dtype: str) -> Series:
    if dtype.lower() in FLAGS:
        flags = values.astype(np.bool_)
        if not absent.any() and dtype == "bool":
            return pd.Series(flags)
        return pd.Series(pd.arrays.BooleanArray(flags, absent))
    whole = values.astype(np.iinfo(dtype.lower()).dtype)
    if not absent.any() and dtype == dtype.lower():
        return pd.Series(whole)
    return pd.Series(pd.arrays.IntegerArray(whole, absent))


def _grouping(form: Form) -> str:
    return form.thousands or ("." if form.decimal == "," else "")


def _pattern(form: Form) -> str:
    r"""Of all spellings of a number; to arrow \d is one of the ten digits and nothing else."""
    group, point = re.escape(_grouping(form)), re.escape(form.decimal)
    whole = rf"(?:\d+|\d{{1,3}}(?:{group}\d{{3}})+)" if group else r"\d+"
    digits = rf"(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
    before, after = form.prefix.strip(_SPACES), form.suffix.strip(_SPACES)
    sign = "[+-]?"
    if before:
        unit = f"{re.escape(before)}{_GAP}"
        sign = f"(?:[+-]?(?:{unit})?|{unit}[+-])"
    unit = f"(?:{_GAP}{re.escape(after)})?" if after else ""
    return f"^{sign}{digits}{unit}$"
