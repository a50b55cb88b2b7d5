"""Threads that compute side by side, each on one processor."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager


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
