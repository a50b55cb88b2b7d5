"""Which explicit format a text column's dates are written in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from core.message import Message, plural
from core.proposing.rare import words_beside
from core.schema.date_text import date_text, parse_dates
from core.schema.form import Form

Series: TypeAlias = "pd.Series[Any]"

DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d")
DAY_FIRST = ("%d/%m/%Y", "%d-%m-%Y", "%d.%m.%Y", "%d/%m/%y", "%d-%m-%y", "%d.%m.%y")
MONTH_FIRST = ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y", "%m-%d-%y")
NAMED = ("%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y")
TIMES = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
ZONED = (
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S.%fZ",
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%d %H:%M:%S%z",
    "%Y-%m-%dT%H:%M:%S.%f%z",
    "%Y-%m-%d %H:%M:%S.%f%z",
)
MONTHS = ("%Y-%m", "%Y/%m", "%b %Y", "%m/%Y")
CLOCK = re.compile(r"\d{1,2}:\d\d[\d:.]*( ?[AaPp]\.?[Mm]\.?)?")
MOMENT = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?"
FIRST_LOOK = 50  # distinct values tried before a format is tried on all of them
FINER = r"\.\d{6}0*[1-9]"  # a fraction of a second that a microsecond does not end
MARKS = "-/.,:"  # of formats; no value that lacks one of them fits
NEARLY = 0.9  # share of dates above which the rest is worth a note


@dataclass(frozen=True)
class DateGuess:
    """A format that values follow, or None with a note where too many follow none.

    Attributes:
      words: what other cells of ten rows or more say, with their rows.
    """

    format: str | None
    note: str
    words: Mapping[str, int] = field(default_factory=dict)


def guess_date_format(counts: pd.Series[int]) -> DateGuess | None:
    """The format that labels follow, but for words and odd ones; None when this is no date column.

    A note comes where day and month could be swapped or an offset is lost, or alone, without a
    format, when at least 90 % of the first values are dates and too many others are not.

    Args:
      counts: rows by label.
    """
    labels = pd.Series(counts.index, dtype="str")
    head = labels.iloc[:FIRST_LOOK]
    if head.str.count(r"\d").mean() < 3 or head.str.len().max() > 40:
        return None
    nearly: str | None = None
    marks = {m for m in MARKS if head.str.contains(m, regex=False).mean() >= NEARLY}
    for candidate in _candidates(_usual(head)):
        if not marks.issuperset(set(candidate) & set(MARKS)):  # nor would nearly all values fit
            continue
        share = _share(head, candidate)
        if share == 1 and _share(labels, candidate) == 1:
            return DateGuess(candidate, _doubt(labels, candidate))
        nearly = candidate if nearly is None and share >= NEARLY else nearly
    if nearly is not None:
        fits = parse_dates(labels, nearly).notna().to_numpy()
        words = words_beside(labels.tolist(), counts.to_numpy().astype(np.int64), fits)
        if words is not None:
            return DateGuess(nearly, _doubt(labels[fits], nearly), words)
        return DateGuess(
            None,
            Message(
                "Nearly all values are dates, but some are not, so they were not read as dates."
            ),
        )
    return None


def format_of_digits(labels: Series) -> str | None:
    """The format of dates that are written as integers; None where these are other numbers.

    Of all numbers of six digits one in 27 is a date, so many that are no others are dates.

    >>> format_of_digits(pd.Series(["20240131", "20231231"]))
    '%Y%m%d'
    """
    for digits, date_format, fewest in ((8, "%Y%m%d", 1), (6, "%y%m%d", FIRST_LOOK)):
        if len(labels) >= fewest and labels.str.fullmatch(rf"[1-9]\d{{{digits - 1}}}").all():
            usual = digits == 6 or labels.between("19000101", "21001231").all()
            if usual and _share(labels, date_format) == 1:
                return date_format
    return None


def is_iso(labels: Series) -> bool:
    """Whether values are dates in ISO's order, some with a time or a fraction and some without."""
    times, fractions = labels.str.contains(":"), labels.str.contains(".", regex=False)
    if times.nunique() + fractions.nunique() == 2 or not labels.str.fullmatch(MOMENT).all():
        return False
    return bool(parse_dates(labels, None).notna().all())


def date_form(labels: Series, date_format: str) -> Form | None:
    """How dates of a format are written, beyond what it says: offset, fraction, leading zeros."""
    form = Form(offset=_offset(labels) if "%z" in date_format else "")
    if "%f" in date_format:
        digits = labels.str.extract(r"\.(\d+)")[0].str.len().unique()
        form = form.model_copy(
            update={"decimal_places": int(digits[0]) if len(digits) == 1 else None}
        )
    stamps = parse_dates(labels, date_format)
    written = {}
    for directives in ("", "dm", "dmHI", "HI"):
        trial = form.model_copy(update={"unpadded": directives})
        written[directives] = (date_text(stamps, date_format, trial) == labels).sum()
    best = form.model_copy(update={"unpadded": max(written, key=lambda one: written[one])})
    return None if best == Form() else best


def _offset(labels: Series) -> str:
    """The offset of all times; where they differ, that of UTC in the same spelling."""
    offsets = labels.str.extract(r"([+-]\d{2}:?\d{2}|Z)$")[0].unique()
    if len(offsets) == 1 and isinstance(offsets[0], str):
        return offsets[0]
    return "+00:00" if any(":" in str(one) for one in offsets) else "+0000"


def _usual(labels: Series) -> str:
    """One of those labels that have digits and marks where most have them."""
    shapes = labels.str.replace(r"\d", "0", regex=True)
    return str(labels[shapes == shapes.mode().iloc[0]].iloc[0])


def _candidates(sample: str) -> list[str]:
    dates = [*DAYS, *DAY_FIRST, *MONTH_FIRST, *NAMED]
    if CLOCK.fullmatch(sample):
        return [form for form in TIMES if "%f" not in form]
    if ":" not in sample:
        return [*dates, *MONTHS]
    joined = [f"{date}{gap}{time}" for gap in (" ", "T") for date in dates for time in TIMES]
    return [*joined, *ZONED] if "T" not in sample else [*ZONED, *joined]


def _share(labels: Series, date_format: str) -> float:
    return float(parse_dates(labels, date_format).notna().mean())


def _doubt(labels: Series, date_format: str) -> str:
    if "%f" in date_format and (finer := int(labels.str.contains(FINER).sum())):
        return plural(
            finer,
            "1 time is finer than a microsecond; it was cut to whole microseconds.",
            "{n:,} different times are finer than a microsecond; they were cut to whole "
            "microseconds.",
        )
    if "%z" in date_format:
        if _offset(labels) in set(labels.str.extract(r"([+-]\d{2}:?\d{2}|Z)$")[0]):
            return ""
        return Message("Times have different UTC offsets; they will be written in UTC.")
    if date_format.startswith("%d/%m") or date_format.startswith("%d-%m"):
        swapped = date_format.replace("%d", "%M_").replace("%m", "%d").replace("%M_", "%m")
        if swapped.startswith("%m") and _share(labels, swapped) == 1:
            return Message(
                "Day and month could be swapped; dates were read with the day first. If the month "
                "comes first, set “date_format” to {format} in a schema file.",
                format=swapped,
            )
    if "%y" in date_format:
        return Message("Years have two digits: 69 to 99 are read as 1969 to 1999.")
    return ""
