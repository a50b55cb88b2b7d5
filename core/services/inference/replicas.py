"""Replicas of a run, and attacks by refitting: have them made; `runs.progress` says how far."""

from __future__ import annotations

from pathlib import Path

from core.inference.replicas import COUNT, no_replicas, numbers_kept
from core.message import Message
from core.models.events import OnEvent
from core.runs.errors import NotFoundError, RunStoreError
from core.runs.events import State
from core.runs.execution.launching.launcher import Launcher
from core.runs.execution.replica_making import make_replicas
from core.runs.records import RunRecord
from core.runs.storage.artefacts import REFITS_WANTED
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace


def complete(store: RunStore, run_id: str) -> bool:
    """Whether a run has all of its replicas."""
    return len(numbers_kept(store.artefacts(run_id))) >= COUNT


def under_way(store: RunStore, run_id: str) -> bool:
    """Whether a worker fits a finished run again, or shall: see its state and `runs.progress`."""
    return store.artefacts(run_id).exists(REFITS_WANTED)


def start(store: RunStore, launcher: Launcher, run_id: str, *, attack: float = 0.0) -> RunRecord:
    """Have a worker make what a finished run lacks; it can be paused and cancelled as runs can.

    Spends nothing and reads no real row, but for an attack.

    Args:
      attack: minutes of an attack by refitting, which is made instead; 0 for none.

    Raises:
      RunStoreError: the run has none and why, is at work, or has no synthetic table.
    """
    run, artefacts = _finished(store, run_id), store.artefacts(run_id)
    if complete(store, run_id) and not attack:
        return run
    with artefacts.replacing(REFITS_WANTED) as file:
        file.write(f"{attack:g}".encode())
    message = Message("Waiting for a free slot, to fit the model again.")
    if not store.set_state(run_id, State.QUEUED, message, expect=(State.DONE,)):
        raise RunStoreError(Message("This run is at work already."))
    launcher.submit(run_id)
    return store.run(run_id)


def make(run: str | Path, on_event: OnEvent, *, count: int = COUNT) -> int:
    """Make what a finished run of the workspace lacks, in this process; how many there are.

    Args:
      run: its id or folder.

    Raises:
      RunStoreError: see `start`.
    """
    with RunStore(Workspace.default()) as store:
        found = _finished(store, Path(run).name)
        return make_replicas(store.artefacts(found.id), found, on_event=on_event, count=count)


def _finished(store: RunStore, run_id: str) -> RunRecord:
    run = store.run(run_id)
    if (reason := no_replicas(run.plan)) is not None:
        raise RunStoreError(reason)
    if not store.has_result(run_id):
        raise NotFoundError(Message("This run has not made a synthetic table yet."))
    return run
