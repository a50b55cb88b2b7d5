"""Patterns of codes whose beginnings mean something: by a column's name, where its cells fit.

A bar ends a part that means something by itself, see `Column.pattern`. Which classification it is
says the name alone; how it is written, with or without a dot, nine in ten values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from core.proposing.public_reference import words_of
from core.schema.surrogates import SLOTS

FITTING = 0.9  # share of the values that begin as the pattern does
_BESIDE = frozenset(
    "code,codes,main,primary,secondary,principal,admission,discharge,patient,home,company,sector,"
    "customer,delivery,billing,shipping,haupt,neben,rev,gm,cm,1,2,3,4,5,6,7,8,9,10".split(",")
)
_DIAGNOSES = ("@|#|#|.#", "a|#|#|.#", "@|#|#|#", "*|##|.#", "*|##|##")  # ICD-10, then ICD-9
CODES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("icd,icd9,icd10,diag,diagnosis,diagnose,dx,hauptdiagnose,nebendiagnose", _DIAGNOSES),
    ("ops", ("#|-##|*", "#|##|*")),  # operations in German hospitals
    ("atc", ("@|##|@|@|##",)),
    ("nuts", ("@@|*|*|*",)),
    ("nace,noga,naics,isic,sic,wz,wz08,branche", ("##|.#|#", "##|.##", "##|#|#", "@|##")),
    ("isco,soc,kldb", ("#|#|#|#", "##|-####")),
    ("zip,zipcode,postcode,postalcode,postal,plz,postleitzahl", ("#|#|###", "#|###")),
)


def code_pattern(name: str, values: Sequence[str] | pd.Series[Any]) -> str | None:
    """The pattern of a column's codes; None where its name or its values are of none.

    >>> code_pattern("diagnosis_1", ["E11.9", "I10", "J45.0"]), code_pattern("plz", ["10115"])
    ('@|#|#|.#', '#|#|###')
    """
    words = set(words_of(name))
    for phrases, patterns in CODES:
        if not words.isdisjoint(known := phrases.split(",")) and words <= {*known, *_BESIDE}:
            cells = pd.Series(values, dtype="str")
            fits = (one for one in patterns if cells.str.fullmatch(_regex(one)).mean() >= FITTING)
            return next(fits, None) if len(cells) else None
    return None


def _regex(pattern: str) -> str:
    """What begins as the pattern does, up to its last bar, and goes on as it may, or ends there."""
    *parts, last = pattern.split("|")
    start = "".join(_letters(part) for part in parts)
    dot = re.escape(last[0]) if last[0] not in SLOTS else ""
    return rf"{start}({dot}.*)?" if dot else rf"{start}[0-9A-Za-z ]*"


def _letters(part: str) -> str:
    return "".join(f"[{re.escape(SLOTS[x])}]" if x in SLOTS else re.escape(x) for x in part)
