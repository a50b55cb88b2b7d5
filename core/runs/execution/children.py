"""Processes that this one started and does not wait for."""

from __future__ import annotations

import subprocess

__all__ = ["collect", "keep"]

# kept so that those that ended are collected and never stay zombies
_children: list[subprocess.Popen[bytes]] = []


def keep(child: subprocess.Popen[bytes]) -> None:
    """Let a process go its way; `collect` looks after it."""
    _children.append(child)


def collect() -> None:
    """Forget those that ended."""
    _children[:] = [child for child in _children if child.poll() is None]
