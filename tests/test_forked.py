"""Programs that tests fork are processes like those that start by themselves."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.importing import apart
from tests import forked

STARTED = time.time()
FACTS = """
import json, os, sys
print(json.dumps([os.getpid(), os.getppid(), os.getsid(0), os.getcwd(), sys.argv[1:],
                  dict(os.environ), sys.stdin.read()]))
"""
KINDS = pytest.mark.parametrize("kind", [forked.Forked, forked._new_interpreter])


def script(lines: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.script", lines, *arguments]


@KINDS
@pytest.mark.parametrize("session", [False, True])
def test_it_is_a_child_with_what_it_was_given(kind, session, monkeypatch) -> None:
    monkeypatch.setenv("SAID", "é")
    with kind(
        script(FACTS, "a", "b c"),
        cwd=forked.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=session,
        text=True,
    ) as child:
        out, _ = child.communicate("what is said\n", timeout=60)
    pid, parent, its_session, folder, arguments, environment, said = json.loads(out)
    assert (pid, parent, child.returncode) == (child.pid, os.getpid(), 0)
    assert its_session == (pid if session else os.getsid(0))
    assert folder == str(forked.ROOT) and arguments == ["a", "b c"]
    of_terminals = {"COLUMNS", "LINES"}  # an interpreter may set them
    assert environment | dict.fromkeys(of_terminals) == os.environ | dict.fromkeys(of_terminals)
    assert said == "what is said\n"


@KINDS
@pytest.mark.parametrize(
    ("lines", "status", "words"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('in words')", 1, "in words\n"),
        ("raise SystemExit", 0, ""),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("import os; os.abort()", -signal.SIGABRT, ""),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("import atexit; atexit.register(print, 'end')", 0, ""),
        ("import threading; threading.Timer(0.1, print, ['late']).start()", 0, ""),
    ],
)
def test_how_it_ends_is_told(kind, lines, status, words) -> None:
    ended = kind(script(lines), cwd=forked.ROOT, stdout=-1, stderr=subprocess.PIPE, text=True)
    out, err = ended.communicate(timeout=60)
    assert ended.returncode == status and err.endswith(words) and (words or not err)
    assert out == {"atexit": "end\n", "threading": "late\n"}.get(lines[7:].split(";")[0], "")


@KINDS
def test_it_can_be_killed_and_leaves_nothing(kind) -> None:
    lines = "import time; print('here', flush=True); time.sleep(60)"
    with kind(script(lines), cwd=forked.ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "here\n"
        assert child.poll() is None
        began = Path(f"/proc/{child.pid}/stat").stat().st_ctime
        assert began >= STARTED
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=0.1)
        child.kill()
        assert child.wait(timeout=60) == -signal.SIGKILL
    assert not Path(f"/proc/{child.pid}").exists()


@KINDS
def test_it_holds_the_files_it_was_given_and_no_others(kind, tmp_path) -> None:
    lines = "import os; print(*sorted(map(int, os.listdir('/proc/self/fd')))); os.write(%d, b'x')"
    with (tmp_path / "a").open("wb") as file, (tmp_path / "b").open("wb"):
        command = script(lines % file.fileno())
        ended = kind(command, cwd=forked.ROOT, pass_fds=(file.fileno(),), stdout=-1, text=True)
        out, _ = ended.communicate(timeout=60)
        held = list(map(int, out.split()))
        assert {0, 1, 2, file.fileno()} <= set(held) and len(held) == 5  # the fifth lists them
    assert (tmp_path / "a").read_bytes() == b"x"


def test_a_file_keeps_its_number_whatever_that_is(tmp_path) -> None:
    for number in (*range(90, 115), 500):  # a long test session has a hundred files open
        with (tmp_path / "a").open("w+b") as file:
            os.dup2(file.fileno(), number)
            try:
                command = script(f"import os; os.write({number}, b'{number}')")
                forked.Forked(command, cwd=forked.ROOT, pass_fds=(number,)).wait(timeout=60)
            finally:
                os.close(number)
            file.seek(0)  # whoever wrote moved it
            assert file.read() == f"{number}".encode()


def test_only_programs_of_this_folder_are_forked(tmp_path) -> None:
    known = script("pass")
    assert set(forked.imported(known)) > set(forked.PROGRAMS) and forked.at_home(forked.ROOT)
    assert forked.imported([sys.executable, *apart.READER]) == forked.READER
    assert not forked.at_home(tmp_path)
    for other in (
        ["sleep", "1"],
        [sys.executable, "-c", "pass"],
        [sys.executable, "-m", "core.cli"],
    ):
        assert forked.imported(other) is None
    assert forked.imported("sleep 1") is None


def test_reading_takes_a_fork_unless_a_new_interpreter_is_wanted(monkeypatch, tmp_path) -> None:
    def read() -> int:
        content = io.BytesIO(b"a\n1\n")
        return apart.read_apart(apart.Request(), tmp_path / "rows", content=content).n

    asked: list[str] = []
    fork = forked.Zygote.fork

    def noted(self, request, files):
        asked.append(request["arguments"][1])
        return fork(self, request, files)

    monkeypatch.setattr(forked.Zygote, "fork", noted)
    for _ in range(2):
        assert read() == 1
    with forked.new_interpreters():
        assert read() == 1
    assert asked == [apart.READER[1]] * 2
