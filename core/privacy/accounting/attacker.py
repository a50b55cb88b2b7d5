"""What (ε, δ) means to somebody who guesses."""

from __future__ import annotations

import math


def attacker_best_guess(epsilon: float, delta: float) -> float:
    """The best chance of telling whether one person took part, starting from 50:50.

    The most revealing (ε, δ)-private release shows the answer outright with probability δ and
    otherwise answers truthfully with odds e^ε : 1: δ + (1 - δ) e^ε / (1 + e^ε).

    >>> round(attacker_best_guess(1.0, 1e-6), 3)
    0.731
    """
    if epsilon < 0.0 or not 0.0 <= delta <= 1.0:
        raise ValueError(f"Need ε ≥ 0 and δ in [0, 1], got ε = {epsilon}, δ = {delta}.")
    return delta + (1.0 - delta) / (1.0 + math.exp(-epsilon))
