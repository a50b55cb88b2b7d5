"""Intervals: how far a figure of the synthetic table may be off, from the replicas of its run.

In each replica the truth is known. The error of statistic s to *this table* is
s(drawn) - s(source); that to *the population* differs by the chance of a sample, whose variance is
known. The interval is s(published) ± t · √(mean of squared errors), see `half_width`. Shares and
counts are computed as arcsin √share, whose spread hardly depends on the share, so that intervals
stay within [0, 1]; all others on their own scale.

Source: Ferrando, Wang and Sheldon, "Parametric Bootstrap for Differentially Private Confidence
Intervals", AISTATS 2022.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr  # lighter than scipy.stats: pages import this

from core.inference.estimates import GAP, Estimates, Name, Scale, estimate
from core.inference.questions import Question, beyond
from core.inference.replicas import Replica, half_width
from core.message import Message
from core.schema.schema import Domain

Floats = NDArray[np.float64]

FEWEST = 5  # replicas that a standard deviation is taken of
LEAST = 1e-18  # variance that is divided by
LEAST_AT_NONE = 0.25  # of a variance that is mean of all replicas: a line through few is unsure
NO_REPLICAS = Message(
    "How far this may be off is not known yet: its error bars have not been computed."
)
BELOW_NOISE = Message(
    "The noise is as large as the figure, so it says nothing beyond its interval."
)
UNKNOWN = Message("The rows are too few, or too much alike, to tell.")
BEYOND = Message(
    "This asks how more columns go together than the model measured, so the table holds nothing of "
    "it. Leave out a condition or a column."
)
GUESSED = Message(
    "The model did not measure these columns together. How they go together follows from pairs, "
    "and the interval does not cover what pairs cannot show."
)
UNCOUNTED = Message(
    "The table has so many columns that only clearly related pairs were measured, and these "
    "columns were not. Noise may hide a weaker relationship, which the interval does not cover."
)


@dataclass(frozen=True)
class Interval:
    """Both ends, low ≤ high; in the unit of the value."""

    low: float
    high: float

    @property
    def half(self) -> float:
        """Half its width."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Figure:
    """One value of an answer.

    Attributes:
      name: see `core.inference.estimates`.
      value: of the published synthetic table; NaN where it cannot tell.
      table, population: where the real table's value lies, and the value of whom it is a sample;
        None where that is not known.
      naive: as if the synthetic rows were real ones, which covers no noise.
      chance: of a difference, how often one as large would be published if groups did not differ in
        the population; None where that is not known, and of other values.
      reason: why nothing should be read into the value; "" where something may.
    """

    name: Name
    value: float
    scale: Scale
    table: Interval | None
    population: Interval | None
    naive: Interval | None
    chance: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Answer:
    """What a synthetic table says to a question.

    Attributes:
      rows: synthetic rows that were looked at, after conditions.
      level: of the intervals, in (0, 1).
      replicas: how many the intervals rest on.
      reason: why there is no answer; "" where there is one.
      caution: what the intervals do not cover; "" for nothing.
      measured: the figure of the real rows, where the run paid for it; "" where it did not.
    """

    question: Question
    figures: tuple[Figure, ...]
    rows: int
    level: float
    replicas: int
    reason: str = ""
    caution: str = ""
    measured: str = ""


def answer(
    question: Question,
    published: pd.DataFrame,
    replicas: Sequence[Replica],
    domain: Domain,
    *,
    level: float = 0.95,
    measured: Collection[frozenset[str]] = (),
    all_pairs: bool = True,
) -> Answer:
    """The published table's answer, with how far it may be off.

    Args:
      question: see `check`.
      published: the synthetic table.
      replicas: of its run; none for the value alone.
      measured: sets of columns that the model measured together.
      all_pairs: whether it measured all pairs beside these.
    """
    missing = beyond(question, domain, measured)
    if missing > 1:
        return Answer(question, (), 0, level, len(replicas), reason=BEYOND)
    own = estimate(question, published, domain)
    ends, chances = np.full((2, 2, len(own.values)), np.nan), np.full(len(own.values), np.nan)
    if enough := len(replicas) >= FEWEST:
        sides = ([r.source for r in replicas], [r.drawn for r in replicas])
        both = [[estimate(question, table, domain) for table in side] for side in sides]
        ends, chances = interval_ends(own, *both, level=level), chance_of_none(own, *both)
    figures, reason = _figures(own, ends, chances, level), "" if enough else NO_REPLICAS
    pairs = combinations(question.columns(domain), 2)
    known = all_pairs or all(any(one >= {*pair} for one in measured) for pair in pairs)
    caution = GUESSED if missing else "" if known else UNCOUNTED
    return Answer(question, figures, own.rows, level, len(replicas), reason, caution)


def _figures(own: Estimates, ends: Floats, chances: Floats, level: float) -> tuple[Figure, ...]:
    naive = ndtri(0.5 + level / 2) * own.errors
    figures = []
    for at, (name, value, scale) in enumerate(zip(own.names, own.values, own.scales, strict=True)):
        table, population = (
            None if np.isnan(ends[i, :, at]).any() else Interval(*map(float, ends[i, :, at]))
            for i in (0, 1)
        )
        alone = None if np.isnan(naive[at]) else Interval(value - naive[at], value + naive[at])
        reason = UNKNOWN if np.isnan(value) else ""
        if scale != "number" and table is not None and table.half >= value:
            reason = BELOW_NOISE
        chance = float(chances[at]) if name == (GAP,) and np.isfinite(chances[at]) else None
        figures.append(Figure(name, float(value), scale, table, population, alone, chance, reason))
    return tuple(figures)


def interval_ends(
    own: Estimates, source: Sequence[Estimates], drawn: Sequence[Estimates], *, level: float = 0.95
) -> Floats:
    """Intervals of k values: to the table and to the population, low and high, [2, 2, k].

    Where tables follow their sources by a slope b, a sample's chance has b of it in the error to
    the population and b - 1 in that to the source: b² - (b - 1)² of its variance makes them differ.

    Args:
      own: the published table's.
      source, drawn: those of the replicas.
    """
    known, found = (
        np.array([_scaled(one.values, one) for one in side]) for side in (source, drawn)
    )
    slope = ((known - known.mean(0)) * found).mean(0) / np.maximum(known.var(0), LEAST)
    chance = np.mean([np.square(_scaled_errors(one)) for one in source], axis=0)
    more = (2.0 * slope.clip(0.0, 1.0) - 1.0) * chance
    return np.array([_ends(own, half_width(found - known, level, one)) for one in (0.0, more)])


def chance_of_none(
    own: Estimates, source: Sequence[Estimates], drawn: Sequence[Estimates]
) -> Floats:
    """How often values as far from 0 would be published if they were 0 in the population, [k].

    An interval must reach as far as noise may have hidden a difference, so that it seldom leaves 0
    out. Where there is none nothing is hidden: what is published is a sample's chance, as far as
    tables follow their sources, and what noise and model add to that. The latter is what replicas'
    tables have beside their sources' part. The larger a source's difference, the more of it noise
    may hide, so the variance of what is added is a line in the square of that difference, which is
    read where a sample shows a chance's worth.

    Args:
      own, source, drawn: see `interval_ends`.
    """
    known, found = (np.array([one.values for one in side]) for side in (source, drawn))
    slope = ((known * found).sum(0) / np.maximum(np.square(known).sum(0), LEAST)).clip(0.0, 1.0)
    far, added = np.square(known), np.square(found - slope * known)
    rise = ((far - far.mean(0)) * added).mean(0) / np.maximum(far.var(0), LEAST)
    chance, mean = np.square(own.errors), added.mean(0)
    at_none = np.clip(mean - rise.clip(0.0) * (far.mean(0) - chance), LEAST_AT_NONE * mean, mean)
    variance = np.maximum(at_none + np.square(slope) * chance, LEAST)
    return np.asarray(2.0 * stdtr(len(source) - 1, -np.abs(own.values) / np.sqrt(variance)))


def _scaled(values: Floats, one: Estimates) -> Floats:
    """Values [k] on the scale that errors are taken on."""
    out = values.copy()
    for at, scale in enumerate(one.scales):
        if scale != "number":
            share = out[at] / one.most if scale == "count" else out[at]
            out[at] = np.arcsin(np.sqrt(np.clip(share, 0, 1)))
    return out


def _scaled_errors(one: Estimates) -> Floats:
    """Naive standard errors [k] on that scale."""
    low, high = (_scaled(one.values + sign * one.errors, one) for sign in (-1, 1))
    return (high - low) / 2


def _ends(own: Estimates, half: Floats) -> Floats:
    """Low and high [2, k] for half widths [k] on that scale."""
    middle = _scaled(own.values, own)
    ends = np.array([middle - half, middle + half])
    for at, scale in enumerate(own.scales):
        if scale != "number":
            ends[:, at] = np.sin(np.clip(ends[:, at], 0, np.pi / 2)) ** 2
            if scale == "count":
                ends[:, at] *= own.most
    return ends
