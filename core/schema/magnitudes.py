"""How large a number and how far a date may be, so that everything can be computed from it."""

from __future__ import annotations

from collections.abc import Iterable

from core.message import Message

LARGEST = 1e150  # of a number; the square of a larger one is not a number any more
FIRST_SECOND, LAST_SECOND = -62_135_596_800.0, 253_402_300_799.0  # of the years 1 and 9999


def magnitude_fault(values: Iterable[float | None], *, dates: bool) -> str:
    """What values that may be absent must do and do not; empty where they are all right.

    >>> magnitude_fault([0.0, 2e150, None], dates=False), magnitude_fault([0.0], dates=True)
    ('lie between -1e150 and 1e150', '')
    """
    least, most = (FIRST_SECOND, LAST_SECOND) if dates else (-LARGEST, LARGEST)
    if all(value is None or least <= value <= most for value in values):
        return ""
    if dates:
        return Message("be dates of the years 1 to 9999")
    return Message("lie between -1e150 and 1e150")
