"""How fast this machine is, by one tiny product of matrices, kept in the workspace."""

from __future__ import annotations

import json
import platform
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

SIZE, TIMES = 256, 40  # small enough to stay out of sight
FILE = "machine_speed.json"


def matrix_seconds() -> float:
    """Seconds that a product of two float32 matrices [256, 256] takes here, the best of forty.

    On one thread: several wait for one another where other work runs, fifty times as long was seen.
    """
    square = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)
    took = []
    with threadpool_limits(limits=1):
        for _ in range(TIMES):
            start = time.perf_counter()
            square @ square
            took.append(time.perf_counter() - start)
    return min(took)


def machine_seconds(folder: Path) -> float:
    """The same, timed once a machine and kept in a folder.

    Args:
      folder: of the workspace; one that moves to another machine is timed there anew.
    """
    path, machine = folder / FILE, f"{platform.node()} {platform.machine()}"
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if known["machine"] == machine and known["seconds"] > 0.0:
            return float(known["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not timed yet, or not readable: it takes milliseconds
    seconds = matrix_seconds()
    try:
        path.write_text(json.dumps({"machine": machine, "seconds": seconds}), encoding="utf-8")
    except OSError:
        pass  # a workspace that cannot be written is timed at each look
    return seconds
