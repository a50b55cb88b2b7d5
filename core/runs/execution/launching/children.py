"""Processes that this one started and does not wait for."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from core.runs.workspace import PROJECT_ROOT

# kept so that those that ended are collected and never stay zombies
_children: list[subprocess.Popen[bytes]] = []


def start(command: Sequence[str], log: Path, *, mode: Literal["ab", "wb"]) -> int:
    """Start a process that outlives this one; its number.

    Args:
      log: what it says goes here, for this user alone.
      mode: of the log, after what is there or instead of it.

    Raises:
      OSError: the log cannot be written, or the process cannot be started.
    """
    with log.open(mode) as said:
        log.chmod(0o600)
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=PROJECT_ROOT,
            start_new_session=True,
        )
    _children.append(child)
    return child.pid


def collect() -> None:
    """Forget those that ended."""
    _children[:] = [child for child in _children if child.poll() is None]
