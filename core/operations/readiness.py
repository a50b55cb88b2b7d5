"""Readiness: whether a server can take work, in three words that give nothing away."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from sqlalchemy import text

from core.runs.execution.launching.launcher import Launcher
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace


def readiness(store: Callable[[], RunStore], launcher: Callable[[], Launcher]) -> dict[str, bool]:
    """Whether the workspace can be written, the database asked, and workers started.

    Whatever goes wrong is a False and nothing more: no path, address or message.
    """
    return {
        "workspace": _does(_write),
        "database": _does(lambda: _ask(store())),
        "launcher": _does(lambda: launcher().reachable()),
    }


def _does(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception:  # what it was is on other pages' faults; here only that it is not ready
        return False


def _write() -> bool:
    """A few bytes, on the disk and gone again: rights, room and a disk that answers."""
    with tempfile.TemporaryFile(dir=Workspace.default().home) as file:
        file.write(b"ready")
        file.flush()
    return True


def _ask(store: RunStore) -> bool:
    with store.engine.connect() as connection:
        return bool(connection.execute(text("SELECT 1")).scalar_one() == 1)
