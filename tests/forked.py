"""Programs of the product, forked from a process that has imported their parts already.

Importing takes a worker two seconds of a processor, a reader half a one, and tests start hundreds.
A `Forked` is a `Popen` that starts them by `tests.zygote` instead: a process of its own with the
number, session, files, environment and parent that it would have had. Everything else, and whatever
the `fresh` fixture is asked for, starts as ever: a new interpreter.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Forked", "forked", "fresh", "new_interpreters"]

ROOT = Path(__file__).resolve().parents[1]
READER = ("core.importing.reading_process",)  # alone, since it counts its memory
PROGRAMS = (
    "core.runs.execution.sampling_process",
    "core.runs.execution.worker",
    "tests.runs.debtors",
    "tests.runs.toy",
    "tests.script",
)
LIBRARIES = ("torch",)  # that programs import as they go
# Read as libraries are loaded: where they differ, so would the process.
AT_LOADING = ("ARROW_", "LANG", "LC_", "LD_", "MALLOC_", "PYTHON")
AT_LOADING_ENDS = ("_NUM_THREADS",)
ADOPT_ORPHANS = 36  # prctl's PR_SET_CHILD_SUBREAPER
STARTS = inspect.signature(subprocess.Popen._execute_child)
PYTHON = sys.executable
_new_interpreter = subprocess.Popen
_lock = threading.Lock()
_zygotes: dict[tuple[Any, ...], Zygote] = {}


class Zygote:
    """A process of `tests.zygote`, and this end of its socket."""

    def __init__(self, modules: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = _new_interpreter(
            [PYTHON, "-m", "tests.zygote", str(theirs.fileno()), *modules],
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()

    def fork(self, request: dict[str, Any], files: list[int]) -> int:
        """The process number of a child with these open files, which is this process's own."""
        libc = ctypes.CDLL(None)
        libc.prctl(ADOPT_ORPHANS, 1, 0, 0, 0)
        try:
            socket.send_fds(self.socket, [json.dumps(request).encode()], files)
            return int(self.socket.recv(20))
        finally:
            libc.prctl(ADOPT_ORPHANS, 0, 0, 0, 0)

    def end(self) -> None:
        """Let it go."""
        self.socket.close()
        self.process.terminate()
        self.process.wait()


class Forked(subprocess.Popen):  # type: ignore[type-arg]
    """A `Popen` that forks the programs of the product."""

    def _execute_child(self, *given: Any) -> None:
        start = STARTS.bind(self, *given).arguments
        arguments = start["args"]
        environment = dict(os.environ if start["env"] is None else start["env"])
        modules = imported(arguments) if at_home(start["cwd"]) else None
        if modules is None:
            super()._execute_child(*given)  # type: ignore[misc]
            return
        ends = [start[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        files = [number if end == -1 else end for number, end in enumerate(ends)]
        passed = sorted(start["pass_fds"])
        request = {
            "arguments": list(arguments[1:]),
            "environment": environment,
            "places": [0, 1, 2, *passed],
            "session": bool(start["start_new_session"]),
            "umask": umask(),
        }
        with _lock:
            self.pid = zygote(modules, environment).fork(request, [*files, *passed])
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(start[name] for name in pipes))  # type: ignore[attr-defined]


def imported(command: Any) -> tuple[str, ...] | None:
    """What is imported before a command's program is forked; None where it is not forked."""
    if not isinstance(command, (list, tuple)) or list(command[:2]) != [PYTHON, "-m"]:
        return None
    if command[2] in READER:
        return READER
    return (*PROGRAMS, *LIBRARIES) if command[2] in PROGRAMS else None


def at_home(folder: Any) -> bool:
    """Whether a process in a folder would import the modules that are tested."""
    return Path(folder or ".").resolve() == ROOT


def zygote(modules: tuple[str, ...], environment: Mapping[str, str]) -> Zygote:
    """The process that has imported modules under what an environment says about loading."""
    loading = {
        name: value
        for name, value in environment.items()
        if name.startswith(AT_LOADING) or name.endswith(AT_LOADING_ENDS)
    }
    key = (modules, *sorted(loading.items()))
    if key not in _zygotes:
        _zygotes[key] = Zygote(modules, environment)
    return _zygotes[key]


def umask() -> int:
    """This process's mask, without setting it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    mask = re.search(r"^Umask:\s*([0-7]+)$", status, re.MULTILINE)
    assert mask is not None
    return int(mask[1], 8)


@pytest.fixture(scope="session", autouse=True)
def forked() -> Iterator[None]:
    """Whatever starts a program of the product forks it."""
    subprocess.Popen = Forked  # type: ignore[misc]
    yield
    subprocess.Popen = _new_interpreter  # type: ignore[misc]
    for one in _zygotes.values():
        one.end()
    _zygotes.clear()


@contextmanager
def new_interpreters() -> Iterator[None]:
    """Whatever is started within this imports everything itself."""
    subprocess.Popen = _new_interpreter  # type: ignore[misc]
    try:
        yield
    finally:
        subprocess.Popen = Forked  # type: ignore[misc]


@pytest.fixture
def fresh() -> Iterator[None]:
    """Every process of this test is a new interpreter."""
    with new_interpreters():
        yield
