"""How many processors a process computes on; light, since torch must not be there yet."""

from __future__ import annotations

import os


def limit_threads(workers: int = 1) -> None:
    """Share the processors among `workers`; to be called before torch is imported."""
    processors = os.cpu_count() or 1
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, processors // workers)))
    # Threads that wait for each other spin for some microseconds and then sleep. Sleeping at once
    # makes steps of small networks three to five times slower; spinning on makes everything as much
    # slower when another process keeps a processor busy.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
