"""LocalLauncher: a queue with slots in front of worker processes on this machine.

A worker is a process in a session of its own, with its output in a file: it outlives the browser,
the page and the server that started it. (A thread would die with the server, and a spawned
multiprocessing child would run the page's script again.)
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from core.runs.storage.events import State
from core.runs.storage.store import RunStore, RunStoreError
from core.runs.storage.workspace import PROJECT_ROOT

__all__ = ["LocalLauncher"]

# Children of this process, kept so that those that ended are collected and never stay zombies.
_children: list[subprocess.Popen[bytes]] = []


def _collect() -> None:
    _children[:] = [child for child in _children if child.poll() is None]


class LocalLauncher:
    """Starts workers when slots are free; any number of launchers may share one store.

    Attributes:
      store: the run store.
      slots: how many workers may run at once on this workspace, ≥ 1.
      module: the worker's command after the interpreter.
    """

    def __init__(
        self,
        store: RunStore,
        slots: int = 1,
        *,
        command: Sequence[str] = ("-m", "core.runs.execution.worker"),
    ) -> None:
        if slots < 1:
            raise ValueError(f"a launcher needs at least one slot, not {slots}")
        self.store = store
        self.slots = slots
        self.command = tuple(command)

    def submit(self, run_id: str) -> None:
        """Start a queued run, or leave it in the queue until a slot is free."""
        self.store.run(run_id)
        self.pump()

    def resume(self, run_id: str) -> None:
        """Queue a paused, lost or failed run again and start it when a slot is free.

        Raises:
          RunStoreError: the run is in no state to go on.
        """
        expect = (State.PAUSED, State.LOST, State.FAILED)
        message = "Waiting for a free slot."
        if not self.store.set_state(run_id, State.QUEUED, message, expect=expect):
            state = self.store.run(run_id).state
            raise RunStoreError(f"A run that is {state.value} cannot be resumed.")
        self.pump()

    def pump(self) -> list[str]:
        """Start queued runs while slots are free; the ids of those that this call started.

        Cheap when there is nothing to do, and safe when several processes call it at once.
        """
        _collect()
        started: list[str] = []
        queue = self.store.queue()
        if queue:
            self.store.reconcile()  # a dead worker's slot is free again
        for run_id in queue:
            if self.store.claim(run_id, slots=self.slots):
                self._start(run_id)
                started.append(run_id)
        return started

    def _start(self, run_id: str) -> None:
        folder = self.store.workspace.runs_dir / run_id
        command = [sys.executable, *self.command, run_id]
        command += ["--home", str(self.store.workspace.home), "--slots", str(self.slots)]
        try:
            with (folder / "worker.log").open("ab") as log:
                (folder / "worker.log").chmod(0o600)
                child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=PROJECT_ROOT,
                    start_new_session=True,
                )
        except OSError as error:
            message = "The worker process could not be started. Nothing was spent."
            self.store.set_state(run_id, State.FAILED, message, error=f"{message} ({error})")
            return
        _children.append(child)
        self.store.adopt(run_id, child.pid)
