"""Statistics shared with a cluster: one order of addition, one addition of noise."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from core.cluster import ray_summation
from core.cluster.ray_summation import InRay
from core.encoding.person_rows import PersonRows
from core.privacy import summation
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import NotAdditiveError
from core.privacy.summation import ChunkedStatistic, InOneProcess, Records, Summation
from tests.cluster import sums
from tests.cluster.conftest import Nodes
from tests.privacy import toys
from tests.privacy.deterministic_noise import DeterministicNoise

pytestmark = [
    pytest.mark.cluster,
    # Ray leaves files of its own open
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestWarning"),
]
N, STEP = 4200, 50  # 12 blocks


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summation, "BLOCK_CHUNKS", 7)


@pytest.fixture
def ray(nodes: Nodes) -> Iterator[Any]:
    import ray

    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


@pytest.fixture
def only_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process computes nothing itself."""

    def wait(shared: Any, block: int) -> None:
        shared.ray.wait([shared.given[block]], timeout=1.0)

    monkeypatch.setattr(ray_summation._Shared, "_help", wait)


def work(slow: float = 0.0) -> ChunkedStatistic:
    return ChunkedStatistic(Records(sums.table(N), N), sums.Uneven(1e6, slow=slow), step=STEP)


def total(of: Summation, slow: float = 0.0) -> Tensor:
    return of.total(work(slow), lambda _: None)


def released(of: Summation | None) -> Tensor:
    table = PrivateTable(
        sums.table(N),
        toys.domain(),
        toys.plan(N, [toys.phase()]),
        chunk_rows=STEP,
        noise_source=DeterministicNoise(1),
        summation=of,
    )
    return table.release("sum", sums.Uneven(1e6))


def test_the_sum_has_the_same_bits_for_any_number_of_tasks(
    nodes: Nodes, ray: Any, only_tasks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.add("one", cpus=2)
    nodes.add("two", cpus=2)
    torch.set_num_threads(1)
    alone = total(InOneProcess())
    for tasks in (1, 2, 4):
        assert torch.equal(total(InRay(tasks, lambda: ray)), alone), tasks
    # late blocks are done first
    assert torch.equal(total(InRay(4, lambda: ray), slow=0.1), alone)
    monkeypatch.setattr(ray_summation, "_Shared", sums.LastFirst)
    wrong = total(InRay(4, lambda: ray))
    assert not torch.equal(wrong, alone), "else the test could not fail"
    assert torch.allclose(wrong, alone, rtol=1e-9)


def test_noise_is_added_once_and_here(
    nodes: Nodes, ray: Any, only_tasks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.add("one", cpus=2)
    alone = released(None)
    assert torch.equal(released(InRay(2, lambda: ray)), alone)
    monkeypatch.setattr(ray_summation, "_block", sums.noisy_block)
    assert not torch.equal(released(InRay(2, lambda: ray)), alone), "else it could not fail"


def test_a_sum_ends_without_tasks_and_with_a_lost_node(
    nodes: Nodes, ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_summation, "GRACE_SECONDS", 0.1)
    alone = total(InOneProcess())
    assert torch.equal(total(InRay(2, lambda: ray)), alone)  # the head has no processors to lend
    nodes.add("one", cpus=2)
    threading.Timer(2.0, nodes.kill, ["one"]).start()
    began = time.monotonic()
    assert torch.equal(total(InRay(2, lambda: ray), slow=0.3), alone)
    assert time.monotonic() - began > 2.0, "the node was lost too late"


def test_nothing_stays_in_the_cluster(nodes: Nodes, ray: Any) -> None:
    from ray._private.internal_api import memory_summary

    nodes.add("one", cpus=2)
    big = ChunkedStatistic(
        Records(sums.table(70_000), 70_000), sums.Uneven(1e6, slow=0.05), step=1000
    )
    InRay(2, lambda: ray).total(big, lambda _: None)
    end = time.monotonic() + 20
    while "Plasma memory usage 0 MiB, 0 objects" not in memory_summary(stats_only=True):
        assert time.monotonic() < end, memory_summary(stats_only=True)
        time.sleep(0.2)


def test_what_is_no_sum_is_refused(nodes: Nodes, ray: Any, only_tasks: None) -> None:
    nodes.add("one")
    parts = ChunkedStatistic(Records(sums.table(N), N), sums.Mean(), step=STEP)
    with pytest.raises(NotAdditiveError, match="Mean"):
        InRay(1, lambda: ray).total(parts, lambda _: None)


@pytest.mark.parametrize("present", [None, np.arange(N) % 3 > 0])
def test_a_part_is_its_block(present: Any) -> None:
    counts = 1 + np.arange(N) % 4
    people = PersonRows(np.concatenate([[0], np.cumsum(counts)]))
    rows = sums.table(int(counts.sum()))
    for records, together in (
        (Records(rows.slice(0, N), N, present=present), True),
        (Records(rows, N, people, present), True),
        (Records(rows, N, people, present), False),
    ):
        whole = ChunkedStatistic(records, sums.Uneven(1e6), step=STEP, together=together)
        for block in range(whole.blocks):
            part = ray_summation.part_of(whole, block)
            sent = ray_summation._block(whole.statistic, part)
            assert (sent == whole.block(block).numpy()).all()
            assert part.statistic is None and part.blocks == 1
