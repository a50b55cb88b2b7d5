"""Numbers that often stand for "unknown": -99, 999 and their like."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.message import Message, to_say
from core.proposing.rare import FEW_ROWS

Numbers: TypeAlias = npt.NDArray[np.float64]

SENTINELS = (-1, -9, -99, -999, -9999, 99, 999, 9999, 99999, 999999)
CODES = (-9, -99, -999, -9999)  # taken as "missing" where no other number is negative


def without_code(
    distinct: Numbers, counts: npt.NDArray[np.int64]
) -> tuple[str, Numbers, npt.NDArray[np.int64]]:
    """A code for "unknown" that is the only negative number, "" if there is none; and the rest."""
    least = float(distinct[0])
    if least in CODES and counts[0] >= FEW_ROWS and len(distinct) > 2 and distinct[1] >= 0.0:
        return f"{least:g}", distinct[1:], counts[1:]
    return "", distinct, counts


def code_note(code: str) -> str:
    """What is said of a number that is taken as a code; "" without one."""
    words = to_say("{code} was taken as a code for a missing value; it is written back as it is.")
    return Message(words, code=code) if code else ""


def sentinel_note(distinct: Numbers, counts: npt.NDArray[np.int64]) -> str:
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
