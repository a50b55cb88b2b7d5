"""Scratch folders: private, and gone with their process, however it ended."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from core.runs.storage.objects.scratch import Scratch
from core.runs.storage.workspace import PROJECT_ROOT

HOLD = """
import sys, time
from pathlib import Path
from core.runs.storage.objects.scratch import Scratch
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


def holder(root: Path, how: str) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(root), how],
        cwd=PROJECT_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@pytest.mark.parametrize("how", ["exit", "raise"])
def test_a_process_that_ends_leaves_nothing(tmp_path, how):
    process, folder = holder(tmp_path, how)
    for path in (tmp_path, folder.parent, folder):
        assert path.stat().st_mode & 0o077 == 0
    process.communicate("\n", timeout=60)
    assert list(tmp_path.iterdir()) == []


def test_the_next_process_removes_what_a_killed_one_left_and_nothing_else(tmp_path):
    killed, left = holder(tmp_path, "exit")
    alive, held = holder(tmp_path, "exit")
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    elsewhere = tmp_path / "another-machine_1_1.000"
    unknown = tmp_path / "notes"
    for folder in (elsewhere, unknown):
        folder.mkdir()
    assert (left / "rows").exists()
    Scratch(tmp_path)
    assert not left.parent.exists()
    assert (held / "rows").exists() and elsewhere.exists() and unknown.exists()
    alive.communicate("\n", timeout=60)


def test_a_number_that_another_process_has_now_is_no_sign_of_life(tmp_path):
    import os

    recycled = tmp_path / f"{socket.gethostname()}_{os.getpid()}_0.001"
    recycled.mkdir()
    Scratch(tmp_path)
    assert not recycled.exists()
