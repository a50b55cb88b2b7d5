"""How a worker that a cluster started comes by its run, and with whom it ends.

The cluster decides when and where a worker starts; who holds the run is decided in the run store
alone, by one compare-and-set. So a worker that was started twice, or on another machine while the
first is only cut off, never works on what somebody else holds.
"""

from __future__ import annotations

import os
import threading
import time

from core.runs.errors import NotFoundError
from core.runs.events import State
from core.runs.storage.processes.process import STALE_SECONDS
from core.runs.storage.store import RunStore

PATIENCE = 1.5 * STALE_SECONDS  # a holder that is alive by then is no lost one
LOOK_SECONDS = 1.0


def take(store: RunStore, run_id: str) -> bool:
    """Make a run this process's own, from the queue or from a machine that was lost.

    A lost run is taken only where going on spends nothing: to pay again is for people to decide.
    One that still seems to run elsewhere is waited for until its heartbeats have been missing for
    long enough, or until it is clear that they are not.

    Returns:
      False when the run is not for this process: paused, ended, deleted or in good hands.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            run = store.run(run_id)
        except NotFoundError:
            return False
        if run.state is State.QUEUED or (run.state is State.LOST and run.resumable):
            if store.claim(run_id, slots=None, states=(run.state,)):
                return True
        elif run.state is not State.RUNNING or time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)


def end_with(parent: int) -> None:
    """End this process within a second of the one that started it, as a power cut would.

    The cluster counts what a worker uses by the process that it started itself.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="supervisor", daemon=True).start()
