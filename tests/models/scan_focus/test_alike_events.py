"""First and later events tell of each other where their counts agree, and only there."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch

from core.encoding.windows import FIRST, NEXT, PERSON
from core.models.steps.counting.alike_events import told_by_both
from core.models.steps.counting.counts import PairTarget

N, NOISE = 5000, 60.0
TOGETHER = np.array([[0.30, 0.02, 0.02], [0.02, 0.20, 0.04], [0.02, 0.03, 0.35]])
ROLES = {
    "sex": (PERSON, "sex", 0),
    "first ward": (FIRST, "ward", 0), "first code": (FIRST, "code", 0),
    "next ward": (NEXT, "ward", 0), "next code": (NEXT, "code", 0),
}  # fmt: skip


def scale(name: str, labels: int) -> SimpleNamespace:
    column = SimpleNamespace(name=name)
    gone = None if name == "sex" else labels
    block = SimpleNamespace(column=column, missing_state=gone)
    size = labels + (gone is not None)
    return SimpleNamespace(grid=SimpleNamespace(block=block), size=size, line=0)


SCALES = [scale("sex", 2), *(scale(name, 3) for name in list(ROLES)[1:])]
CODEC = SimpleNamespace(
    domain=SimpleNamespace(roles=ROLES), blocks=[one.grid.block for one in SCALES]
)


LAWS: dict[tuple[int, int], tuple[np.ndarray, float]] = {}  # of the pairs that were counted last


def counted(columns: tuple[int, int], law: np.ndarray, part: float, seed: int) -> PairTarget:
    """Noisy counts of so many of all records, the others being where there is no event."""
    LAWS[columns] = law, part
    shape = tuple(SCALES[c].size for c in columns)
    table = np.zeros(shape)
    table[: law.shape[0], : law.shape[1]] = law / law.sum() * part
    table[-1, -1] += 1.0 - part if shape != law.shape else 0.0
    noise = np.random.default_rng(seed).normal(0.0, NOISE / N, shape)
    return PairTarget(columns, torch.from_numpy(table + noise)[None].float(), NOISE / N)


def told(pairs: tuple[PairTarget, ...], codec: SimpleNamespace = CODEC) -> tuple[PairTarget, ...]:
    """Pairs as they are told, where columns alone are known from their first pair."""
    shares = [np.full(one.size, 1.0 / one.size) for one in SCALES]
    for pair in pairs:
        for side, column in enumerate(pair.columns):
            law, part = LAWS[pair.columns]
            shares[column] = np.append(law.sum(axis=1 - side) / law.sum() * part, 1.0 - part)
    return told_by_both(pairs, codec, SCALES, shares, N)


def error(pair: PairTarget, law: np.ndarray, part: float) -> float:
    made = pair.shares[0, : law.shape[0], : law.shape[1]].numpy()
    return float(np.abs(made - law / law.sum() * part).sum())


def test_alike_events_are_told_by_the_counts_of_both() -> None:
    before, after, stated = [], [], []
    for seed in range(40):
        pairs = (
            counted((1, 2), TOGETHER, 0.8, 2 * seed),
            counted((3, 4), TOGETHER, 0.4, 2 * seed + 1),
        )
        made = told(pairs)
        before.append(
            [error(pair, TOGETHER, part) for pair, part in zip(pairs, (0.8, 0.4), strict=True)]
        )
        after.append(
            [error(pair, TOGETHER, part) for pair, part in zip(made, (0.8, 0.4), strict=True)]
        )
        stated.append([pair.noise for pair in made])
        for old, new in zip(pairs, made, strict=True):  # where no event is, nothing changes
            assert torch.equal(old.shares[:, 3], new.shares[:, 3])
            assert torch.equal(old.shares[:, :, 3], new.shares[:, :, 3])
    ratio = np.mean(after, axis=0) / np.mean(before, axis=0)
    assert ratio[1] < 0.75 and ratio[0] < 1.0  # more is learned of what fewer people have
    assert np.mean(stated, axis=0)[1] < 0.8 * NOISE / N


def test_events_that_differ_keep_their_own_counts() -> None:
    other = TOGETHER[::-1].copy()
    kept = 0
    for seed in range(20):
        pairs = (
            counted((1, 2), TOGETHER, 0.8, 2 * seed),
            counted((3, 4), other, 0.4, 2 * seed + 1),
        )
        made = told(pairs)
        kept += all(torch.equal(a.shares, b.shares) for a, b in zip(pairs, made, strict=True))
    assert kept == 20


def test_a_persons_labels_are_all_told() -> None:
    law = np.array([[0.25, 0.25, 0.1], [0.2, 0.0, 0.2]])  # of one sex nobody is in the second
    first, later = [], []
    for seed in range(40):
        pairs = (
            counted((0, 1), law, 0.8, 2 * seed), counted((0, 3), law, 0.3, 2 * seed + 1),
        )  # fmt: skip
        made = told(pairs)
        first.append([abs(float(pairs[1].shares[0, 1, 1])), abs(float(made[1].shares[0, 1, 1]))])
        later.append(float(made[1].shares[0, 1, 2]))
    assert np.mean(first, axis=0)[1] < 0.7 * np.mean(first, axis=0)[0]
    assert abs(np.mean(later) - 0.3 * law[1, 2] / law.sum()) < 0.01


def test_other_tables_and_lonely_pairs_stay() -> None:
    pairs = (counted((1, 2), TOGETHER, 0.8, 0),)
    assert told(pairs) == pairs
    plain = SimpleNamespace(domain=SimpleNamespace(roles={}), blocks=CODEC.blocks)
    both = (*pairs, counted((3, 4), TOGETHER, 0.4, 1))
    assert told(both, plain) == both
