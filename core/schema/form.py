"""Form: how a column's cells are written in the file, beside what they mean.

A form is public: it holds no value of any row. It is recognised when a file is read, kept in the
schema, and used when synthetic rows are written, so that what reads the original reads them too.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Literal, Self, TypeAlias, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from core.message import ReportedError, to_say

Delimiter: TypeAlias = Literal[",", ";", "\t", "|"]
MOST_CODES = 16  # of a column, for "missing"
DELIMITERS: tuple[Delimiter, ...] = get_args(Delimiter)
GROUP_MARKS = (",", ".", "'", "’", " ", "\u00a0", "\u202f")
_SPACE = "[ \u00a0\u202f]?"
_CODES = (
    "EUR|USD|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|TRY|RUB|UAH|ILS|AED|SAR|INR|IDR|KRW|"
    "SGD|HKD|TWD|THB|VND|PHP|MYR|AUD|NZD|CAD|MXN|BRL|ARS|CLP|COP|ZAR|NGN|EGP"
)
UNIT = rf"(?:[$€£¥₹₽₩₺₪฿₫₴₦₱₡₲₵¢%‰]|{_CODES}|US\$|R\$|kr|zł)"  # of money or a share of a hundred
_BEFORE, _AFTER = re.compile(f"{UNIT}{_SPACE}"), re.compile(f"{_SPACE}{UNIT}")
# What spreadsheets run (OWASP "CSV injection"); those of East Asia take the wide signs too.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_INERT = re.compile(r"-+|[+-]?\d+([.,]\d+)?")


class Form(BaseModel):
    """How one column is written.

    Attributes:
      absent: a cell without a value, such as "", "?" or "N/A".
      codes: further spellings of "no value", such as "-99". In numbers and dates each is a state of
        its own, learned and written as such; in lists each is a label.
      prefix, suffix: unit before or after every number, with its space: "$", " €", "%".
      inner_sign: whether a sign stands after the prefix ($-5) and not before it (-$5).
      decimal_places: of every number, and digits of a second's fraction; None for as many as
        needed.
      trimmed: whether whole numbers have no decimals where others have some: 22, 0.5.
      offset: of times with an offset, as written: "+02:00", "-0500" or "Z".
      unpadded: directives of a date format whose numbers have no leading zero, such as "dm".
      arrow: type of a Parquet column where its dtype does not tell it, such as "date32[day]".
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    absent: str = Field(default="", max_length=64)
    codes: tuple[str, ...] = Field(default=(), max_length=MOST_CODES)
    decimal: Literal[".", ","] = "."
    thousands: str = ""
    prefix: str = ""
    suffix: str = ""
    inner_sign: bool = False
    decimal_places: int | None = Field(default=None, ge=0, le=12)
    trimmed: bool = False
    offset: str = Field(default="", pattern=r"^([+-]\d{2}:?\d{2}|Z)?$")
    unpadded: str = Field(default="", pattern="^[dmHI]*$")
    arrow: str = Field(default="", max_length=64)

    @model_serializer(mode="wrap")
    def _write(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        stored: dict[str, Any] = handler(self)
        plain = {name: field.default for name, field in type(self).model_fields.items()}
        return {name: value for name, value in stored.items() if value != plain[name]}

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.thousands and self.thousands not in GROUP_MARKS:
            raise ReportedError(
                "Digits must be grouped by a comma, a dot, an apostrophe or a space."
            )
        if self.thousands == self.decimal:
            raise ReportedError("Decimals and thousands must have different marks.")
        if self.prefix and not _BEFORE.fullmatch(self.prefix):
            raise ReportedError("The unit before a number must be a currency or a percent sign.")
        if self.suffix and not _AFTER.fullmatch(self.suffix):
            raise ReportedError("The unit after a number must be a currency or a percent sign.")
        if len(set(self.codes)) < len(self.codes) or "" in self.codes:
            raise ReportedError("Codes for missing values must not be empty or repeated.")
        for word in (self.absent, *self.codes):
            if word != word.strip() or any(letter in word for letter in "\r\n\t\0"):
                raise ReportedError(
                    "A code for a missing value is one line without spaces around it."
                )
            if len(word) > 64:
                raise ReportedError("A code for a missing value has at most 64 characters.")
            if word.startswith(FORMULA_STARTS) and not _INERT.fullmatch(word):
                raise ReportedError(
                    to_say(
                        "A spreadsheet would run '{code}' as a formula, so it cannot stand for a "
                        "missing value."
                    ),
                    code=word,
                )
        return self

    @property
    def spells_numbers(self) -> bool:
        """Whether numbers are written in another way than plain digits with a decimal point."""
        marks = (self.thousands, self.prefix, self.suffix, self.decimal != ".")
        return any(marks) or self.decimal_places is not None or self.trimmed

    def number(self, label: str) -> str:
        """A number's plain spelling in this form; what is no number stays as it is.

        >>> Form(decimal=",", thousands=".", suffix=" €", decimal_places=2).number("-1234.5")
        '-1.234,50 €'
        >>> Form(prefix="$", thousands=",").number("1e6"), Form(suffix="%").number("n/a")
        ('$1,000,000', 'n/a')
        >>> Form(trimmed=True).number("22.0"), Form(trimmed=True).number("0.5")
        ('22', '0.5')
        """
        try:
            value = Decimal(label)
        except ArithmeticError:
            return label
        if not value.is_finite():
            return label
        places = "" if self.decimal_places is None else f".{self.decimal_places}"
        if self.trimmed and value == value.to_integral_value():
            places = ".0"
        digits = f"{value.copy_abs():{',' if self.thousands else ''}{places}f}"
        sign = "-" if value.is_signed() and digits.strip("0.,") else ""
        if self.decimal != "." or self.thousands not in ("", ","):
            whole, point, rest = digits.partition(".")
            digits = whole.replace(",", self.thousands) + point.replace(".", self.decimal) + rest
        if self.inner_sign:
            return f"{self.prefix}{sign}{digits}{self.suffix}"
        return f"{sign}{self.prefix}{digits}{self.suffix}"


class FileForm(BaseModel):
    """How a file is written; `spaced` when a space may stand between a delimiter and a quote."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    delimiter: Delimiter = ","
    encoding: str = Field(default="utf-8", pattern="^[a-z0-9_-]{1,32}$")
    spaced: bool = False
    columns: dict[str, Form] = Field(default_factory=dict)
