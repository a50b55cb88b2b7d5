"""Histories of people: what is kept of how events follow on one another, with ε per person.

    python -m benchmarks.histories [--tables generated cdnow] [--folder DIR] [--people 20000]
        [--epsilon 1] [--seeds 3] [--ways histories rows people] [--json]

`generated` has people with three constants and up to 12 events of 8 kinds; which comes next depends
on the one before, on a constant and on whether the kind "a" has been before. `cdnow` are 23,570
people and their purchases, of DIR/cdnow_users.csv and DIR/cdnow_purchases.csv.

Distances are in total variation: of rows of the transition matrix, with END, weighted by how often
real events are in each state; of numbers of events; of waits from event to event (32 equal shares
of the real ones); of each constant with the first event, the largest. `rows` is today's model of
events as if each were a person, shuffled to people; `people` what per-person statistics give
without histories; without privacy, `histories` at ε = inf. The floor is a second real table.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

KINDS = tuple("abcdefgh")
MOST, DAYS, CELLS = 12, 1500, 32
CONSTANTS = ("sex", "region", "age")
END = "END"
START_DATE = 0

Floats = NDArray[np.float64]


def generated(people: int, seed: int, law: int = 7) -> tuple[pd.DataFrame, pd.DataFrame]:
    """People and their events, of a law that another seed does not change."""
    fixed, random = np.random.default_rng(law), np.random.default_rng(seed)
    moves = fixed.dirichlet(np.full(8, 0.5), 8) + 0.01
    of_sex = np.exp(fixed.normal(0.0, 0.5, (2, 8)))
    after_a = np.where(np.arange(8) == 1, 3.0, 1.0)  # once "a" has been
    firsts = fixed.dirichlet(np.full(8, 0.7), (2, 4))  # by sex and region
    ends = np.clip(fixed.normal(0.18, 0.08, 8), 0.05, 0.4)
    waits = fixed.uniform(3.0, 60.0, 8)
    sex, region = random.integers(0, 2, people), random.choice(4, people, p=[0.4, 0.3, 0.2, 0.1])
    age = np.clip(random.normal(50 + 5 * region, 15), 0, 99).astype(int)
    kind = _choose(firsts[sex, region], random)
    day = random.integers(0, 400, people).astype(float)
    seen = np.zeros(people, dtype=bool)
    alive = random.random(people) >= 0.05  # the others have no event
    who, kinds, days, costs = [], [], [], []
    for step in range(MOST):
        index = np.flatnonzero(alive)
        who.append(index)
        kinds.append(kind[index])
        days.append(day[index])
        costs.append(np.round(random.lognormal(4.0 + 0.2 * kind[index] + 0.005 * age[index], 0.6)))
        seen |= alive & (kind == 0)
        goes_on = random.random(people) >= ends[kind] * (1.0 + 0.6 * (age > 70))
        alive &= goes_on & (step < MOST - 1)
        odds = moves[kind] * of_sex[sex] * np.where(seen[:, None], after_a, 1.0)
        kind = _choose(odds, random)
        day += 1.0 + np.floor(random.exponential(waits[kind]))
    events = pd.DataFrame(
        {
            "patient": np.concatenate(who),
            "day": np.concatenate(days).astype(int),
            "kind": np.array(KINDS)[np.concatenate(kinds)],
            "cost": np.minimum(np.concatenate(costs), 5000).astype(int),
        }
    ).sort_values(["patient", "day"], kind="stable", ignore_index=True)
    persons = pd.DataFrame(
        {
            "patient": np.arange(people),
            "sex": np.array(["f", "m"])[sex],
            "region": np.array(list("NESW"))[region],
            "age": age,
        }
    )
    return persons, events


def _choose(shares: Floats, random: np.random.Generator) -> NDArray[np.intp]:
    """A column for each row, by its shares."""
    line = shares.cumsum(axis=1)
    return (line < random.random((len(line), 1)) * line[:, -1:]).sum(axis=1)


def distance(one: Mapping[object, float], other: Mapping[object, float]) -> float:
    """Total variation of two distributions."""
    keys = set(one) | set(other)
    return 0.5 * sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in keys)


def shares(values: pd.Series) -> dict[object, float]:
    """How often each value comes."""
    return dict(values.value_counts(normalize=True))


def transitions(events: pd.DataFrame, state: str) -> pd.DataFrame:
    """Shares of what follows each state, END included; events lie in order."""
    after = events.groupby("patient", sort=False)[state].shift(-1).astype(object).fillna(END)
    return pd.crosstab(events[state], after, normalize="index")


def figures(
    real: tuple[pd.DataFrame, pd.DataFrame],
    other: tuple[pd.DataFrame, pd.DataFrame],
    state: str,
    most: int,
) -> dict[str, float]:
    """How far another table's histories lie from the real ones."""
    persons, events, synthetic = *real, other[1]
    one, two = transitions(events, state), transitions(synthetic, state)
    weights = events[state].value_counts(normalize=True)
    zero = pd.Series(dtype=float)
    rows = {
        key: distance(dict(one.loc[key]), dict(two.loc[key] if key in two.index else zero))
        for key in one.index
    }
    lengths = [
        p["patient"].map(e["patient"].value_counts()).fillna(0).clip(upper=most)
        for p, e in (real, other)
    ]
    waits = [e.groupby("patient", sort=False)["day"].diff().dropna() for e in (events, synthetic)]
    cuts = np.unique(np.quantile(waits[0], np.linspace(0, 1, CELLS + 1))[1:-1])
    binned = [pd.Series(np.searchsorted(cuts, wait, side="right")) for wait in waits]
    firsts = []
    for p, e in (real, other):
        first = e.drop_duplicates("patient")[["patient", state]]
        joined = p.merge(first, on="patient")
        if "age" in joined:
            joined["age"] = joined["age"] // 10
        firsts.append(joined)
    constants = [name for name in CONSTANTS if name in persons]
    with_first = [
        distance(*(shares(f[name].astype(str) + "|" + f[state].astype(str)) for f in firsts))
        for name in constants
    ]
    return {
        "transitions": sum(weights[key] * far for key, far in rows.items()),
        "numbers of events": distance(*map(shares, lengths)),
        "waits": distance(*map(shares, binned)),
        "constants with first": max(with_first, default=0.0),
    }
