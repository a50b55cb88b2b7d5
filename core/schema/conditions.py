"""Conditions: rows of chosen values, in words, checked against the public domain alone.

    readmitted=yes      one label; ward=general|surgery several of them
    age=40..60          from … to, both included; either end may be open: age=40.. or age=..60
    visited=2024-01-01..2024-06-30   dates likewise, whole days, by the clocks they are written in
    bmi=                missing

Shares of a column are written as its name, a colon and such conditions with their shares:
`sex:F=.5,M=.5` or `age:..39=.3,40..=.7`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.message import Message
from core.schema.column import DomainColumn, Kind, SchemaError
from core.schema.date_text import is_clock, offset_seconds, parse_dates
from core.schema.labels import is_absent, listed_labels, to_numbers
from core.schema.schema import Domain

NEAR = 1e-9  # relative: decimals differ in their last digit
DAY, MOMENT = 86_400.0, 1e-6  # in seconds
OFFSET = re.compile(r":\d\d.*?([+-]\d\d:?\d\d|Z)$")  # of a time, after its minutes
A_DAY = r"\d{4}-\d\d-\d\d"
SHARE = re.compile(r"(?P<value>.+?)=(?P<share>\d*\.?\d+(?:e-?\d+)?%?)\s*(?:,\s*|$)")
LISTED = 8  # labels that a refusal names


class ConditionError(SchemaError):
    """A condition that no row can keep, or hardly any; the message says what to change."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What one column's value must be: one of `labels`, or in [low, high] (dates in seconds)."""

    column: DomainColumn
    text: str
    labels: tuple[str, ...] | None = None
    low: float = -math.inf
    high: float = math.inf
    missing: bool = False

    def keeps(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Which of n rows keep it, bool [n]."""
        cells = frame[self.column.name]
        if self.missing:
            return is_absent(cells, self.column)
        if self.labels is not None:
            return np.asarray(listed_labels(cells, self.column).isin(self.labels))
        values = to_numbers(cells, self.column)
        dates = self.column.kind is Kind.DATETIME
        slack = MOMENT if dates else NEAR * np.maximum(np.abs(values), 1.0)
        return np.asarray((values >= self.low - slack) & (values <= self.high + slack))

    def meets(self, other: Condition) -> bool:
        """Whether one value of their column may keep both."""
        if self.missing or other.missing:
            return self.missing and other.missing
        if self.labels is not None and other.labels is not None:
            return bool(set(self.labels) & set(other.labels))
        return max(self.low, other.low) <= min(self.high, other.high)


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Shares of rows that a column's values shall have.

    `parts` are conditions that no value keeps two of, each with its share in [0, 1]; what is left
    of 1 goes to all other values, as they are drawn.
    """

    column: str
    text: str
    parts: tuple[tuple[Condition, float], ...]

    @property
    def rest(self) -> float:
        """Share of all other values, in [0, 1]."""
        return max(0.0, 1.0 - math.fsum(share for _, share in self.parts))


def parse_conditions(texts: Sequence[str], domain: Domain) -> tuple[Condition, ...]:
    """Conditions that rows are to keep, all of them."""
    conditions: list[Condition] = []
    for text in texts:
        name, value = _split(text, "=", domain)
        condition = _condition(_column(domain, name), value.strip(), text.strip())
        for earlier in conditions:
            if earlier.column.name == name and not earlier.meets(condition):
                raise ConditionError(
                    "No value keeps both '{first}' and '{second}'. Nothing was made. Leave one "
                    "of them out, or write several labels as a|b.",
                    first=earlier.text,
                    second=text,
                )
        conditions.append(condition)
    return tuple(conditions)


def parse_shares(text: str, domain: Domain) -> Shares:
    """Shares of one column's values.

    Raises:
      ConditionError: shares that cannot be read, overlap, lie outside [0, 1] or add up to more than
        1; or the column is hidden.
    """
    name, rest = _split(text, ":", domain)
    column = _column(domain, name)
    if any(name in group for group in domain.sensitive.values()):
        raise ConditionError(
            "The distribution of '{name}' is hidden, and its certificate holds for the shares "
            "that were tested. Nothing was made. Set shares of another column.",
            name=name,
        )
    parts: list[tuple[Condition, float]] = []
    at = 0
    while at < len(rest):
        match = SHARE.match(rest, at)
        if match is None:
            raise ConditionError(
                "'{text}' are no shares. Write them like {name}:A=.5,B=.5.", text=text, name=name
            )
        value, number = match["value"].strip(), match["share"]
        share = float(number.rstrip("%")) / (100.0 if number.endswith("%") else 1.0)
        condition = _condition(column, value, f"{name}={value}")
        if any(condition.meets(other) for other, _ in parts):
            raise ConditionError(
                "'{text}' names a value twice. Nothing was made. Name it once.", text=text
            )
        parts.append((condition, share))
        at = match.end()
    total = math.fsum(share for _, share in parts)
    if not parts or any(share > 1.0 for _, share in parts) or total > 1.0 + NEAR:
        raise ConditionError(
            "Shares of '{name}' must lie between 0 and 1 and add up to 1 at most, not "
            "{total:g}. Nothing was made.",
            name=name,
            total=total,
        )
    return Shares(column=name, text=text.strip(), parts=tuple(parts))


def _split(text: str, sign: str, domain: Domain) -> tuple[str, str]:
    """A column's name and what follows the sign; names may hold the sign themselves."""
    names = [column.name for column in domain.columns if text.startswith(f"{column.name}{sign}")]
    if names:
        name = max(names, key=len)
        return name, text[len(name) + len(sign) :]
    head, found, rest = text.partition(sign)
    if not found:
        raise ConditionError(
            "'{text}' is no condition. Write column=value, column=low..high or, for shares, "
            "column:value=share,value=share.",
            text=text,
        )
    return head.strip(), rest


def _column(domain: Domain, name: str) -> DomainColumn:
    column = next((one for one in domain.columns if one.name == name), None)
    if column is None:
        raise ConditionError("No column of the synthetic table is called '{name}'.", name=name)
    if not column.modelled:
        raise ConditionError(
            "Values of '{name}' are made up, so none can be chosen. Choose another column.",
            name=name,
        )
    return column


def _condition(column: DomainColumn, value: str, text: str) -> Condition:
    if not value:
        if not column.may_be_absent:
            raise ConditionError(
                "'{name}' is declared never missing, so no row keeps '{text}'.",
                name=column.name,
                text=text,
            )
        return Condition(column=column, text=text, missing=True)
    if column.kind.numeric:
        return _range(column, value, text)
    categories = column.categories or ()
    plain = {label.casefold(): label for label in categories}
    asked = [value] if value in categories else [part.strip() for part in value.split("|")]
    labels = tuple(one if one in categories else plain.get(one.casefold(), "") for one in asked)
    if not all(labels):
        listed, more = ", ".join(categories[:LISTED]), len(categories) - LISTED
        raise ConditionError(
            "'{value}' is no declared value of '{name}'. There are: {labels}.",
            value=asked[labels.index("")],
            name=column.name,
            labels=Message("{names} and {n:d} more", names=listed, n=more) if more > 0 else listed,
        )
    return Condition(column=column, text=text, labels=labels)


def _range(column: DomainColumn, value: str, text: str) -> Condition:
    first, dots, last = value.partition("..")
    low = _number(column, first, -math.inf, text)
    high = _number(column, last if dots else first, math.inf, text)
    if column.kind is Kind.DATETIME and re.fullmatch(A_DAY, (last if dots else first).strip()):
        high += DAY - 2 * MOMENT  # the whole day
    if low > high:
        raise ConditionError(
            "'{text}': the range ends before it begins. Write low..high.", text=text
        )
    bottom, top = column.low, column.high
    if bottom is None or top is None or low > top or high < bottom:
        raise ConditionError(
            "'{text}': declared values of '{name}' lie in {low} to {high}.",
            text=text,
            name=column.name,
            low=_written(column, bottom),
            high=_written(column, top),
        )
    return Condition(column=column, text=text, low=low, high=high)


def _number(column: DomainColumn, text: str, absent: float, whole: str) -> float:
    """As `to_numbers` gives it; an empty text is an open end."""
    text = text.strip()
    if not text:
        return absent
    dates = column.kind is Kind.DATETIME
    if dates:
        one = pd.Series([text], dtype="str")
        for form in (column.date_format, None):
            stamps = parse_dates(one, form)
            if not stamps.isna().any():
                seconds = float(stamps.astype("datetime64[us]").astype("int64").iloc[0]) / 1e6
                return seconds - (0 if OFFSET.search(text) else _ahead(column))
    else:
        with suppress(ValueError):
            if math.isfinite(number := float(text)):
                return number
    raise ConditionError(
        "'{whole}': '{text}' is not {what}. Write {name}=value, or a range as low..high.",
        whole=whole,
        text=text,
        what=_example(column),
        name=column.name,
    )


def _example(column: DomainColumn) -> Message:
    if is_clock(column.date_format):
        return Message("a time like 14:05")
    dates = column.kind is Kind.DATETIME
    return Message("a date like 2024-01-31") if dates else Message("a number like 1.5")


def _ahead(column: DomainColumn) -> int:
    """Seconds by which the clocks that a date column is written in are ahead of UTC."""
    return 0 if column.form is None else offset_seconds(column.form.offset)


def _written(column: DomainColumn, end: float | None) -> str:
    if end is None:
        return "?"
    if column.kind is Kind.DATETIME:
        moment = np.datetime64(int(end) + _ahead(column), "s")
        if is_clock(column.date_format):
            return str(moment).partition("T")[2]
        return str(moment).replace("T", " ").removesuffix(" 00:00:00")
    return f"{end:.15g}"
