"""Generated tables that constants are chosen on, and that nobody reports; see `generated_tables`.

Shapes, skews, sparsity, parities, dependencies and a rare target; 2,000 to 200,000 rows.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from scipy.special import ndtr

from benchmarks.declared_columns import (
    Draft,
    Floats,
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
from core.schema.rules.rules import AtMost, Determines, Sum

__all__ = ["TUNING_MAKERS"]

Generator = np.random.Generator
Build = Callable[[int, Generator, Generator], Draft]


def _network(columns: int, densest: int) -> Build:
    """A Bayesian network of mixed columns: each follows from up to `densest` earlier ones."""

    def build(n: int, structure: Generator, rng: Generator) -> Draft:
        draft = Draft()
        latents: list[Floats] = []
        for i in range(columns):
            parents = structure.permutation(i)[: structure.integers(0, densest + 1)]
            score = 0.6 * rng.standard_normal(n)
            for parent in parents:
                score += (
                    structure.choice([-1.0, 1.0]) * structure.uniform(0.5, 1.2) * latents[parent]
                )
            if len(parents) > 1:
                score += 0.5 * latents[parents[0]] * latents[parents[1]]
            latents.append(np.tanh(score / 1.5) * 1.5)
            _put_mixed(draft, i, latents[-1], structure)
        draft.put(flag("class"), binary(coin(2.5 * latents[-1] + latents[0], rng)))
        return draft

    return build


def _put_mixed(draft: Draft, i: int, latent: Floats, structure: Generator) -> None:
    """Column i of a network: a number, a whole number or one of 2 to 8 labels in no order."""
    shape = structure.integers(0, 3)
    if shape == 0:
        draft.put(number(f"n{i:02d}", -2.0, 2.0), latent)
    elif shape == 1:
        draft.put(whole(f"w{i:02d}", 0, 80), 80 * ndtr(latent))
    else:
        count = int(structure.integers(2, 9))
        names = tuple(structure.permutation(labels("v", count)).tolist())
        draft.put(listed(f"l{i:02d}", names), pick(names, level(latent, falling(count, 0.5))))


def _skewed(n: int, structure: Generator, rng: Generator) -> Draft:
    """Log-normal numbers, many of them exactly 0, that follow from a class of customers."""
    draft, kind = Draft(), rng.choice(4, n, p=falling(4))
    draft.put(listed("kind", labels("kind", 4)), pick(labels("kind", 4), kind))
    size = rng.standard_normal(n)
    for i in range(8):
        shown = rng.random(n) < structure.uniform(0.1, 0.9, 4)[kind]
        amount = np.exp(structure.uniform(2, 6) + 0.8 * size + 0.6 * rng.standard_normal(n))
        column = number(f"amount{i}", 0.0, 100_000.0, step=0.01, scale="log", spikes=(0.0,))
        draft.put(column, np.where(shown, amount, 0.0))
    draft.put(flag("class"), binary(coin(1.5 * size + (kind == 1) - 1.0, rng)))
    return draft


def _many_labels(n: int, structure: Generator, rng: Generator) -> Draft:
    """Lists of 2 to 60 labels, each following from one of three latent numbers."""
    draft, latents = Draft(), rng.standard_normal((n, 3))
    for i, count in enumerate((2, 3, 5, 8, 12, 20, 30, 45, 60)):
        score = 0.8 * latents[:, i % 3] + 0.6 * rng.standard_normal(n)
        names = tuple(structure.permutation(labels("v", count)).tolist())
        codes = level(score, falling(count, structure.uniform(0.0, 1.5)))
        draft.put(listed(f"l{count:02d}", names), pick(names, codes))
    draft.put(flag("class"), binary(coin(2.0 * latents[:, 0] - latents[:, 1], rng)))
    return draft


def _places(count: int, common: float) -> Build:
    """People of whom most live in one of `count` places; what goes with the others is rare.

    Origin and language follow from the place; the class from age, school and trade, in which people
    of different ages differ.
    """

    def build(n: int, structure: Generator, rng: Generator) -> Draft:
        draft = Draft()
        town = rng.choice(count, n, p=[common, *(1.0 - common) * falling(count - 1, 0.8)])
        homes = structure.permutation(np.arange(count) % 4 + 1)  # of most who live there
        homes[0] = 0
        origin = np.where(rng.random(n) < 0.8, homes[town], rng.choice(5, n, p=falling(5, 2.0)))
        spoken = structure.permutation(np.arange(count) % 9 + 1)
        spoken[0] = 0
        language = np.where(rng.random(n) < 0.7, spoken[town], 0)
        age = np.clip(40 + 14 * rng.standard_normal(n), 17, 90)
        latent = rng.standard_normal(n) + 0.4 * (origin == 2) - 0.3 * (origin == 3)
        school = level(latent, falling(16, 0.5))
        trade = level(0.7 * latent + 0.7 * rng.standard_normal(n), falling(14, 0.3))
        hours = 40 + 6 * rng.standard_normal(n) + 0.1 * (age - 40)
        for name, codes, many in (
            ("place", town, count), ("origin", origin, 5), ("language", language, 10),
            ("school", school, 16), ("trade", trade, 14),
        ):  # fmt: skip
            names = tuple(structure.permutation(labels(name[0], many)).tolist())
            draft.put(listed(name, names), pick(names, codes))
        draft.put(whole("age", 17, 90), age)
        draft.put(whole("hours", 1, 99), hours)
        odds = 1.2 * latent + 0.05 * (age - 40) + 0.04 * (age > 40) * (hours - 40) - 1.0
        draft.put(flag("class"), binary(coin(odds + 0.8 * (trade == 3) * (age < 35), rng)))
        return draft

    return build


def _sparse(n: int, structure: Generator, rng: Generator) -> Draft:
    """40 counts, nearly all 0; what somebody counts depends on one of six topics."""
    draft, topic = Draft(), rng.integers(0, 6, n)
    rates = np.where(structure.random((6, 40)) < 0.1, 0.8, 0.01)
    for i in range(40):
        draft.put(whole(f"count{i:02d}", 0, 10, spikes=(0.0,)), rng.poisson(rates[topic, i]))
    draft.put(flag("class"), binary(flipped(topic < 2, 0.05, rng)))
    return draft


def _clusters(n: int, structure: Generator, rng: Generator) -> Draft:
    """Twelve numbers in seven clusters, and labels that go with the cluster."""
    draft, cluster = Draft(), rng.choice(7, n, p=falling(7, 0.6))
    centres, widths = structure.uniform(-3, 3, (7, 12)), structure.uniform(0.1, 0.6, (7, 12))
    for i in range(12):
        values = centres[cluster, i] + widths[cluster, i] * rng.standard_normal(n)
        draft.put(number(f"x{i:02d}", -6.0, 6.0), values)
    shown = np.where(rng.random(n) < 0.7, cluster, rng.integers(0, 7, n))
    draft.put(listed("shape", labels("shape", 7)), pick(labels("shape", 7), shown))
    draft.put(flag("class"), binary(flipped(cluster % 2 == 0, 0.1, rng)))
    return draft


def _parity(order: int, columns: int, noise: float) -> Build:
    """Uniform and skewed numbers, and a list; the class is a noisy parity at medians."""

    def build(n: int, structure: Generator, rng: Generator) -> Draft:
        draft, latents = Draft(), rng.standard_normal((n, columns))
        for i in range(columns):
            if i % 2:
                column = number(f"z{i:02d}", 0.0, 60.0, scale="log")
                draft.put(column, np.exp(latents[:, i]))
            else:
                draft.put(number(f"u{i:02d}", 0.0, 1.0), ndtr(latents[:, i]))
        chosen = sorted(structure.choice(columns, order, replace=False).tolist())
        odd = np.logical_xor.reduce(latents[:, chosen] > 0, axis=1)
        draft.put(listed("side", ("l", "m", "r")), pick(("l", "m", "r"), rng.integers(0, 3, n)))
        draft.put(flag("class"), binary(flipped(odd, noise, rng)))
        draft.truth = Truth(parity=tuple(draft.columns[i].name for i in chosen))
        return draft

    return build


def _codes(n: int, structure: Generator, rng: Generator) -> Draft:
    """Rentals: a category follows from one of 25 codes; the end is the start plus the days."""
    codes, kinds = labels("code", 25), labels("kind", 5)
    kind_of = structure.permutation(np.arange(25) % 5)
    code = rng.choice(25, n, p=falling(25, 0.5))
    start = rng.integers(0, 200, n)
    days = np.minimum(rng.poisson(2 + 3 * kind_of[code]), 40)
    price = (1 + days) * (10 + 5 * kind_of[code]) * np.exp(0.2 * rng.standard_normal(n))
    draft = Draft()
    draft.put(listed("code", codes), pick(codes, code))
    draft.put(listed("kind", kinds), pick(kinds, kind_of[code]))
    draft.put(whole("start", 0, 199), start)
    draft.put(whole("days", 0, 40), days)
    draft.put(whole("end", 0, 239), start + days)
    draft.put(number("price", 0.0, 5_000.0, step=0.01), price)
    draft.put(flag("late"), binary(coin(0.2 * days - 2.0 + (start > 150), rng)))
    mapping = {codes[i]: kinds[kind_of[i]] for i in range(25)}
    draft.truth = Truth(
        rules=(
            Determines(source="code", result="kind", mapping=mapping),
            Sum(total="end", left="start", right="days"),
            AtMost(low="start", high="end"),
        )
    )
    return draft


def _rare(n: int, structure: Generator, rng: Generator) -> Draft:
    """A target that about .2 % of rows have, from eight of twelve columns."""
    draft, latents = Draft(), rng.standard_normal((n, 12))
    for i in range(9):
        draft.put(number(f"x{i}", -5.0, 5.0), latents[:, i])
    for i in range(9, 12):
        draft.put(flag(f"f{i}"), binary(latents[:, i] > 0.8))
    weights = structure.uniform(-1.0, 1.0, 8)
    odds = 1.2 * latents[:, 2:10] @ weights
    bar = 1.2 * float(np.linalg.norm(weights)) * 2.88  # the normal's upper .2 %
    draft.put(flag("class"), binary(odds > bar))
    return draft


def _additive(n: int, structure: Generator, rng: Generator) -> Draft:
    """A target from an additive logistic of 24 columns of all kinds."""
    draft, odds = Draft(), np.full(n, -1.0)
    for i in range(24):
        latent = rng.standard_normal(n)
        weight = structure.normal(0.0, 0.5)
        odds += weight * (latent if i % 2 else latent**2 - 1.0)
        _put_mixed(draft, i, latent, structure)
    draft.put(flag("class"), binary(coin(odds, rng)))
    return draft


def _blocks(n: int, structure: Generator, rng: Generator) -> Draft:
    """100 binary columns in 20 blocks of five that share a latent number."""
    draft, names = Draft(), [[f"b{block:02d}_{i}" for i in range(5)] for block in range(20)]
    for block in names:
        shared = rng.standard_normal(n)
        for name in block:
            own = 0.93 * shared + np.sqrt(1 - 0.93**2) * rng.standard_normal(n)
            draft.put(flag(name), binary(own > structure.uniform(-0.7, 0.7)))
    pairs = [pair for block in names for pair in combinations(block, 2)]
    draft.truth = Truth(strong_pairs=tuple(pairs))
    return draft


def _factors(n: int, structure: Generator, rng: Generator) -> Draft:
    """40 numbers that follow from five."""
    draft, shared = Draft(), rng.standard_normal((n, 5))
    loadings = structure.standard_normal((5, 40)) * (structure.random((5, 40)) < 0.4)
    for i in range(40):
        values = shared @ loadings[:, i] + 0.5 * rng.standard_normal(n)
        draft.put(number(f"x{i:02d}", -12.0, 12.0), values)
    draft.put(flag("class"), binary(coin(2.0 * shared[:, 0] + shared[:, 1], rng)))
    return draft


def _heaps(n: int, structure: Generator, rng: Generator) -> Draft:
    """Years and whole numbers that people round to fives and tens, and a grid of quarters."""
    draft, rounds = Draft(), rng.random(n)
    older = rng.standard_normal(n)
    born = 1965 - 15 * older + 3 * rng.standard_normal(n)
    weight = 75 + 6 * older + 12 * rng.standard_normal(n)
    income = np.exp(7.6 + 0.3 * older + 0.5 * rng.standard_normal(n))
    draft.put(whole("born", 1915, 2005), np.where(rounds < 0.2, np.round(born / 10) * 10, born))
    draft.put(whole("weight", 30, 180), np.where(rounds < 0.6, np.round(weight / 5) * 5, weight))
    draft.put(
        whole("income", 0, 40_000, scale="log"),
        np.where(rounds < 0.8, np.round(income / 100) * 100, income),
    )
    hours = np.where(rounds < 0.5, 40.0, 35 + 6 * rng.standard_normal(n) - 4 * older)
    draft.put(number("hours", 0.0, 80.0, step=0.25, spikes=(40.0,)), hours)
    draft.put(whole("children", 0, 9), rng.poisson(1.2 + 0.4 * np.tanh(older)))
    draft.put(flag("rounds"), binary(rounds < 0.6))
    draft.put(flag("class"), binary(coin(1.5 * older - 0.5 + (hours == 40.0), rng)))
    return draft


TUNING_MAKERS: dict[str, tuple[int, str, Build]] = {
    "tuning_small": (2_000, "class", _network(8, 2)),
    "tuning_network_a": (20_000, "class", _network(12, 2)),
    "tuning_network_b": (10_000, "class", _network(16, 3)),
    "tuning_skewed": (20_000, "class", _skewed),
    "tuning_many_labels": (15_000, "class", _many_labels),
    "tuning_places_a": (30_000, "class", _places(40, 0.9)),
    "tuning_places_b": (12_000, "class", _places(25, 0.7)),
    "tuning_sparse": (8_000, "class", _sparse),
    "tuning_clusters": (12_000, "class", _clusters),
    "tuning_parity2": (10_000, "class", _parity(2, 8, 0.10)),
    "tuning_parity3": (30_000, "class", _parity(3, 9, 0.05)),
    "tuning_parity4": (40_000, "class", _parity(4, 12, 0.05)),
    "tuning_codes": (8_000, "late", _codes),
    "tuning_rare": (100_000, "class", _rare),
    "tuning_additive": (200_000, "class", _additive),
    "tuning_blocks": (5_000, "b00_0", _blocks),
    "tuning_factors": (10_000, "class", _factors),
    "tuning_heaps": (20_000, "class", _heaps),
}
