"""Values to labels or numbers and back: the only place that knows how a dtype is written.

Two pairs of exact inverses: `to_labels` / `from_labels` for listed kinds and all that must become
text, `to_numbers` / `from_numbers` for numeric kinds, dates included. Absent values pass through
all four; a dtype that cannot hold one comes back as its nullable twin when there is one to hold.
"""

from __future__ import annotations

import re
from os.path import commonprefix
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.types import pandas_dtype

from core.schema.column import Column, Kind, is_whole, nullable_dtype
from core.schema.date_text import date_text, parse_dates
from core.schema.form import Form
from core.schema.magnitudes import LARGEST
from core.schema.number_text import number_values, of_flags, plain_numbers, values_as

Numbers: TypeAlias = npt.NDArray[np.float64]
Series: TypeAlias = "pd.Series[Any]"

TEXT = ("str", "object", "category", "string")
REST = "…"  # ends the beginning of a code in a list
MAX_DECIMALS = 12  # steps finer than this are treated as continuous
SECOND = 1_000_000  # microseconds; dates travel as datetime64[us]


def dtype_of(series: Series) -> str:
    """The dtype for `Column.dtype`: of categories their own, of objects text but for bools, ints.

    >>> dtype_of(pd.Series(pd.Categorical([1, 2]))), dtype_of(pd.Series(["a"], dtype=object))
    ('int64', 'str')
    """
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return dtype_of(pd.Series(dtype.categories))
    if pd.api.types.is_object_dtype(dtype):
        inferred = pd.api.types.infer_dtype(series, skipna=True)
        return {"boolean": "boolean", "integer": "Int64"}.get(inferred, "str")
    if pd.api.types.is_string_dtype(dtype):
        return "str"
    return str(dtype)


def to_labels(series: Series) -> Series:
    """Text labels, absent where values are; floats in their shortest exact spelling."""
    if isinstance(series.dtype, pd.StringDtype):
        return series.astype("str")
    codes, values = _distinct(series)
    labels = np.empty(len(values) + 1, dtype=object)
    labels[:-1] = _spell(values)
    labels[-1] = None  # factorize marks absent values with code -1
    return pd.Series(labels[codes], index=series.index, name=series.name, dtype="str")


def code_levels(column: Column) -> tuple[int, ...]:
    """Lengths of the beginnings of codes that mean something, ascending; often none.

    A list may hold a beginning and `REST`, for all codes that begin so and are not listed.

    >>> code_levels(Column(name="icd", kind=Kind.CATEGORY, pattern="@|##|.#"))
    (1, 3)
    """
    parts = (column.pattern or "").split("|")[:-1] if column.kind.listed else []
    return tuple(int(length) for length in np.cumsum([len(part) for part in parts]) if length)


def beginnings(column: Column) -> tuple[str, ...]:
    """The labels in a column's list that stand for all codes that begin so and are not listed."""
    listed = column.categories or () if code_levels(column) else ()
    return tuple(label for label in listed if label.endswith(REST))


def category_indices(cells: Series, column: Column) -> npt.NDArray[np.intp]:
    """Each cell's index in the column's list, intp [n]; -1 for what is not in it.

    That of a code which is not listed is its longest listed beginning's, see `code_levels`; that of
    a number, the nearest one's where the list was learned so.
    """
    listed, labels = pd.Index(column.categories or (), dtype="str"), to_labels(cells)
    found = listed.get_indexer(pd.Index(labels))
    for length in reversed(code_levels(column)):
        unknown = np.flatnonzero(found < 0)
        found[unknown] = listed.get_indexer(pd.Index(labels.iloc[unknown].str[:length] + REST))
    learned = getattr(column, "learned", None)
    if learned is not None and learned.nearest:
        unknown = np.flatnonzero((found < 0) & labels.notna().to_numpy())
        found[unknown] = _nearest_listed(labels.iloc[unknown], listed)
    return found


def _nearest_listed(labels: Series, listed: pd.Index[Any]) -> npt.NDArray[np.intp]:
    """Indices in a list of the nearest numbers, the lower of two, intp [n]; -1 for no number."""
    of_list = _label_numbers(listed.to_series())[0]
    order = np.argsort(of_list)[: int(np.isfinite(of_list).sum())]  # NaN comes last
    if not len(order):
        return np.full(len(labels), -1, dtype=np.intp)
    middles = (of_list[order][1:] + of_list[order][:-1]) / 2
    values = _label_numbers(labels)[0]
    nearest = np.where(np.isnan(values), -1, order[np.searchsorted(middles, values)])
    return np.asarray(nearest, dtype=np.intp)


def listed_neighbours(labels: Series, column: Column) -> npt.NDArray[np.intp]:
    """Indices in the column's list of the label that each other one stands next to by alphabet.

    Of two, the one that begins alike for longer: rare codes join those of their kind.
    """
    listed = np.array(column.categories, dtype=str)
    order = np.argsort(listed)
    names, (each, back) = listed[order], np.unique(labels.to_numpy(dtype=str), return_inverse=True)
    at = np.searchsorted(names, each)
    before, after = np.maximum(at - 1, 0), np.minimum(at, len(names) - 1)
    alike_before, alike_after = (
        np.array([len(commonprefix(both)) for both in zip(each, names[side], strict=True)])
        for side in (before, after)
    )
    nearer = np.where(alike_after > alike_before, after, before)
    return np.asarray(order[nearer][back], dtype=np.intp)


def listed_labels(cells: Series, column: Column) -> Series:
    """Text labels as the column's list has them: beginnings of codes, `other` for placeholders.

    Other labels that are not listed stay as they are.
    """
    labels = to_labels(cells)
    if code_levels(column):
        found = category_indices(cells, column)
        listed = np.array([*(column.categories or ()), None], dtype=object)[found]
        labels = labels.mask(found >= 0, pd.Series(listed, index=labels.index, dtype="str"))
    if column.other:
        placeholder = labels.str.fullmatch(re.escape(f"{column.other} ") + r"\d+", na=False)
        labels = labels.mask(placeholder & ~labels.isin(column.categories or ()), column.other)
    return labels


def from_labels(labels: Series, column: Column) -> Series:
    """The inverse of `to_labels`, or text where a label is no value of the column's dtype."""
    labels = labels.astype("str")
    codes, distinct = pd.factorize(labels)
    values = _parse(pd.Series(distinct, dtype="str"), column.dtype)
    if values is None:
        return labels.rename(column.name)
    out = values.reindex(codes)  # code -1 is no index label, so it becomes absent
    out.index = labels.index
    return _fit(out, column.dtype).rename(column.name)


def to_numbers(series: Series, column: Column) -> Numbers:
    """Values of a numeric kind as floats.

    Returns:
      float64 [n]; NaN where the value is absent, one of the column's codes for that, beyond ±1e150
      or does not parse. Dates are seconds since 1970-01-01, in UTC when they carry a time zone;
      exact to the microsecond from 1834 to 2105 and to the second always.
    """
    numbers = _as_numbers(series, column) + 0.0  # which makes -0.0 a 0.0, as its label is
    return np.where(code_indices(series, column) < 0, numbers, np.nan) if column.codes else numbers


def _as_numbers(series: Series, column: Column) -> Numbers:
    if column.kind is Kind.DATETIME:
        return _seconds(series, column.date_format)
    if isinstance(series.dtype, pd.CategoricalDtype) or not pd.api.types.is_numeric_dtype(
        series.dtype
    ):
        return _label_numbers(series, flags=of_flags(column.dtype))[0]
    out = series.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.abs(out) <= LARGEST, out, np.nan)


def code_indices(series: Series, column: Column) -> npt.NDArray[np.int64]:
    """Which of the column's codes for "missing" each cell holds, int [n]; -1 for none."""
    found = np.full(len(series), -1, dtype=np.int64)
    if not column.codes:
        return found
    if pd.api.types.is_numeric_dtype(series.dtype):
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        numbers, codes, distinct = _label_numbers(series)
        known = pd.Index(column.codes).get_indexer(pd.Index(distinct))
        found = np.append(known, -1)[codes].astype(np.int64)
    for i, number in enumerate(_label_numbers(pd.Series(column.codes, dtype="str"))[0]):
        found[numbers == number] = i  # -99 and -99.0 are one code
    return found


def _label_numbers(
    series: Series, *, flags: bool = False
) -> tuple[Numbers, npt.NDArray[np.intp], npt.NDArray[np.object_]]:
    """Labels as numbers, NaN for none or one beyond ±1e150; their indices, -1 absent; labels."""
    codes, distinct = pd.factorize(to_labels(series))
    cells = pa.array(distinct, pa.large_string())
    if isinstance(cells, pa.ChunkedArray):  # as where there is none
        cells = cells.combine_chunks()
    text = pc.utf8_trim_whitespace(cells)
    numbers = number_values(plain_numbers(text, Form(), flags=flags))
    return np.append(numbers, np.nan)[codes], codes, np.asarray(distinct, dtype=object)


def is_absent(cells: Series, column: Column) -> npt.NDArray[np.bool_]:
    """Which cells have no value, bool [n]: empty ones, and those that hold a code for that."""
    empty = cells.isna().to_numpy()
    if column.kind.listed and column.form is not None and column.form.codes:
        return np.asarray(empty | to_labels(cells).isin(column.form.codes).to_numpy())
    return np.asarray(empty | (code_indices(cells, column) >= 0))


def with_codes(cells: Series, column: Column, indices: npt.NDArray[np.int64]) -> Series:
    """Cells with codes for "missing" at these indices, int [n]; -1 where a cell stays as it is."""
    if not (indices >= 0).any():
        return cells
    labels = to_labels(cells)
    codes = np.array([*column.codes, None], dtype=object)[indices]
    return from_labels(labels.mask(indices >= 0, pd.Series(codes, index=cells.index)), column)


def from_numbers(values: npt.ArrayLike, column: Column) -> Series:
    """The inverse of `to_numbers`: floats, NaN for absent, to the column's dtype, on its grid.

    Values snap to whole steps from `low` (none when `step` is 0), and to the last one within the
    bounds where these lie between two.
    """
    numbers = np.asarray(values, dtype=np.float64)
    origin = _origin(column)
    numbers = snap(numbers - origin, column.step)
    if origin:
        numbers = np.round(numbers + origin, MAX_DECIMALS)
    numbers = _inside(numbers, column, origin)
    if column.kind is Kind.DATETIME:
        return _from_seconds(numbers, column)
    if column.kind is Kind.INTEGER and column.dtype == "str":
        return pd.Series(numbers).astype("Int64").astype("str").rename(column.name)
    if column.dtype == "str":
        return to_labels(pd.Series(numbers)).rename(column.name)
    return _fit(pd.Series(numbers), column.dtype).rename(column.name)


def _origin(column: Column) -> float:
    """A point of the step grid: the low bound, or 0 where the bound is a multiple of the step."""
    if column.low is None or column.step <= 0:
        return 0.0
    low = np.array([column.low])
    close = np.isclose(snap(low, column.step), low, rtol=0.0, atol=1e-9 * column.step)
    return 0.0 if bool(close[0]) else column.low


def _inside(numbers: Numbers, column: Column, origin: float) -> Numbers:
    """Numbers that snapping led past a bound, at the last point of the grid before it."""
    if column.low is None or column.high is None:
        return numbers
    step = column.step
    whole = column.kind is Kind.INTEGER or is_whole(column.dtype)
    if whole and column.kind is not Kind.DATETIME and (step % 1.0 or origin % 1.0 or not step):
        numbers, step, origin = np.rint(numbers), 1.0, 0.0  # all that its type can hold
    if step <= 0:
        return numbers
    slack = 1e-9  # of a step: what rounding may have moved a bound by
    ends = (np.array([column.low, column.high]) - origin) / step
    first, last = np.ceil(ends[0] - slack), np.floor(ends[1] + slack)
    if not first <= last:  # no point of the grid is inside
        return numbers
    low, high = np.round(snap(np.array([first, last]) * step, step) + origin, MAX_DECIMALS)
    below, above = numbers < column.low - slack * step, numbers > column.high + slack * step
    return np.where(below, low, np.where(above, high, numbers))


def snap(values: Numbers, step: float) -> Numbers:
    """Nearest multiples of `step`, spelled as short decimals (0.3, not 0.30000000000000004).

    >>> snap(np.array([0.29, 7.0]), 0.1).tolist(), snap(np.array([7.4]), 5).tolist()
    ([0.3, 7.0], [5.0])
    """
    if step <= 0:
        return values
    for decimals in range(MAX_DECIMALS + 1):
        if round(step, decimals) == step:
            if step == 10.0**-decimals:
                return np.round(values, decimals)
            return np.round(np.rint(values / step) * step, decimals)
    return np.rint(values / step) * step


def _distinct(series: Series) -> tuple[npt.NDArray[np.intp], Any]:
    """Each cell's index among the distinct values, -1 where absent, and these.

    Equal values that are written in several ways (0.0 and -0.0; 1, 1.0 and True among objects) are
    told apart or made one: what one cell holds must not say how another one reads.
    """
    if pd.api.types.is_float_dtype(series.dtype):
        return pd.factorize(series + 0.0)  # which makes -0.0 a 0.0
    if isinstance(series.dtype, pd.CategoricalDtype):
        return pd.factorize(series.astype(object))
    codes, values = pd.factorize(series)
    if not pd.api.types.is_object_dtype(series.dtype) or (
        pd.api.types.infer_dtype(values) == "string"
    ):
        return codes, values
    there = series.notna().to_numpy()
    codes = np.full(len(series), -1, dtype=np.intp)
    codes[there], labels = pd.factorize(np.array(_spell(series[there]), dtype=object))
    return codes, labels


def _spell(values: Series | pd.Index | npt.NDArray[np.generic]) -> list[str]:
    return [v.isoformat(sep=" ") if isinstance(v, pd.Timestamp) else str(v) for v in values]


def _parse(labels: Series, dtype: str) -> Series | None:
    """Distinct labels as values of `dtype`; None when one of them is not such a value."""
    low = dtype.lower()
    if low in TEXT:
        return labels
    if low in ("bool", "boolean"):
        known = labels.isin(["True", "False"]).all()
        return (labels == "True").astype("boolean") if known else None
    try:
        if low.startswith("datetime64"):
            stamps = pd.to_datetime(labels, format="ISO8601", utc="," in dtype)
            known = stamps.dt.year.between(1, 9999).all()  # "-1" reads as a year
            return stamps.astype(pandas_dtype(dtype)) if known else None
        if low.startswith(("int", "uint")):  # through Python: exact beyond 2⁵³
            whole: Any = pandas_dtype(nullable_dtype(dtype))  # else absent ones make floats
            exact: Series = pd.Series([int(x) for x in labels], dtype=whole)
            return exact
        return pd.Series([float(x) for x in labels], dtype=low)
    except (ValueError, OverflowError, TypeError):  # of the last, a number beyond the dtype
        return None


def _fit(values: Series, dtype: str) -> Series:
    if dtype in TEXT:
        return values.astype("str")
    if dtype.startswith("datetime64"):
        return values.astype(pandas_dtype(dtype))
    return values_as(values, dtype).set_axis(values.index)


def _seconds(series: Series, date_format: str | None) -> Numbers:
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return _stamp_seconds(series)
    codes, distinct = pd.factorize(to_labels(series))  # a text column repeats its dates
    parsed = parse_dates(pd.Series(distinct, dtype="str"), date_format)
    return np.append(_stamp_seconds(parsed), np.nan)[codes]


def _stamp_seconds(series: Series) -> Numbers:
    if getattr(series.dtype, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    micros = series.astype("datetime64[us]")
    seconds = micros.to_numpy().astype(np.int64) / SECOND
    return np.where(micros.isna().to_numpy(), np.nan, seconds)


def _from_seconds(seconds: Numbers, column: Column) -> Series:
    absent = np.isnan(seconds)
    micros = np.where(absent, 0, np.rint(np.where(absent, 0, seconds) * SECOND)).astype(np.int64)
    stamps = pd.Series(micros.view("datetime64[us]"), name=column.name).mask(absent)
    if column.dtype.startswith("datetime64"):
        zone = getattr(pd.api.types.pandas_dtype(column.dtype), "tz", None)
        if zone is not None:
            stamps = stamps.dt.tz_localize("UTC").dt.tz_convert(zone)
        return stamps.astype(pandas_dtype(column.dtype))
    text = date_text(stamps, column.date_format or "%Y-%m-%d %H:%M:%S", column.form or Form())
    return from_labels(text, column)
