"""Choosing the best of two runs: by real rows one record decides, by noisy scores none can.

The output of "train two, release the better one" holds the choice. Chosen by exact scores, the
chance that the second run is released goes from 0 to 1 with one record, whatever ε each run has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from torch import Tensor

from core.encoding.codec import Codec
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import Mechanism
from core.privacy.mechanisms.marginals import Marginals
from core.privacy.mechanisms.noise import NoiseKind, NoiseSource
from core.quality.metrics.noisy import NoisyCells, SyntheticCells, ranked
from core.schema.column import Column, Kind
from core.schema.schema import Domain
from tests.mutants.broken_privacy import Quieter
from tests.mutants.broken_selection import LooksAtRealRows, PaysForOneMarginal
from tests.privacy import toys
from tests.privacy.harness import Caught, check_distinguishing

pytestmark = pytest.mark.slow

N, DELTA = 40, 0.02
DRAWS = {1: 20_000, 8: 8_000}  # by columns: 8 have 36 marginals to score at each draw
LABELS = ("f", "m", "x")
Pick = Callable[[NoisyCells, Mapping[str, SyntheticCells]], str]


def world(columns: int) -> Codec:
    """Columns of three labels each, all alike in every record of the tests below."""
    return Codec(
        Domain(
            columns=tuple(
                Column(name=f"c{i}", kind=Kind.CATEGORY, categories=LABELS) for i in range(columns)
            )
        )
    )


def people(codec: Codec) -> Any:
    """20 records of all f, 20 of all m."""
    column = ["f", "m"] * (N // 2)
    names = [block.column.name for block in codec.blocks]
    return codec.encode(pd.DataFrame({name: pd.Series(column, dtype="str") for name in names}))


def runs(mechanism: Marginals, codec: Codec) -> dict[str, SyntheticCells]:
    """Two synthetic tables of 80 records: "a" is nearer by one record of all f, "b" without it."""
    made = {}
    for name, counts in {"a": (40, 39, 1), "b": (38, 41, 1)}.items():
        column = pd.Series(np.repeat(LABELS, counts), dtype="str")
        codes = codec.encode(pd.DataFrame({b.column.name: column for b in codec.blocks}))
        found = mechanism.statistic(codes, torch.ones(80)).tolist()
        made[name] = SyntheticCells(key="k", rows=80, counts=tuple(found))
    return made


@dataclass
class Drawn(Mechanism):
    """`draws` releases in one.

    As one release its Δ would be larger by √draws; it is stated for one, because the entries are
    read as independent releases.
    """

    inner: Mechanism
    draws: int
    noise: NoiseKind = "gaussian"

    @property
    def sensitivity(self) -> float:
        return self.inner.sensitivity

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        return self.inner.statistic(rows, mask).repeat(self.draws, 1)  # [draws, cells]


def picks(
    there: bool,
    *,
    columns: int = 1,
    pick: Pick | None = None,
    wrap: Callable[[Mechanism], Mechanism] = lambda mechanism: mechanism,
    source: NoiseSource | None = None,
) -> np.ndarray:
    """1 where run a was picked, of many independent releases of a real `PrivateTable`.

    The first record, which is all f, is there or is ⊥.
    """
    codec = world(columns)
    inner = Marginals.of(codec, [block.column.name for block in codec.blocks])
    mechanism = Drawn(wrap(inner), DRAWS[columns])
    present = np.arange(N) >= (0 if there else 1)
    plan = toys.plan(N, [toys.phase()])
    private_table = PrivateTable(
        people(codec), codec.domain, plan, noise_source=source, present=present
    )
    released = private_table.release("sum", mechanism).numpy()
    made, sizes = runs(inner, codec), inner.sizes  # worked out once, not for each draw

    def cells(counts: np.ndarray, std: float) -> NoisyCells:
        return NoisyCells(key="k", n=N, noise_std=std, sizes=sizes, counts=tuple(counts.tolist()))

    choose = pick or (lambda noisy, tables: next(iter(ranked(noisy, tables))))
    if pick is LOOK:
        exact = mechanism.statistic(people(codec), torch.from_numpy(present)).numpy()[0]
        choose = LooksAtRealRows(cells(exact, 1e-9))
    chosen = [choose(cells(one, mechanism.sensitivity), made) for one in released]
    return np.array([float(name == "a") for name in chosen])


def LOOK(_released: NoisyCells, _made: Mapping[str, SyntheticCells]) -> str:
    """Stands for the choice by real rows, which only `picks` can see."""
    raise AssertionError


EPSILON = get_epsilon_gaussian(1.0, DELTA)  # the plan's noise multiplier is 1


def test_a_choice_by_real_rows_flips_for_certain_and_is_caught() -> None:
    inside, outside = picks(True, pick=LOOK), picks(False, pick=LOOK)
    assert inside.mean() == 1.0 and outside.mean() == 0.0
    with pytest.raises(Caught):
        check_distinguishing(inside, outside, epsilon=EPSILON, delta=DELTA)
    with pytest.raises(Caught):  # no ε that anybody would claim covers it
        check_distinguishing(inside, outside, epsilon=6.0, delta=DELTA)


@pytest.mark.parametrize("columns", [1, 8])
def test_a_choice_by_noisy_scores_stays_within_its_claim(columns: int) -> None:
    inside, outside = picks(True, columns=columns), picks(False, columns=columns)
    assert inside.mean() > outside.mean()  # the score does see the record …
    check_distinguishing(inside, outside, epsilon=EPSILON, delta=DELTA)
    check_distinguishing(1 - outside, 1 - inside, epsilon=EPSILON, delta=DELTA)


def test_a_tenth_of_the_noise_is_caught() -> None:
    quiet = Quieter(0.1)
    inside, outside = picks(True, source=quiet), picks(False, source=quiet)
    with pytest.raises(Caught):
        check_distinguishing(inside, outside, epsilon=EPSILON, delta=DELTA)


def test_noise_for_one_marginal_of_many_is_caught() -> None:
    """With 8 columns there are 36 marginals: a sixth of the noise that is due."""
    inside, outside = (picks(one, columns=8, wrap=PaysForOneMarginal) for one in (True, False))
    with pytest.raises(Caught):
        check_distinguishing(inside, outside, epsilon=EPSILON, delta=DELTA)
