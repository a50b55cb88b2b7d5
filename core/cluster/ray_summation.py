"""Statistics over all records, their blocks shared with the tasks of a Ray cluster.

A block's rows go to a task and its sum comes back. Both are private and stay in the cluster: they
lie in Ray's object store while they are needed, are never stored by anybody, and nothing is added
to them there. Sums are added here in the blocks' order, so the statistic is the same to the last
bit as on one machine; noise is added to it once, by the guarded table that asked.

This process computes blocks too. So it comes to an end also where other runs leave the cluster no
room for tasks, and none of them waits for another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.cluster.ray_config import configured_cluster
from core.encoding.person_rows import PersonRows
from core.privacy.mechanisms.additive import Statistic
from core.privacy.summation import (
    ChunkedStatistic,
    InOneProcess,
    InThreads,
    Summation,
    Tick,
    added,
    in_threads,
)

if TYPE_CHECKING:
    from torch import Tensor


AHEAD = 2  # blocks that a task may be ahead: their rows and sums lie in memory
GRACE_SECONDS = 2.0  # for a task that may have begun, before its block is computed here as well


@dataclass(frozen=True)
class InRay:
    """A `core.privacy.summation.Summation` by this process and tasks of one processor each.

    Attributes:
      tasks: how many at a time, ≥ 1.
      connect: gives the module `ray` once it is connected; asked when there is more than one block.
    """

    tasks: int
    connect: Callable[[], Any]

    def total(self, work: ChunkedStatistic, tick: Tick) -> Tensor:
        """See `Summation`."""
        if work.device != "cpu":
            return InOneProcess().total(work, tick)
        if work.blocks == 1:
            return InThreads().total(work, tick)
        shared = _Shared(self.connect(), self.tasks, work)
        try:
            return added(shared.sums(tick))
        finally:
            shared.drop()


def configured_summation() -> Summation | None:
    """By tasks of the cluster that started this worker, where it is to have some; else None."""
    cluster, address = configured_cluster(), os.environ.get("RAY_ADDRESS")
    if cluster is None or cluster.tasks == 0 or not address:
        return None

    def connect() -> Any:
        import ray  # an extra: a worker that a cluster started has it

        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False, logging_level="WARNING")
        return ray

    return InRay(cluster.tasks, connect)


class _Shared:
    """One statistic in the hands of several."""

    def __init__(self, ray: Any, tasks: int, work: ChunkedStatistic) -> None:
        self.ray, self.tasks, self.work = ray, tasks, work
        self.block_of = ray.remote(num_cpus=1)(_block)
        self.statistic = ray.put(work.statistic)
        self.given: dict[int, Any] = {}  # blocks with a task, and what will hold their sums
        self.done: dict[int, Tensor] = {}  # sums of blocks whose turn has not come
        self.next = 0  # the first block that nobody has yet

    def sums(self, tick: Tick) -> Iterator[Tensor]:
        """The blocks' sums in their order."""
        for block in range(self.work.blocks):
            while block not in self.done:
                self._give(block)
                self._collect()
                if block not in self.done:
                    self._help(block)
            *_, (_, stop) = self.work.chunks(block)
            tick(stop)
            yield self.done.pop(block)

    def drop(self) -> None:
        """Give up what is still under way, and free what lies in the cluster."""
        for answer in self.given.values():
            self.ray.cancel(answer)
        self.given.clear()
        del self.statistic

    def _give(self, block: int) -> None:
        """Hand blocks to tasks, no more than may lie in memory before the present one is done."""
        last = min(self.work.blocks, block + AHEAD * (self.tasks + 1))
        while len(self.given) < self.tasks and self.next < last:
            part = part_of(self.work, self.next)
            self.given[self.next] = self.block_of.remote(self.statistic, part)
            self.next += 1

    def _collect(self) -> None:
        """Take the sums that are there."""
        blocks = {answer: block for block, answer in self.given.items()}
        if not blocks:
            return
        there, _ = self.ray.wait(list(blocks), num_returns=len(blocks), timeout=0)
        for answer in there:
            block = blocks[answer]
            del self.given[block]
            self.done[block] = self._sum_of(answer, block)

    def _sum_of(self, answer: Any, block: int) -> Tensor:
        """What a task came to; a block whose task was lost with its machine is computed here."""
        import torch  # pages import this module's neighbours, and compute nothing

        try:
            # a copy, so that nothing keeps the cluster's
            return torch.from_numpy(np.array(self.ray.get(answer)))
        except self.ray.exceptions.RayTaskError:
            raise  # the statistic's own fault, as it would be here
        except self.ray.exceptions.RayError as error:
            print(f"a task of the cluster was lost: {type(error).__name__}", file=sys.stderr)
            (total,) = in_threads(lambda _: self.work.block(block), 1)
            return total

    def _help(self, block: int) -> None:
        """Compute blocks here: those that nobody has yet, else the one that is waited for."""
        import torch  # pages import this module's neighbours, and compute nothing

        last = min(self.work.blocks, block + AHEAD * (self.tasks + 1))
        mine = list(range(self.next, min(last, self.next + torch.get_num_threads())))
        self.next += len(mine)
        if not mine:
            if self._answered(block):
                return
            mine = [block]
            self.ray.cancel(self.given.pop(block))
        self.done |= zip(
            mine, in_threads(lambda at: self.work.block(mine[at]), len(mine)), strict=True
        )

    def _answered(self, block: int) -> bool:
        """Whether a task's sum comes within the time in which it was likely begun."""
        there, _ = self.ray.wait([self.given[block]], timeout=GRACE_SECONDS)
        return bool(there)


def _block(statistic: Statistic, part: ChunkedStatistic) -> NDArray[np.float64]:
    """The sum of one block, in a task."""
    import torch  # pages import this module's neighbours, and compute nothing

    torch.set_num_threads(1)  # how many share a sum decides how it is rounded
    total: NDArray[np.float64] = replace(part, statistic=statistic).block(0).numpy()
    return total


def part_of(work: ChunkedStatistic, block: int) -> ChunkedStatistic:
    """A block as a whole of its own: with its rows alone, and without the statistic.

    Args:
      block: which, 0 ≤ block < work.blocks.
    """
    chunks = list(work.chunks(block))
    start, stop = chunks[0][0], chunks[-1][1]
    records = work.records
    first, last, people = start, stop, None
    if records.people is not None:
        offsets = records.people.offsets[start : stop + 1]
        first, last, people = int(offsets[0]), int(offsets[-1]), PersonRows(offsets - offsets[0])
    present = None if records.present is None else records.present[start:stop]
    part = replace(
        records,
        codes=records.codes.slice(first, last),
        n=stop - start,
        people=people,
        present=present,
    )
    return replace(work, records=part, statistic=None)  # type: ignore[arg-type]
