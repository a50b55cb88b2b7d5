"""Sums by blocks: one fixed order of addition, whoever computes the blocks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from core.privacy import summation
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import NotAdditiveError, Rows
from core.privacy.summation import (
    ChunkedStatistic,
    InOneProcess,
    InThreads,
    Records,
    Summation,
    added,
    in_threads,
)
from tests.privacy import toys
from tests.privacy.deterministic_noise import DeterministicNoise

N, STEP = 5003, 10


@dataclass
class Uneven(toys.ClippedSum):
    """Sums of numbers of very different size, so that each order of addition rounds another way."""

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        x = toys.values_of(rows) * mask.double()[:, None]
        return torch.cat([x.sum(dim=0), (x.exp() * x * 1e3).sum(dim=0)])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summation, "BLOCK_CHUNKS", 7)


def work(n: int = N, step: int = STEP) -> ChunkedStatistic:
    return ChunkedStatistic(Records(toys.random_table(n, 3), n), Uneven(radius=1e6), step=step)


@dataclass(frozen=True)
class AsTheyCome:
    """The broken twin: adds blocks in the order in which they happen to be done."""

    seed: int

    def total(self, work: ChunkedStatistic, tick: Callable[[int], None]) -> Tensor:
        order = list(range(work.blocks))
        random.Random(self.seed).shuffle(order)
        return added(work.block(block) for block in order)


@dataclass(frozen=True)
class AllChunks:
    """Another broken twin: one running sum over all chunks, which cannot be shared."""

    def total(self, work: ChunkedStatistic, tick: Callable[[int], None]) -> Tensor:
        def chunks() -> Iterator[Tensor]:
            for block in range(work.blocks):
                for start, stop in work.chunks(block):
                    rows, mask = work.records.part(start, stop, together=True)
                    yield work.statistic.statistic(rows, torch.from_numpy(mask))

        return added(chunks())


def total(of: Summation, ticks: list[int] | None = None) -> Tensor:
    return of.total(work(), (lambda _: None) if ticks is None else ticks.append)


@pytest.mark.parametrize("threads", [1, 2, 3, 200])
def test_the_sum_is_the_same_to_the_last_bit_whoever_computes_it(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert torch.equal(total(InOneProcess()), total(InThreads()))


def test_threads_leave_the_caller_its_own_number(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    list(in_threads(lambda number: torch.ones(3) * number, 5))
    assert torch.get_num_threads() == before
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert list(in_threads(lambda number: number, 20)) == list(range(20))


def test_another_order_is_seen() -> None:
    """Else the test above could not fail."""
    honest = total(InOneProcess())
    assert torch.allclose(honest, total(AsTheyCome(1)), rtol=1e-9)
    assert any(not torch.equal(honest, total(AsTheyCome(seed))) for seed in range(5))
    assert not torch.equal(honest, total(AllChunks()))


def test_a_table_of_one_block_is_summed_as_one_running_sum() -> None:
    few = work(n=70)
    assert few.blocks == 1
    one = InOneProcess().total(few, lambda _: None)
    assert torch.equal(one, AllChunks().total(few, lambda _: None))


@pytest.mark.parametrize("n", [1, 9, 10, 69, 70, 71, 140, 5003])
def test_every_record_is_in_one_chunk(n: int) -> None:
    parts = work(n)
    chunks = [chunk for block in range(parts.blocks) for chunk in parts.chunks(block)]
    assert [start for start, _ in chunks] == list(range(0, n, STEP))
    assert [stop for _, stop in chunks] == [*range(STEP, n, STEP), n]


@pytest.mark.parametrize("of", [InOneProcess(), InThreads()])
def test_progress_is_told_in_order_and_may_stop_it(of: Summation) -> None:
    ticks: list[int] = []
    total(of, ticks)
    assert ticks == sorted(ticks) and ticks[-1] == N

    def stop(records: int) -> None:
        if records > 1000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        of.total(work(), stop)


@pytest.mark.parametrize("of", [InOneProcess(), InThreads()])
def test_a_statistic_that_is_no_sum_is_refused_by_all(of: Summation) -> None:
    @dataclass
    class Mean(toys.ClippedSum):
        def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
            return super().statistic(rows, mask) / mask.sum() * 1e3

    with pytest.raises(NotAdditiveError, match="Mean"):
        of.total(replace(work(), statistic=Mean()), lambda _: None)


def test_the_rest_of_a_sum_does_not_see_who_is_left_out() -> None:
    """Blocks without the record are the same to the last bit; its own moves by its share alone."""
    codes, present = toys.random_table(N, 3), np.ones(N, dtype=bool)
    present[1234] = False
    whole = work()
    without = replace(whole, records=Records(codes, N, present=present))
    one = replace(whole, records=Records(codes.slice(1234, 1235), 1))
    for block in range(whole.blocks):
        first, last = next(whole.chunks(block))[0], list(whole.chunks(block))[-1][1]
        gap = whole.block(block) - without.block(block)
        if first <= 1234 < last:
            assert torch.allclose(gap, one.block(0), rtol=1e-9, atol=1e-9)
        else:
            assert not gap.any()


def test_a_release_is_the_same_whoever_sums() -> None:
    plan = toys.plan(N, [toys.phase()])

    def released(of: Summation | None) -> Tensor:
        table = PrivateTable(
            toys.random_table(N, 3),
            toys.domain(),
            plan,
            chunk_rows=STEP,
            noise_source=DeterministicNoise(1),
            summation=of,
        )
        return table.release("sum", toys.ClippedSum())

    assert torch.equal(released(None), released(InThreads()))
