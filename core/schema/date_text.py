"""Dates as text and back: what a format and a column's form say of each, one cell at a time."""

from __future__ import annotations

from typing import Any, TypeAlias

import pandas as pd

from core.schema.form import Form

Series: TypeAlias = "pd.Series[Any]"

FIRST_DAY = pd.Timestamp("0001-01-01").as_unit("us")
LAST_DAY = pd.Timestamp("9999-12-31 23:59:59.999999").as_unit("us")
DAY = pd.Timedelta(days=1)
CLOCK_DAY = -2_208_988_800.0  # 1900-01-01 in seconds, on which times without a date lie
FRACTION = 6  # digits of a second's fraction that are kept
_FINER = rf"(\d\d[.,]\d{{{FRACTION}}})\d+"  # a fraction of more digits


def is_clock(date_format: str | None) -> bool:
    """Whether a format is of times of the day alone.

    >>> is_clock("%H:%M"), is_clock("%d/%m/%y %H:%M"), is_clock(None)
    (True, False, False)
    """
    dated = ("%Y", "%y", "%m", "%b", "%B", "%d", "%j", "%x", "%c", "%s")
    return bool(date_format) and not any(part in str(date_format) for part in dated)


def parse_dates(labels: Series, date_format: str | None) -> Series:
    """Text as naive UTC datetime64[us] of the years 1 to 9999; NaT for others (format None: ISO).

    Times without a date are those of the first of 1900.

    Finer fractions are cut off before: one in nanoseconds would have pandas count all in them, and
    there are none before 1677 and after 2262.
    """
    if date_format is None or "%f" in date_format:
        labels = labels.str.replace(_FINER, r"\1", regex=True)
    words = ~labels.str.contains("[0-9]", na=True).to_numpy()
    if words.any():  # pandas reads "today" as the day it is
        labels = labels.mask(words)
    form = date_format or "ISO8601"
    stamps = pd.to_datetime(labels.array, format=form, errors="coerce", utc=True)
    naive = stamps.tz_localize(None).to_numpy().astype("datetime64[us]")
    naive[(naive < FIRST_DAY) | (naive > LAST_DAY)] = "NaT"  # an offset may lead further
    return pd.Series(naive, index=labels.index, name=labels.name)


def stamps_as(stamps: Series, dtype: str) -> Series:
    """Moments (without a time zone: in UTC) in a declared dtype of dates, with its zone and unit.

    Within a day of the ends of the years 1 and 9999 they are absent where there is a time zone,
    beyond which they may lie; where nanoseconds do not reach they stay in microseconds.
    """
    if getattr(stamps.dtype, "tz", None) is not None:
        stamps = stamps.dt.tz_convert("UTC").dt.tz_localize(None)
    stamps, target = stamps.astype("datetime64[us]"), pd.api.types.pandas_dtype(dtype)
    zone = getattr(target, "tz", None)
    if zone is not None:
        near = stamps.between(FIRST_DAY + DAY, LAST_DAY - DAY)
        stamps = stamps.where(near).dt.tz_localize("UTC").dt.tz_convert(zone)
    naive = stamps.dt.tz_localize(None)
    far = naive.notna() & ~naive.between(pd.Timestamp.min, pd.Timestamp.max)
    return stamps if "[ns" in dtype and far.any() else stamps.astype(target)


def offset_seconds(offset: str) -> int:
    """By how much clocks with an offset are ahead of UTC, in seconds.

    >>> offset_seconds("-0530"), offset_seconds("+02:00"), offset_seconds("Z")
    (-19800, 7200, 0)
    """
    digits = offset.strip("+-Z").replace(":", "").ljust(4, "0")
    return (-1 if offset.startswith("-") else 1) * (int(digits[:2]) * 60 + int(digits[2:])) * 60


def date_text(stamps: Series, date_format: str, form: Form) -> Series:
    """Naive datetime64[us] as text, with the offset, fraction and padding that the form tells."""
    if "%z" in date_format:
        offset = form.offset or "+0000"
        local = stamps + pd.Timedelta(seconds=offset_seconds(offset))
        if local.dropna().between(FIRST_DAY, LAST_DAY).all():
            stamps, date_format = local, date_format.replace("%z", offset)
        else:  # an offset leads past the last year that can be written: UTC throughout
            date_format = date_format.replace("%z", "+00:00" if ":" in offset else "+0000")
    for directive in form.unpadded:  # of the C library, not of every system
        date_format = date_format.replace(f"%{directive}", f"%-{directive}")
    text = stamps.dt.strftime(date_format).astype("str")
    if (
        "%f" in date_format
        and form.decimal_places is not None
        and 0 < form.decimal_places < FRACTION
    ):
        text = text.str.replace(rf"(\.\d{{{form.decimal_places}}})\d+", r"\1", regex=True)
    return text
