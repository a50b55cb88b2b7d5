"""What an attack proves: lower bounds on ε from guesses, and from rates of hits and false alarms.

Both bounds are for (ε, δ) under zero-out, and hold with a confidence whatever the attack is: a bad
attack proves little, none proves too much. Nothing here knows of models or tables.

Sources: Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run", 2023, theorem
5.2 (many records, one run); Clopper and Pearson, 1934, for rates; Kairouz, Oh and Viswanath, "The
composition theorem for differential privacy", 2015 (rates bound ε).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
LARGEST = 50.0  # no bound is looked for beyond; e^50 guesses cannot be made
_THRESHOLDS = 128  # tried on the first half of the draws


@dataclass(frozen=True)
class Guesses:
    """What an auditor said of one run: of m canaries r ≤ m were guessed, v ≤ r of them right."""

    canaries: int
    guessed: int
    right: int


@dataclass(frozen=True)
class Rates:
    """How a rule fared on draws that it was not chosen on.

    Attributes:
      hits, trials: how often it said "in", of runs with the record.
      alarms, controls: how often it said "in", of runs without it.
      swapped: it said "out" instead, of runs without the record (hits) and with it (alarms).
    """

    hits: int
    trials: int
    alarms: int
    controls: int
    swapped: bool = False


def chance_of_guesses(guesses: Guesses, *, epsilon: float, delta: float) -> float:
    """The greatest chance that an (ε, δ)-DP mechanism gives to so many right guesses.

    P[B ≥ v] + 2mδ · max_{i ≤ v} P[v > B ≥ v - i]/i, where B is binomial: r trials that succeed with
    probability e^ε/(1 + e^ε).

    >>> ten_of_ten = Guesses(canaries=10, guessed=10, right=10)
    >>> chance_of_guesses(ten_of_ten, epsilon=0.0, delta=0.0) == 2.0**-10
    True
    """
    m, r, v = guesses.canaries, guesses.guessed, guesses.right
    if not 0 <= v <= r <= m:
        raise ValueError(f"{v} right of {r} guesses on {m} canaries cannot be.")
    right = 1.0 / (1.0 + math.exp(-epsilon))
    beyond = float(stats.binom.sf(v - 1, r, right))
    if v == 0 or delta == 0.0:
        return min(1.0, beyond)
    below = np.cumsum(stats.binom.pmf(np.arange(v - 1, -1, -1), r, right))  # P[v > B ≥ v - i]
    worst = float((below / np.arange(1, v + 1)).max())
    return min(1.0, beyond + 2.0 * m * delta * worst)


def bound_from_guesses(guesses: Guesses, *, delta: float, confidence: float) -> float:
    """The largest ε that so many right guesses refute, 0 when they refute none."""
    _confidence_checked(confidence)

    def refuted(epsilon: float) -> bool:
        return chance_of_guesses(guesses, epsilon=epsilon, delta=delta) < 1.0 - confidence

    return _largest(refuted)


def guess(scores: Floats, present: NDArray[np.bool_], guessed: int) -> Guesses:
    """Say "in" of the highest scores, "out" of the lowest, half each; abstain from the rest."""
    half = guessed // 2
    order = np.argsort(scores, kind="stable")
    lowest, highest = order[:half], order[len(order) - half :]
    right = int(present[highest].sum()) + int((~present[lowest]).sum())
    return Guesses(len(scores), 2 * half, right)


def clopper_pearson(successes: int, trials: int, *, confidence: float) -> tuple[float, float]:
    """A lower and an upper bound on a probability; each alone holds with the confidence.

    >>> low, high = clopper_pearson(0, 100, confidence=0.95)
    >>> low, round(high, 4)  # 1 - 0.05^(1/100)
    (0.0, 0.0295)
    """
    _confidence_checked(confidence)
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} successes of {trials} trials cannot be.")
    wrong = 1.0 - confidence
    low = special.betaincinv(successes, trials - successes + 1, wrong) if successes else 0.0
    rest = trials - successes
    high = special.betainccinv(successes + 1, rest, wrong) if rest else 1.0
    return float(low), float(high)


def bound_from_rates(measured: Rates, *, delta: float, confidence: float) -> float:
    """ln((P - δ)/Q) ≥ 0 for bounds on hits and false alarms, with half of the error each."""
    each = 1.0 - (1.0 - confidence) / 2.0
    hits, _ = clopper_pearson(measured.hits, measured.trials, confidence=each)
    _, alarms = clopper_pearson(measured.alarms, measured.controls, confidence=each)
    return min(LARGEST, math.log((hits - delta) / alarms)) if hits - delta > alarms else 0.0


def rates(inside: Floats, outside: Floats, *, delta: float, confidence: float) -> Rates:
    """A threshold chosen on the first half of the draws, judged on the second half."""
    k = min(len(inside), len(outside)) // 2
    if k < 1:
        raise ValueError("At least two draws of each world are needed.")
    first, last = (inside[:k], outside[:k]), (inside[k:], outside[k:])
    levels = np.linspace(0.0, 1.0, min(_THRESHOLDS, 2 * k) + 2)[1:-1]
    tries = [
        (float(threshold), swapped)
        for threshold in np.quantile(np.concatenate(first), levels)
        for swapped in (False, True)
    ]
    chosen = max(
        tries,
        key=lambda rule: bound_from_rates(
            _count(*first, *rule), delta=delta, confidence=confidence
        ),
    )
    return _count(*last, *chosen)


def _count(inside: Floats, outside: Floats, threshold: float, swapped: bool) -> Rates:
    if swapped:
        inside, outside, threshold = -outside, -inside, -threshold
    return Rates(
        hits=int((inside > threshold).sum()),
        trials=len(inside),
        alarms=int((outside > threshold).sum()),
        controls=len(outside),
        swapped=swapped,
    )


def bound_from_gaussians(
    inside: Floats, outside: Floats, *, delta: float, confidence: float
) -> float:
    """The ε of two normals as far apart as these scores at least are, in their own spread.

    For sums with Gaussian noise in which every record takes part: no other attack tells them apart
    better, and ε is a function of the distance. Sources: Dong, Roth and Su, 2022 (trade-offs of
    Gaussians); Nasr et al., "Tight auditing of differentially private machine learning", 2023;
    Hedges, 1981 (the standard error of a standardised difference).
    """
    n = min(len(inside), len(outside))
    spread = math.sqrt((inside.var(ddof=1) + outside.var(ddof=1)) / 2.0)
    if not spread:
        return LARGEST if inside.mean() > outside.mean() else 0.0
    apart = float(inside.mean() - outside.mean()) / spread
    error = math.sqrt(2.0 / n + apart**2 / (4.0 * n))
    least = apart - NormalDist().inv_cdf(confidence) * error
    return min(LARGEST, get_epsilon_gaussian(1.0 / least, delta)) if least > 0.0 else 0.0


def _largest(refuted: Callable[[float], bool]) -> float:
    """The end of the stretch from 0 on which `refuted` is true, to 1e-6, from below."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, LARGEST
    while high - low > 1e-6:
        middle = (low + high) / 2.0
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _confidence_checked(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"A confidence lies strictly between 0 and 1, got {confidence}.")
