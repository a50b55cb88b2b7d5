"""Lists that are public knowledge, in every usual spelling: months, countries, blood groups.

Spellings of one label stand together and the labels in their order where they have one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

MOST_LABELS = 1_000
_FILE = Path(__file__).with_name("public_lists.json")  # made by docs/make_public_lists.py

_MONTHS = (
    "january,jan,januar,jänner", "february,feb,februar", "march,mar,märz,mär,mrz", "april,apr",
    "may,mai", "june,jun,juni", "july,jul,juli", "august,aug", "september,sep,sept",
    "october,oct,oktober,okt", "november,nov", "december,dec,dezember,dez",
)  # fmt: skip
_WEEKDAYS = (
    "monday,mon,montag,mo", "tuesday,tue,tues,dienstag,di", "wednesday,wed,mittwoch,mi",
    "thursday,thu,thur,thurs,donnerstag,do", "friday,fri,freitag,fr",
    "saturday,sat,samstag,sonnabend,sa", "sunday,sun,sonntag,so",
)  # fmt: skip
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
    """A list by its name, fewer than `MOST_LABELS` labels, each once."""
    return tuple(dict.fromkeys(_LISTS[name]()))
