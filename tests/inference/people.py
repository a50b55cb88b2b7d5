"""A small world of which everything is known: patients, and what a mechanism makes of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.inference.replicas import Replica
from core.schema.column import Column, Kind
from core.schema.schema import Domain, Schema

ILL, EFFECT = 0.3, 12.0  # share of the ill, and by how many years they are older


def domain() -> Domain:
    return Schema(
        columns=(
            Column(name="age", kind=Kind.NUMBER, low=0, high=150, dtype="float64", missing=True),
            Column(name="ward", kind=Kind.CATEGORY, categories=("a", "b", "c"), missing=True),
            Column(name="ill", kind=Kind.CATEGORY, categories=("no", "yes")),
            Column(name="days", kind=Kind.INTEGER, low=0, high=24, step=1, dtype="int64"),
        )
    ).domain()


def people(n: int, seed: int, *, ill: float = ILL, effect: float = EFFECT) -> pd.DataFrame:
    """n rows."""
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < ill
    return pd.DataFrame(
        {
            "age": rng.normal(50 + effect * sick, 10, n),
            "ward": pd.Series(rng.choice(["a", "b"], n, p=[0.7, 0.3]), dtype="str"),
            "ill": pd.Series(np.where(sick, "yes", "no"), dtype="str"),
            "days": rng.integers(0, 25, n),
        }
    )


def released(truth: pd.DataFrame, seed: int, noise: float = 0.03) -> tuple[float, float]:
    """A mechanism: the share of the ill and by how much they are older, with Gaussian noise."""
    rng = np.random.default_rng((seed, 1))
    sick = truth["ill"] == "yes"
    gap = float(truth["age"][sick].mean() - truth["age"][~sick].mean())
    return float(sick.mean() + rng.normal(0, noise)), gap + rng.normal(0, 100 * noise)


def run(n: int, seed: int, count: int, *, noise: float = 0.03, one_seed: bool = False):
    """The real rows of a run, its synthetic ones and replicas.

    Args:
      noise: of replicas; the run's own is .03.
      one_seed: whether all replicas are drawn by one seed: a broken twin.
    """
    real = people(n, seed)
    share, effect = released(real, seed)
    replicas = []
    for number in range(count):
        own = 1_000 * seed + (0 if one_seed else 10 * number)
        source = people(n, own + 1, ill=share, effect=effect)
        again = released(source, own + 2, noise)
        drawn = people(n, own + 3, ill=again[0], effect=again[1])
        replicas.append(Replica(source, drawn))
    return real, people(n, seed + 7_000_000, ill=share, effect=effect), tuple(replicas)
