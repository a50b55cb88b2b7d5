"""Households, their members and the members' visits: ε of 1 for each household, with all in it.

    python benchmarks/households.py [--homes 8000] [--epsilon 1] [--seeds 3]

Which members a home has depends on how many there are; how many visits a member has, and for what,
depends on the member's age and sex; dates are anywhere in two years. Nothing is declared. Real and
synthetic figures stand side by side: means of the seeds, with their range.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.side_by_side import Files, compare, synthetic_files
from benchmarks.stays import _choose

REASONS = np.array(["checkup", "injury", "chronic", "maternity", "pediatric"])
AGES, BANDS = [-1, 5, 17, 44, 59, 130], ("0-5", "6-17", "18-44", "45-59", "60-")


def levels(homes: int, seed: int) -> Files:
    """Three tables whose keys match."""
    random = np.random.default_rng(seed)
    home = pd.DataFrame(
        {
            "household": np.arange(homes) + 1000,
            "region": random.choice(list("NESW"), homes, p=(0.4, 0.3, 0.2, 0.1)),
            "income": np.round(random.lognormal(10.4, 0.5, homes), -2).astype(int),
        }
    )
    size = np.clip(random.poisson(1.6, homes) + (random.random(homes) < 0.95), 0, 8)
    who = np.repeat(np.arange(homes), size)
    place = np.arange(len(who)) - np.repeat(np.cumsum(size) - size, size)
    adult = np.clip(random.normal(45, 14, len(who)), 18, 95)
    age = np.where(place < 2, adult, random.integers(0, 18, len(who))).astype(int)
    member = pd.DataFrame(
        {
            "person": [f"P{i:06d}" for i in range(len(who))],
            "household": home["household"].to_numpy()[who],
            "sex": random.choice(["f", "m"], len(who)),
            "age": age,
        }
    )
    often = np.array([3.0, 0.7, 1.2, 1.2, 3.5])[np.searchsorted(AGES[1:], age)]
    visited = np.repeat(np.arange(len(who)), np.minimum(random.poisson(often), 10))
    old, female = age[visited], member["sex"].to_numpy()[visited] == "f"
    chronic, child = np.where(old >= 60, 0.6, 0.1), np.where(old < 18, 0.8, 0.0)
    mother = 0.5 * (female & (old >= 18) & (old < 45))
    usual = np.full(len(visited), 0.3)
    reason = _choose(np.stack([usual, 0.7 * usual, chronic, mother, child], axis=1), random)
    days = random.integers(0, 730, len(visited))
    visit = pd.DataFrame(
        {
            "person": member["person"].to_numpy()[visited],
            "date": (np.datetime64("2022-01-01") + days).astype(str),
            "reason": REASONS[reason],
            "cost": random.lognormal(4.0 + np.array([0, 0, 0.8, 1.5, 0])[reason], 0.4).round(2),
        }
    ).sort_values(["person", "date"], kind="stable", ignore_index=True)
    return {"households": home, "people": member, "visits": visit}


def made(real: Files, options: argparse.Namespace, seed: int) -> Files:
    """The same tables as a run makes them."""
    keys = ("household", "household", "people.person")
    return synthetic_files(real, options, seed, keys=keys, order=",date")


def figures(tables: Files) -> dict[str, float]:
    """What one would look at: who lives together, who comes how often, and for what."""
    home, member, visit = tables.values()
    size = member["household"].value_counts().reindex(home["household"], fill_value=0)
    band = pd.cut(member["age"].astype(float), AGES, labels=BANDS)
    visits = visit["person"].value_counts().reindex(member["person"], fill_value=0)
    mean = visits.groupby(band.to_numpy(), observed=False).mean()
    joined = visit.merge(member.assign(band=band), on="person")
    child, mother = joined["age"].astype(float) < 18, joined["reason"] == "maternity"
    date = pd.to_datetime(visit["date"])
    wait = date.groupby(visit["person"]).diff().dt.days
    young = (member["age"].astype(float) < 18).groupby(member["household"]).agg(["mean", "size"])
    lone = young["size"] < 3
    return {
        **{f"homes of {n} members, %": 100.0 * float((size == n).mean()) for n in range(6)},
        "children in homes of one or two, %": 100.0 * float(young["mean"][lone].mean()),
        "children in larger homes, %": 100.0 * float(young["mean"][~lone].mean()),
        "members without visits, %": 100.0 * float((visits == 0).mean()),
        **{f"visits of one aged {name}": float(mean[name]) for name in BANDS},
        "visits of children for pediatric, %": 100.0
        * float((joined["reason"] == "pediatric")[child].mean()),
        "pediatric visits of adults, %": 100.0
        * float((~child)[joined["reason"] == "pediatric"].mean()),
        "men in maternity, %": 100.0 * float((joined["sex"] == "m")[mother].mean()),
        "days to the next visit, median": float(wait.median()),
        "days to the next visit, 9 of 10 below": float(wait.quantile(0.9)),
        "keys without a row, %": 100.0
        * float(
            1.0
            - 0.5 * member["household"].isin(home["household"]).mean()
            - 0.5 * visit["person"].isin(member["person"]).mean()
        ),
    }


def main(arguments: list[str] | None = None) -> int:
    """Make, judge, print. Exit code 0."""
    return compare(
        __doc__,
        ("homes", 8_000),
        arguments,
        real=levels,
        synthetic=made,
        figures=figures,
    )


if __name__ == "__main__":
    sys.exit(main())
