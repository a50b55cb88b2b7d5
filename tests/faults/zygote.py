"""A process that has imported everything once and forks a worker for each line it reads.

    python -m tests.faults.zygote

A line is JSON: `run`, `home`, and when the worker ends itself by a signal that nothing can catch:
`phase` (as it begins), `event` (the k-th that it tells) or `seconds` (wherever it is by then).
Answers each line with the worker's exit status, once it is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch

import core.runs.execution.lmdp_certificate  # noqa: F401  what workers import as they go
from core.models.events import FitEvent, Signal
from core.models.registry import cards, synthesizer
from core.runs.execution import worker
from core.runs.execution.reporter import Reporter
from tests.runs import toy

IDLE = ("-c", "pass")  # the next queued run is the test's to start


def main() -> None:
    torch.set_num_threads(1)
    for card in cards():
        synthesizer(card.id).trainer()
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            work(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(status, flush=True)


def work(asked: dict[str, Any]) -> None:
    """One worker, in a process of its own; does not return."""
    log = Path(asked["home"], "runs", asked["run"], "worker.log")
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    report, told = Reporter.__call__, 0

    def deadly(self: Reporter, event: FitEvent) -> Signal:
        nonlocal told
        told += 1
        named = event.kind == "phase" and event.data["name"] == asked.get("phase")
        if named or told == asked.get("event"):
            os.kill(os.getpid(), signal.SIGKILL)
        return report(self, event)

    Reporter.__call__ = deadly  # type: ignore[method-assign]
    if "seconds" in asked:
        signal.setitimer(signal.ITIMER_REAL, asked["seconds"])  # nobody handles it: it kills
    arguments = [asked["run"], "--home", asked["home"]]
    try:
        code = worker.main(arguments, compare=toy.compare, command=IDLE)
    except BaseException:
        import traceback  # only a worker that failed needs it

        traceback.print_exc()
        code = 1
    os._exit(code)


if __name__ == "__main__":
    main()
