"""Sums over all records, by blocks that are added in one fixed order, whoever computes them.

Addition of floating-point numbers depends on its order. So that is fixed by public numbers alone:
records are read in chunks, `BLOCK_CHUNKS` chunks are added one after the other to the sum of a
block, and blocks one after the other. Processes, threads or machines that share the blocks come to
the same statistic, to the last bit. Only a graphics card that runs out of memory adds in another
order: see `ChunkedStatistic`.

Source: fixed reduction trees, as in Demmel and Nguyen, "Fast reproducible floating-point
summation", 2013, §I.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.encoding.person_rows import PersonRows
from core.privacy.mechanisms.additive import Rows, Statistic, check_parts

if TYPE_CHECKING:
    from torch import Tensor


LEAST_ROWS = 256  # fewer records at once are not worth a graphics card
BLOCK_CHUNKS = 32  # another number rounds sums of more than so many chunks another way

Result = TypeVar("Result")
Tick = Callable[[int], None]  # told how many records were read


@dataclass(frozen=True)
class Records:
    """All records in the table's order; `present` is False where one is ⊥, None without any."""

    codes: Rows
    n: int
    people: PersonRows | None = None
    present: NDArray[np.bool_] | None = None

    def at(self, indices: NDArray[np.int64]) -> Records:
        """One row of each record at these indices, int64 [p], and nobody at -1, as p records."""
        somebody = indices >= 0
        chosen = np.where(somebody, indices, 0)
        rows = chosen if self.people is None else self.people.firsts[chosen]
        present = somebody if self.present is None else somebody & self.present[chosen]
        return Records(self.codes.take(rows), len(indices), present=present)

    def part(self, start: int, stop: int, *, together: bool) -> tuple[Rows, NDArray[np.float32]]:
        """The rows of records start … stop - 1, and what each counts for."""
        people = self.people
        here = np.ones(stop - start, dtype=np.float32)
        if self.present is not None:
            here *= self.present[start:stop]
        if people is None:
            return self.codes.slice(start, stop), here
        if not together:
            return self.codes.take(people.firsts[start:stop]), here
        first, last = people.offsets[start], people.offsets[stop]
        weights = people.weights[first:last] * np.repeat(here, people.counts[start:stop])
        return self.codes.slice(int(first), int(last)), weights


@dataclass(frozen=True)
class ChunkedStatistic:
    """A statistic over all records, and how it is cut up.

    Attributes:
      records: only what adds noise to the sum may be handed this.
      step: records of a chunk, ≥ 1; a multiple of the statistic's group size.
      checked: whether its parts were compared already, for these records.
    """

    records: Records
    statistic: Statistic
    step: int
    together: bool = True
    device: str = "cpu"
    checked: bool = False

    @property
    def blocks(self) -> int:
        """How many blocks there are, ≥ 1."""
        return -(-self.records.n // (self.step * BLOCK_CHUNKS))

    def chunks(self, block: int) -> Iterator[tuple[int, int]]:
        """First record and the one after the last of each chunk of a block, 0 ≤ block < blocks."""
        first = block * self.step * BLOCK_CHUNKS
        last = min(first + self.step * BLOCK_CHUNKS, self.records.n)
        for start in range(first, last, self.step):
            yield start, min(start + self.step, last)

    def block(self, block: int, tick: Tick = lambda stop: None) -> Tensor:
        """The sum of one block, float64 on the CPU; the first also checks parts not yet checked.

        Raises:
          NotAdditiveError: the statistic is not the sum of its parts.
        """
        import torch  # pages import this module, and compute nothing

        def parts() -> Iterator[Tensor]:
            for start, stop in self.chunks(block):
                yield self._sum(start, stop, self.device)
                tick(stop)

        with torch.no_grad():
            return added(parts())

    def _sum(self, start: int, stop: int, device: str) -> Tensor:
        """Over some records at once; in halves where a graphics card has no memory for them all.

        How many a card takes at once depends on their number and width alone. Nothing was released
        yet, so nothing is charged again; the sum is the same but for rounding.
        """
        import torch  # pages import this module, and compute nothing

        try:
            codes, weights = self.records.part(start, stop, together=self.together)
            rows, mask = codes.to(device), torch.from_numpy(weights).to(device)
            if start == 0 and not self.checked:
                check_parts(self.statistic, rows, mask)
            return self.statistic.statistic(rows, mask).detach().to("cpu", torch.float64)
        except torch.OutOfMemoryError:
            if device == "cpu":
                raise
        torch.cuda.empty_cache()  # here, where nothing of the attempt is held any more
        size = self.statistic.group_size
        half = (stop - start) // 2 // size * size
        if half < LEAST_ROWS:
            return self._sum(start, stop, "cpu")
        middle = start + half
        return self._sum(start, middle, device) + self._sum(middle, stop, device)


class Summation(Protocol):
    """Who computes the blocks; the sum is the same to the last bit whoever does."""

    def total(self, work: ChunkedStatistic, tick: Tick) -> Tensor:
        """`added` of the blocks' sums in their order, float64 on the CPU."""


@dataclass(frozen=True)
class InOneProcess:
    """One block after the other."""

    def total(self, work: ChunkedStatistic, tick: Tick) -> Tensor:
        """See `Summation`."""
        return added(work.block(block, tick) for block in range(work.blocks))


@dataclass(frozen=True)
class InThreads:
    """Blocks shared by as many threads as torch computes on, each on one processor."""

    def total(self, work: ChunkedStatistic, tick: Tick) -> Tensor:
        """See `Summation`."""
        if work.blocks == 1:
            return InOneProcess().total(work, tick)

        def sums() -> Iterator[Tensor]:
            with closing(in_threads(work.block, work.blocks)) as parts:
                for block, part in enumerate(parts):
                    *_, (_, stop) = work.chunks(block)
                    tick(stop)
                    yield part

        return added(sums())


def in_threads(work: Callable[[int], Result], count: int) -> Generator[Result, None, None]:
    """Results of work(0) … work(count - 1), in this order, by torch's number of threads."""
    import torch  # pages import this module, and compute nothing

    threads = torch.get_num_threads()
    with threads_of_one_processor(threads) as pool:  # where there is one, it is a thread too
        waiting: deque[Future[Result]] = deque()
        try:
            for number in range(count):
                waiting.append(pool.submit(work, number))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def added(parts: Iterable[Tensor]) -> Tensor:
    """The sum of one part or more, added from the first to the last; a tensor of its own."""
    total: Tensor | None = None
    for part in parts:
        if total is None:
            total = part.clone()
        else:
            total += part
    if total is None:
        raise ValueError("There is nothing to add.")
    return total


@contextmanager
def threads_of_one_processor(count: int) -> Iterator[Executor]:
    """Threads whose results are, to the last bit, those of one processor."""
    import torch  # pages import what imports this module, and compute nothing

    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield pool
    finally:
        torch.set_num_threads(threads)  # what one thread sets, every later one begins with
