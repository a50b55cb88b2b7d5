"""Scratch folders: private, and gone with their process, however it ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from core.runs.storage.scratch import Scratch
from core.runs.workspace import PROJECT_ROOT

pytestmark = pytest.mark.slow

HOLD = """
import sys, time
from pathlib import Path
from core.runs.storage.scratch import Scratch
scratch = Scratch(Path(sys.argv[1]))
with scratch.folder_for("run") as folder:
    (folder / "rows").write_text("private")
    print(folder, flush=True)
    sys.stdin.readline()
    if sys.argv[2] == "raise":
        raise RuntimeError
    if sys.argv[2] == "exit":
        (scratch.copies("a/b") / "copy").write_text("private")
"""


def holder_of(root: Path, how: str = "exit") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(root), how],
        cwd=PROJECT_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def started(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def holder(root: Path, how: str) -> tuple[subprocess.Popen[str], Path]:
    process = holder_of(root, how)
    return process, started(process)


@pytest.mark.parametrize("how", ["exit", "raise"])
def test_a_process_that_ends_leaves_nothing(tmp_path, how):
    process, folder = holder(tmp_path, how)
    for path in (tmp_path, folder.parent, folder):
        assert path.stat().st_mode & 0o077 == 0
    process.communicate("\n", timeout=60)
    assert list(tmp_path.iterdir()) == []


def test_the_next_process_removes_only_what_a_killed_one_left(tmp_path):
    killed, left = holder(tmp_path, "exit")
    alive, held = holder(tmp_path, "exit")
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    unknown = tmp_path / "notes"
    unknown.mkdir()
    assert (left / "rows").exists()
    Scratch(tmp_path)
    assert not left.parent.exists()
    assert (held / "rows").exists() and unknown.exists()
    alive.communicate("\n", timeout=60)
    assert not held.parent.exists()


def test_many_that_start_at_once_keep_what_is_their_own(tmp_path):
    """Each looks for leftovers while others make their folders."""
    holders = [holder_of(tmp_path) for _ in range(6)]
    folders = [started(process) for process in holders]
    assert len(set(folders)) == 6 and all((folder / "rows").exists() for folder in folders)
    for process in holders:
        process.communicate("\n", timeout=60)
    assert list(tmp_path.iterdir()) == []
