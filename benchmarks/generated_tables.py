"""Tables made by code, whose truth is known: some to choose constants on, others to report on.

    make("parity3", seed=1).train

Nobody chooses a setting on a table of `REPORTED`, and nobody reports one of `TUNING`. A table's
structure is fixed by its name; the seed draws its rows, so truths are the same for every seed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if __package__ in (None, ""):
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.declared_columns import (
    Draft,
    Truth,
    binary,
    coin,
    falling,
    flag,
    flipped,
    labels,
    level,
    listed,
    number,
    pick,
    whole,
)
from benchmarks.tuning_tables import TUNING_MAKERS
from core.schema.rules.rules import AtMost, Determines, Sum
from core.schema.schema import Schema

__all__ = ["REPORTED", "TUNING", "GeneratedTable", "make"]

TEST_SHARE, TEST_AT_LEAST, TEST_AT_MOST = 0.25, 1_000, 20_000
LABEL_NOISE = 0.03
YEAR_DAYS, STAY_DAYS = 365, 60


@dataclass(frozen=True)
class GeneratedTable:
    """A table, rows of the same kind that no model sees, and what is known of both.

    Attributes:
      name: as `make` takes it.
      train: n rows.
      test: rows drawn with them and kept apart.
      schema: bounds and labels as the generator's author declares them; no rules.
      target: the column to predict.
      truth: what every row keeps, and which columns go together.
    """

    name: str
    train: pd.DataFrame
    test: pd.DataFrame
    schema: Schema
    target: str
    truth: Truth


def make(name: str, rows: int | None = None, seed: int = 0) -> GeneratedTable:
    """A table of that name.

    Args:
      name: among `TUNING` or `REPORTED`.
      rows: to train on; the name's own number when None.
      seed: of the rows.

    Raises:
      KeyError: there is no such table; the message lists those there are.
    """
    if name not in _MAKERS:
        raise KeyError(f"no table is called '{name}'; there are: {', '.join(_MAKERS)}")
    own_rows, target, build = _MAKERS[name]
    n = own_rows if rows is None else rows
    apart = int(np.clip(TEST_SHARE * n, TEST_AT_LEAST, TEST_AT_MOST))
    key = zlib.crc32(name.encode())
    draft = build(n + apart, np.random.default_rng(key), np.random.default_rng([key, seed]))
    frame = draft.frame()
    return GeneratedTable(
        name=name,
        train=frame.iloc[:n].reset_index(drop=True),
        test=frame.iloc[n:].reset_index(drop=True),
        schema=Schema(columns=tuple(draft.columns), target=target),
        target=target,
        truth=draft.truth,
    )


Build = Callable[[int, np.random.Generator, np.random.Generator], Draft]


def _parity(order: int) -> Build:
    """Ten standard normal columns; the class is the parity of the signs of some of them."""

    def build(n: int, structure: np.random.Generator, rng: np.random.Generator) -> Draft:
        draft = Draft()
        names = [f"x{i}" for i in range(10)]
        for name in names:
            draft.put(number(name, -5.0, 5.0), rng.standard_normal(n))
        chosen = sorted(structure.choice(names, order, replace=False).tolist())
        odd = np.logical_xor.reduce([draft.values[name].astype(float) > 0 for name in chosen])
        draft.put(flag("class"), binary(flipped(odd, LABEL_NOISE, rng)))
        draft.truth = Truth(parity=tuple(chosen))
        return draft

    return build


def _dependencies(n: int, structure: np.random.Generator, rng: np.random.Generator) -> Draft:
    """Stays in a hospital: a label follows from its code, the end from the start and the stay."""
    codes, groups = labels("c", 40), labels("group", 8)
    group_of = structure.permutation(np.arange(40) % 8)
    rate = structure.uniform(0.0, 1.6, 8)  # how long stays of a group are, log days
    code = rng.choice(40, n, p=falling(40, 0.7))
    group = group_of[code]
    age = 55 + 18 * (0.5 * (rate[group] - 0.8) + rng.standard_normal(n))
    start = rng.integers(0, YEAR_DAYS, n)
    stay = np.minimum(np.exp(0.6 + rate[group] + 0.008 * age + 0.6 * rng.standard_normal(n)), 60)
    stay = np.floor(stay)
    ward = np.where(rng.random(n) < 0.8, group % 5, rng.integers(0, 5, n))
    cost = 200.0 * np.exp(0.3 * rng.standard_normal(n)) * (1 + stay) + 500 * (ward == 2)
    odds = -3.0 + 0.05 * stay + 0.03 * (age - 55) + 0.9 * (group == 3) + 0.9 * (ward == 1)
    draft = Draft()
    draft.put(listed("code", codes), pick(codes, code))
    draft.put(listed("group", groups), pick(groups, group))
    draft.put(whole("age", 0, 110), age)
    draft.put(listed("sex", ("f", "m")), pick(("f", "m"), rng.integers(0, 2, n)))
    draft.put(whole("start", 0, YEAR_DAYS - 1), start)
    draft.put(whole("stay", 0, STAY_DAYS), stay)
    draft.put(whole("end", 0, YEAR_DAYS - 1 + STAY_DAYS), start + stay)
    draft.put(listed("ward", labels("ward", 5)), pick(labels("ward", 5), ward))
    draft.put(number("cost", 0.0, 50_000.0, scale="log", step=0.01), cost)
    draft.put(flag("back"), binary(coin(odds, rng)))
    mapping = {codes[i]: groups[group_of[i]] for i in range(40)}
    draft.truth = Truth(
        rules=(
            Determines(source="code", result="group", mapping=mapping),
            Sum(total="end", left="start", right="stay"),
            AtMost(low="start", high="end"),
        )
    )
    return draft


def _blocks(n: int, structure: np.random.Generator, rng: np.random.Generator) -> Draft:
    """200 binary columns in 20 blocks of ten that share a normal latent number."""
    draft, names = Draft(), [[f"b{block:02d}_{i}" for i in range(10)] for block in range(20)]
    for block in names:
        _put_block(draft, block, rng.standard_normal(n), structure, rng)
    pairs = [pair for block in names for pair in combinations(block, 2)]
    draft.truth = Truth(strong_pairs=tuple(pairs))
    return draft


def _put_block(
    draft: Draft,
    names: Sequence[str],
    shared: NDArray[np.float64],
    structure: np.random.Generator,
    rng: np.random.Generator,
) -> None:
    for name in names:
        own = 0.92 * shared + np.sqrt(1 - 0.92**2) * rng.standard_normal(len(shared))
        draft.put(flag(name), binary(own > structure.uniform(-0.6, 0.6)))


def _product(n: int, structure: np.random.Generator, rng: np.random.Generator) -> Draft:
    """Such blocks of 200 columns, and a class: whether the first two numbers have one sign."""
    draft, shared = Draft(), rng.standard_normal((20, n))
    for block, own in enumerate(shared):
        _put_block(draft, [f"b{block:02d}_{i}" for i in range(10)], own, structure, rng)
    draft.put(flag("class"), binary(flipped(shared[0] * shared[1] > 0.0, 0.1, rng)))
    return draft


def _wide(n: int, structure: np.random.Generator, rng: np.random.Generator) -> Draft:
    """1,000 columns of all kinds that follow from twenty numbers; for time and memory."""
    draft, factors = Draft(), rng.standard_normal((n, 20)).astype(np.float32)
    for i in range(999):
        weights = structure.dirichlet(np.full(20, 0.2)) ** 0.5 * structure.choice([-1, 1], 20)
        own = rng.standard_normal(n).astype(np.float32)
        latent = (0.7 * factors @ weights.astype(np.float32) + np.sqrt(0.51) * own).astype(float)
        shape = structure.integers(0, 4)
        if shape == 0:
            draft.put(number(f"n{i:03d}", -5.0, 5.0, step=0.001), latent)
        elif shape == 1:
            draft.put(whole(f"w{i:03d}", 0, 99), 50 + 15 * latent)
        elif shape == 2:
            draft.put(flag(f"f{i:03d}"), binary(latent > structure.uniform(-1.5, 1.5)))
        else:
            count = int(structure.integers(3, 13))
            names = labels("v", count)
            codes = level(latent, falling(count))
            draft.put(listed(f"l{i:03d}", names), pick(names, codes))
    draft.put(flag("class"), binary(coin(2.0 * factors[:, 0].astype(float), rng)))
    return draft


_REPORTED: dict[str, tuple[int, str, Build]] = {
    "parity2": (20_000, "class", _parity(2)),
    "parity3": (20_000, "class", _parity(3)),
    "parity4": (20_000, "class", _parity(4)),
    "dependencies": (12_000, "back", _dependencies),
    "blocks200": (10_000, "b00_0", _blocks),
    "product200": (10_000, "class", _product),
    "wide1000": (50_000, "class", _wide),
}
_MAKERS = {**TUNING_MAKERS, **_REPORTED}

TUNING = tuple(TUNING_MAKERS)
REPORTED = tuple(_REPORTED)
