"""LocalLauncher: a queue with slots in front of worker processes on this machine.

A worker is a process in a session of its own, with its output in a file: it outlives the browser,
the page and the server that started it. (A thread would die with the server, and a spawned
multiprocessing child would run the page's script again.)
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from core.runs.errors import RunStoreError
from core.runs.events import WAITS_FOR_SLOT, State
from core.runs.execution.launching import children
from core.runs.execution.launching.launcher import REFUSED, SampleRequest, not_resumable
from core.runs.records import RESUMABLE
from core.runs.storage.engine import can_write
from core.runs.storage.store import RunStore
from core.runs.workspace import PROJECT_ROOT, private_folder

LOG = "worker.log"
SAMPLING = ("-m", "core.runs.execution.sampling_process")
# Sampling takes seconds, and of the slowest model half a second for a thousand rows: a process that
# needs longer than this hangs.
SAMPLING_SECONDS = 1800
SAMPLING_SECONDS_A_ROW = 2e-3


class LocalLauncher:
    """A `Launcher` of processes on this machine; any number of them may share one store.

    Attributes:
      slots: how many workers may run at once on this workspace, ≥ 1.
      command: of the worker, after the interpreter.
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

    @property
    def restarts(self) -> int:
        """See `Launcher`: a lost run waits for somebody to resume it."""
        return 0

    def submit(self, run_id: str) -> None:
        """See `Launcher.submit`."""
        self.store.run(run_id)
        self.pump()

    def resume(self, run_id: str) -> None:
        """See `Launcher.resume`."""
        message = WAITS_FOR_SLOT
        if not self.store.set_state(run_id, State.QUEUED, message, expect=RESUMABLE):
            state = self.store.run(run_id).state
            raise RunStoreError(not_resumable(state))
        self.pump()

    def pump(self) -> list[str]:
        """See `Launcher.pump`."""
        children.collect()
        started: list[str] = []
        queue = self.store.queue()
        if queue and not can_write(self.store.engine):
            return started  # whoever is writing will be done soon; the next call starts them
        if queue:
            self.store.reconcile()  # a dead worker's slot is free again
        for run_id in queue:
            if self.store.claim(run_id, slots=self.slots):
                self._start(run_id)
                started.append(run_id)
        return started

    def reachable(self) -> bool:
        """See `Launcher.reachable`: the interpreter and the code that workers run are there."""
        return os.access(sys.executable, os.X_OK) and os.access(PROJECT_ROOT / "core", os.R_OK)

    def withdraw(self, run_id: str) -> None:
        """See `Launcher.withdraw`; the queue is the store's own."""

    def sample(self, run_id: str, name: str, request: SampleRequest) -> None:
        """See `Launcher.sample`; in a process of its own, since models need torch."""
        asked = ["--name", name, "--request", request.model_dump_json()]
        seconds = SAMPLING_SECONDS + SAMPLING_SECONDS_A_ROW * request.rows
        try:
            ended = subprocess.run(
                [*self._command(SAMPLING, run_id), *asked],
                cwd=PROJECT_ROOT,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RunStoreError(
                "Generating the rows took longer than {minutes:,.0f} minutes and was stopped. "
                "No file was saved. Ask for fewer rows, or try again when the machine is less "
                "busy.",
                minutes=seconds / 60,
            ) from None
        if ended.returncode == REFUSED:  # one sentence, made of the model's own output
            raise RunStoreError(ended.stdout.decode().strip())
        if ended.returncode != 0:
            with self._log(run_id).open("ab") as log:
                log.write(ended.stderr)
            raise RunStoreError(
                "The rows could not be generated and no file was saved. See worker.log in the "
                "run's folder."
            )

    def _command(self, arguments: Sequence[str], run_id: str) -> list[str]:
        home = str(self.store.workspace.home)
        return [sys.executable, *arguments, run_id, "--home", home]

    def _log(self, run_id: str) -> Path:
        """A log stays on the machine where it is written: a traceback may quote a value."""
        return private_folder(self.store.workspace.runs_dir / run_id) / LOG

    def _start(self, run_id: str) -> None:
        path = self._log(run_id)
        command = [*self._command(self.command, run_id), "--slots", str(self.slots)]
        try:
            pid = children.start(command, path, mode="ab")
        except OSError as error:
            message = "The run's worker process could not be started. This attempt spent nothing."
            self.store.set_state(
                run_id, State.FAILED, message, error=f"{message} ({error})", failure="launcher"
            )
            return
        self.store.adopt(run_id, pid)
