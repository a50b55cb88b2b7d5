"""Distributions that are known exactly, for tests of tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from core.encoding.codec import Codec, Codes
from core.lmdp.shift import Shift
from core.models.saved_model import SavedModel
from core.schema.column import Column, Kind
from core.schema.schema import Domain

# The paper's mixture: five equal components, appendix C.1 of Tillman, Balch and Veloso, 2023.
MEANS = torch.tensor([6.9734, 7.1579, 2.4358, 9.2579, 3.0420], dtype=torch.float64)
VARIANCES = torch.tensor([0.2622, 0.9046, 0.4533, 0.0773, 0.7823], dtype=torch.float64)


def mixture(n: int, random: torch.Generator, means: Tensor = MEANS) -> Tensor:
    """Draws of the mixture, float64 [n, 1]."""
    k = torch.randint(0, len(means), (n,), generator=random)
    noise = torch.randn(n, generator=random, dtype=torch.float64)
    return (means[k] + VARIANCES[k].sqrt() * noise).unsqueeze(1)


def score(x: Tensor, means: Tensor = MEANS) -> Tensor:
    """∇ log density of the mixture, float64 [n, 1]."""
    log = -0.5 * (x - means) ** 2 / VARIANCES - 0.5 * VARIANCES.log()
    share = torch.softmax(log, dim=1)
    return (share * (means - x) / VARIANCES).sum(dim=1, keepdim=True)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# A small mixed table: the column "pay" follows "age" and "ward".
DOMAIN = Domain(
    columns=(
        Column(name="age", kind=Kind.INTEGER, low=18, high=90, step=1, dtype="int64"),
        Column(name="ward", kind=Kind.CATEGORY, categories=("a", "b", "c"), dtype="str"),
        Column(name="pay", kind=Kind.NUMBER, low=0, high=200, dtype="float64"),
        Column(
            name="debt", kind=Kind.NUMBER, low=0, high=100, spikes=(0.0,), missing=True,
            dtype="float64",
        ),
    )
)  # fmt: skip
CODEC = Codec(DOMAIN)


def people(n: int, seed: int, *, older: float = 0.0) -> pd.DataFrame:
    """Rows of the table; `older` moves the ages up by so many years."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(45 + older, 12, n).round(), 18, 90).astype("int64")
    ward = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    pay = np.clip(age + 20.0 * (ward == "b") + rng.normal(0, 10, n), 0, 200)
    debt = np.where(rng.random(n) < 0.5, 0.0, rng.gamma(2.0, 10.0, n).clip(0, 100))
    debt[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {"age": age, "ward": pd.Series(ward, dtype="str"), "pay": pay, "debt": debt}
    )


def coded(n: int, seed: int, *, older: float = 0.0) -> Codes:
    return CODEC.encode(people(n, seed, older=older))


class People:
    """A sampler of the table, as a fitted model is one."""

    domain = DOMAIN

    def __init__(self) -> None:
        self.calls = 0

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        self.calls += 1
        return people(rows, 1000 + self.calls if seed is None else seed % 2**32)

    def save(self, folder) -> None:
        folder.mkdir(parents=True, exist_ok=True)


def shifted_people(groups: dict[str, tuple[str, ...]], *, power: float, key: bytes) -> SavedModel:
    """A sampler of the table whose tagged columns are shifted."""
    return SavedModel(People(), (Shift.find(People(), groups, power=power, key=key),))
