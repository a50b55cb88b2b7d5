"""Amounts as they are said: whatever is left of their digits, never less than what was proven."""

from __future__ import annotations

import math

_SAME = 1e-12  # of an amount: what adding up floats may leave, and no digit that anybody sees


def round_up(amount: float, form: str) -> float:
    """An ε or δ ≥ 0 as it may be said in a format: the least number of its digits that is not less.

    >>> round_up(1.0004, ".3g"), round_up(1.0, ".3g"), round_up(0.121, ".2f")
    (1.01, 1.0, 0.13)
    """
    nearest = float(format(amount, form))
    if not math.isfinite(amount) or nearest >= amount * (1.0 - _SAME):
        return nearest
    digits = int(form[1:-1])
    if form[-1] != "f":  # digits of the amount, not places
        digits -= math.floor(math.log10(amount)) + (form[-1] == "g")
    return float(format(amount + 0.5 * 10.0**-digits, form))
