"""Codes: patterns whose beginnings mean something, numbers that are no quantities, or unknown ones.

A bar ends a part that means something by itself, see `Column.pattern`. Which classification it is
says the name alone; how it is written, with or without a dot, nine in ten values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.message import Message, to_say
from core.proposing.public_names import PERSON_WORDS
from core.proposing.public_reference import words_of
from core.proposing.rare import FEW_ROWS
from core.reading.tally import Tally
from core.schema.column import Column, is_whole
from core.schema.surrogates import SLOTS

Numbers: TypeAlias = NDArray[np.float64]

SENTINELS = (-1, -9, -99, -999, -9999, 99, 999, 9999, 99999, 999999)
UNKNOWN = (-9, -99, -999, -9999)  # taken as "missing" where no other number is negative
REPEATS = 4  # how often each is seen on average before few numbers are taken as steps
MOST_CODES, MOST_APART = 20, 64  # numbers that are listed beside a word, or where far apart
SHARED = 20  # rows of each number on average, of which it is no key
OFTEN = 200  # … each seen so often, on average beside a word: a run learns no label of fewer
EMPTY = 8  # values of the grid for each that occurs, where numbers lie far apart
CLEARLY = 10  # how many times as common both sides are of a rare number between common ones
ROUNDED = 0.3  # of amounts are multiples of fifty steps, of codes fewer
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


_KEY_NAME = re.compile(
    r"(^|[^a-z])(id|ids|uuid|guid|key|ssn|iban|email|e-mail|phone|telephone|passport|mrn)($|[^a-z])"
    r"|[a-z](Id|ID)$"
)
_NUMBERED = re.compile(  # as in Kundennummer
    r"(patienten|kunden|konto|vertrags?|fall|versicherten|mitglieds|personal|haushalts)(nummer|nr)$"
)
_NUMBERS = frozenset("number,no,nr,nbr,num,nummer".split(","))
UNIQUE_ROWS = 20  # values of which nothing follows, they are so few
_OF_PEOPLE = PERSON_WORDS | frozenset(  # … and of what belongs to one person or household
    "user,users,account,player,student,pupil,household,family,worker,staff,doctor,physician,nurse,"
    "teacher,author,owner,holder,guest,visitor,buyer,seller,borrower,tenant,citizen,insured,victim,"
    "offender,inmate,athlete,candidate,card,device,contract,policy,phone,email,mail,passport,ssn,"
    "mrn,iban,pid,uid,who,case,record,nutzer,konto,schueler,haushalt,arzt,karte,vertrag".split(",")
)
_OF_TIME = frozenset(  # what a key may be named after, as yearID is
    "year,month,week,day,date,hour,time,age,jahr,monat,woche,tag,datum,stunde,zeit,alter".split(",")
)


def called_key(name: str) -> bool:
    """Whether a name says that values are keys.

    >>> called_key("teamID"), called_key("customer key"), called_key("avoid")
    (True, True, False)
    """
    return bool(_KEY_NAME.search(name) or _KEY_NAME.search(name.lower()))


def _numbered(name: str) -> bool:
    """Whether a name says that people are numbered.

    >>> _numbered("patient_nbr"), _numbered("Kunden-Nr"), _numbered("number_of_children")
    (True, True, False)
    """
    *first, last = words_of(name) or ("",)
    of_people = last in _NUMBERS and bool(first) and set(first) <= _OF_PEOPLE
    return of_people or bool(_NUMBERED.search(last))


def of_time(name: str) -> bool:
    """Whether a name holds a word for time."""
    return not _OF_TIME.isdisjoint(words_of(name))


def named_key(name: str, distinct: int, n: int, most: int, *, numeric: bool) -> bool:
    """Whether a name says that values are keys, and these are not of many rows each.

    What many rows share is a label, such as that of a shop, unless it may be a person's. Of a name
    that speaks of people alone, such as patient_id, even a few values are keys; one that most rows
    hold names nobody, as the 0 of an area called X3Ssn.

    Args:
      most: how many of the n rows hold the most frequent of the `distinct` values.
    """
    words = words_of(name)
    often = SHARED if numeric else OFTEN  # numbers are learned by their neighbours, too
    shared = n >= often * distinct and _OF_PEOPLE.isdisjoint(words) and len(words) > 1
    people = len(words) > 1 and set(words) <= _OF_PEOPLE | {"id", "key"}
    called = called_key(name) or _numbered(name)
    return called and 2 * most <= n and (people or distinct > UNIQUE_ROWS and not shared)


def without_code(
    distinct: Numbers, counts: NDArray[np.int64]
) -> tuple[str, Numbers, NDArray[np.int64]]:
    """A code for "unknown" that is the only negative number, "" if there is none; and the rest."""
    least = float(distinct[0])
    if least in UNKNOWN and counts[0] >= FEW_ROWS and len(distinct) > 2 and distinct[1] >= 0.0:
        return f"{least:g}", distinct[1:], counts[1:]
    return "", distinct, counts


def code_note(code: str) -> str:
    """What is said of a number that is taken as a code; "" without one."""
    words = to_say("{code} was taken as a code for a missing value; it is written back as it is.")
    return Message(words, code=code) if code else ""


def sentinel_note(distinct: Numbers, counts: NDArray[np.int64]) -> str:
    """A doubt about a far-away round value that may stand for "unknown"; "" without one."""
    if len(distinct) < 3:
        return ""
    for end, inner in ((0, 1), (-1, -2)):
        gap = abs(distinct[end] - distinct[inner])
        rest = max(abs(distinct[-1 - end if end else -1] - distinct[inner]), 1.0)
        if distinct[end] in SENTINELS and counts[end] > 1 and gap > 0.2 * rest:
            return Message(
                "{value:g} lies far from all other values and may mean 'unknown' or 'capped'.",
                value=distinct[end],
            )
    return ""


def code_pattern(name: str, values: Sequence[str] | pd.Series[Any]) -> str | None:
    """The pattern of a column's codes; None where its name or its values are of none.

    >>> code_pattern("diagnosis_1", ["E11.9", "I10", "J45.0"]), code_pattern("store zip", ["10115"])
    ('@|#|#|.#', '#|#|###')
    """
    words = words_of(name)
    for phrases, patterns in CODES:
        named = set(words) & {*(known := phrases.split(","))}
        if named and (words[-1] in known or set(words) <= {*known, *_BESIDE}):
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


def few_and_far(numbers: Tally, step: float) -> bool:
    """Whether there are few numbers for so many rows, far apart on the grid of their step."""
    often = numbers.rows.min() >= OFTEN
    return bool(often and numbers.distinct <= MOST_APART and _far_apart(numbers, step))


def _far_apart(numbers: Tally, step: float) -> bool:
    ends = numbers.values.to_numpy(np.float64)[[0, -1]]
    return bool(ends[1] - ends[0] >= EMPTY * step * numbers.distinct)


def rare_between(counts: NDArray[np.int64]) -> bool:
    """Whether a number of few rows lies between common ones: a count thins out, codes do not."""
    before, after = np.maximum.accumulate(counts), np.maximum.accumulate(counts[::-1])[::-1]
    return bool(((np.minimum(before, after) >= CLEARLY * counts) & (counts < FEW_ROWS)).any())


def are_codes(numbers: Tally, column: Column) -> bool:
    """Whether ascending numbers beside a word such as N are codes: few, or long and far apart.

    Long ones have three digits or more, all nearly as many. So have amounts seldom, and many of
    these are round.
    """
    x, rows = numbers.values.to_numpy(np.float64), numbers.weights
    if not is_whole(column.dtype) or x[0] < 0 or numbers.known < REPEATS * numbers.distinct:
        return False
    if numbers.distinct <= MOST_CODES and numbers.known >= OFTEN * numbers.distinct:
        return True
    step = float(np.gcd.reduce(x.astype(np.int64)))
    round_ones = rows[x % (50 * step) == 0].sum() / numbers.known
    alike = x[0] >= max(100.0, x[-1] / 100.0) and round_ones < ROUNDED
    return alike and _far_apart(numbers, step)
