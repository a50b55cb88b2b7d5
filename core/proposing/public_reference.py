"""Domains that anybody could name without the rows: by a column's name, kind and form alone.

Nothing here looks at values, so a domain that is taken from here says nothing of anyone. A wrong
domain is worse than none: most names have none.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from core.message import Message
from core.proposing.public_names import ANY_WORDS, BIRTH, BLOCKERS, FLAGS, PUBLIC_NAMES, PublicName
from core.schema.column import BOOLEAN_PAIRS, Column, Kind, is_whole
from core.schema.labels import TEXT

MOST_LABELS = 1_000
_FILE = Path(__file__).with_name("public_lists.json")  # made by docs/make_public_lists.py

_MONTHS = (
    "january,jan,januar,jänner",
    "february,feb,februar",
    "march,mar,märz,mär,mrz",
    "april,apr",
    "may,mai",
    "june,jun,juni",
    "july,jul,juli",
    "august,aug",
    "september,sep,sept",
    "october,oct,oktober,okt",
    "november,nov",
    "december,dec,dezember,dez",
)
_WEEKDAYS = (
    "monday,mon,montag,mo",
    "tuesday,tue,tues,dienstag,di",
    "wednesday,wed,mittwoch,mi",
    "thursday,thu,thur,thurs,donnerstag,do",
    "friday,fri,freitag,fr",
    "saturday,sat,samstag,sonnabend,sa",
    "sunday,sun,sonntag,so",
)
_ROMAN = "I,II,III,IV,V,VI,VII,VIII,IX,X,XI,XII,XIII,XIV,XV,XVI,XVII,XVIII,XIX,XX,XXI,XXII".split(
    ","
)


def _cased(rows: Iterable[str]) -> Iterable[str]:
    """Numbers from 1, with a leading zero too, and words in lower, title and upper case."""
    for i, row in enumerate(rows, start=1):
        yield from (f"{i}", f"{i:02d}")
        for word in row.split(","):
            yield from (word.capitalize(), word, word.upper())


def _blood_groups() -> Iterable[str]:
    for group in ("A", "B", "AB", "O", "0"):
        yield group
        for sign, word in (("+", "pos"), ("-", "neg")):
            yield from (f"{group}{sign}", f"{group} {sign}", f"{group} Rh{sign}")
            yield from (f"{group} {word}", f"{group} {word}itive", f"{group} {word}itiv")


@lru_cache(maxsize=1)
def _file() -> dict[str, list[list[str]]]:
    """Lists of entries, each in all its spellings."""
    lists: dict[str, list[list[str]]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return lists


def _spellings(name: str, first: int = 0, last: int | None = None) -> Iterable[str]:
    return (spelling for row in _file()[name] for spelling in row[first:last])


_LISTS: dict[str, Callable[[], Iterable[str]]] = {
    "months": lambda: _cased(_MONTHS),
    "weekdays": lambda: _cased(_WEEKDAYS),
    "quarters": lambda: (f"{mark}{i}" for i in range(1, 5) for mark in ("", "Q", "q")),
    "blood_groups": _blood_groups,
    "icd_chapters": lambda: (x for i, roman in enumerate(_ROMAN, 1) for x in (f"{i}", roman)),
    "us_states": lambda: _spellings("us_states"),
    "laender": lambda: _spellings("laender"),
    "countries": lambda: _spellings("countries"),
    "countries_2": lambda: _spellings("countries", 0, 1),
    "countries_3": lambda: _spellings("countries", 1, 2),
    "countries_codes": lambda: _spellings("countries", 0, 2),
    "languages": lambda: _spellings("languages"),
    "currencies": lambda: _spellings("currencies"),
}


@lru_cache(maxsize=len(_LISTS))
def public_labels(name: str) -> tuple[str, ...]:
    """A public list in every usual spelling, each once, fewer than `MOST_LABELS`.

    Spellings of one label stand together, and labels in their order where they have one.
    """
    return tuple(dict.fromkeys(_LISTS[name]()))


MOST_STEPS = 32  # numbers that are listed where few of them were taken as steps of a scale
FIRST_BIRTH, LAST_BIRTH = -2_208_988_800.0, 1_924_905_600.0  # 1900-01-01 and 2030-12-31
_CASES = re.compile(r"(?<=[a-zäöüß0-9])(?=[A-ZÄÖÜ])|(?<=[A-ZÄÖÜ])(?=[A-ZÄÖÜ][a-zäöüß])")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


@dataclass(frozen=True)
class PublicReference:
    """A domain that is public knowledge.

    Attributes:
      source: what it can be looked up in.
      low, high: inclusive bounds of numeric kinds, dates in seconds since 1970-01-01; else None.
      categories: labels of listed kinds, in order where there is one; None for numbers. Where a
        name leaves their spelling open, all usual ones.
    """

    source: Message
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] | None = None


def words_of(name: str) -> tuple[str, ...]:
    """The words of a column's name, in lower case, umlauts as two letters.

    >>> words_of("hours-per-week"), words_of("PatientAGE_2"), words_of("Körpergröße")
    (('hours', 'per', 'week'), ('patient', 'age', '2'), ('koerpergroesse',))
    """
    apart = _CASES.sub(" ", unicodedata.normalize("NFC", name))
    return tuple(_WORD.findall(apart.casefold().translate(_UMLAUTS)))


def public_reference(column: Column) -> PublicReference | None:
    """The domain that a column's name, kind and form make public; None where nothing does.

    Values of the rows play no part; a yes/no column keeps its pair as it is spelled.
    """
    words = words_of(column.name)
    if column.kind is Kind.BOOLEAN:
        return _pair(column)
    if column.kind is Kind.DATETIME:
        return _birth(words, column)
    if column.kind.surrogate:
        return None
    if len(words) > 1 and words[0] in FLAGS and BLOCKERS.isdisjoint(words):
        source = Message("0 for no and 1 for yes")
        return (_range if column.kind is Kind.INTEGER else _steps)(source, 0, 1, column)
    named = next((entry for entry in PUBLIC_NAMES if _is_called(words, entry)), None)
    return None if named is None else _reference(named, column)


def _is_called(words: tuple[str, ...], entry: PublicName) -> bool:
    for phrase in entry.phrases.split(","):
        parts = tuple(phrase.split("_"))
        for i in range(len(words) - len(parts) + 1):
            rest = {*words[:i], *words[i + len(parts) :]}
            known = rest.isdisjoint(BLOCKERS) if entry.beside is ANY_WORDS else rest <= entry.beside
            if words[i : i + len(parts)] == parts and known:
                return True
    return False


def _reference(entry: PublicName, column: Column) -> PublicReference | None:
    if column.kind.listed and column.dtype in TEXT:
        if not entry.labels:
            return None
        return PublicReference(entry.source, categories=public_labels(entry.labels))
    if entry.low is None or entry.high is None:
        return None
    if column.kind in entry.kinds:
        return _range(entry.source, entry.low, entry.high, column)
    if Kind.NUMBER in entry.kinds and not is_whole(column.dtype):
        return None  # steps may be halves
    return _steps(entry.source, entry.low, entry.high, column)


def _pair(column: Column) -> PublicReference | None:
    source, labels = Message("the two answers yes and no"), column.categories or ()
    if column.dtype in ("bool", "boolean"):
        return PublicReference(source, categories=("False", "True"))
    if len(labels) == 2 and {label.lower() for label in labels} in BOOLEAN_PAIRS:
        return PublicReference(source, categories=labels)
    return None


def _birth(words: tuple[str, ...], column: Column) -> PublicReference | None:
    dated = column.date_format is None or "%Y" in column.date_format
    if BIRTH.isdisjoint(words) or not dated:
        return None
    source = Message("dates of birth from 1900 to 2030")
    return PublicReference(source, low=FIRST_BIRTH, high=LAST_BIRTH)


def _range(source: Message, low: float, high: float, column: Column) -> PublicReference | None:
    """Bounds, where the type can hold them."""
    if not _holds(column.dtype, low, high):
        return None
    return PublicReference(source, low=float(low), high=float(high))


def _steps(source: Message, low: float, high: float, column: Column) -> PublicReference | None:
    """Few whole numbers as labels, as the column's type spells them."""
    real = column.dtype.lower().startswith("float")
    if not column.kind.listed or high - low >= MOST_STEPS or not (real or is_whole(column.dtype)):
        return None
    if not _holds(column.dtype, low, high):
        return None
    numbers = range(int(low), int(high) + 1)
    labels = tuple(str(float(number) if real else number) for number in numbers)
    return PublicReference(source, categories=labels)


def _holds(dtype: str, low: float, high: float) -> bool:
    if not is_whole(dtype):
        return True
    limits = np.iinfo(dtype.lower())
    return bool(limits.min <= low and high <= limits.max)
