"""A process that has imported a program's parts once and forks it for each request.

    python -m tests.zygote SOCKET MODULE…

The modules are imported, and programs among them forgotten, so that a child runs its own as
`__main__` and finds what that one imports ready. A child is handed over to whoever asked, which is
the process that started this one and adopts orphans for that moment: it is waited for, and killed,
like any child of its own. `tests.forked` asks.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import threading
import time
from typing import Any, NoReturn

MOST_FILES = 16  # open files that come with a request
MOST_BYTES = 1 << 20  # of a request: an environment and a command line


def main() -> None:
    asked = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from a terminal; the end of the socket ends this
    for name in sys.argv[2:]:
        importlib.import_module(name)
        if "." in name:  # a program, not a library
            del sys.modules[name]
    gc.collect()
    gc.freeze()  # pages that no collection writes to stay shared
    while True:
        content, files, _, _ = socket.recv_fds(asked, MOST_BYTES, MOST_FILES)
        if not content:
            os._exit(0)
        pid = forked(asked, json.loads(content), files)
        for file in files:
            os.close(file)
        asked.send(str(pid).encode())


def forked(asked: socket.socket, request: dict[str, Any], files: list[int]) -> int:
    """Fork a child and let go of it; its process number once this one is no more its parent."""
    told, tell = os.pipe()
    held, hold = os.pipe()
    parent = os.fork()
    if not parent:
        child = os.fork()
        if child:
            os.write(tell, str(child).encode())
            os._exit(0)
        for file in (told, tell, hold):
            os.close(file)
        os.read(held, 1)  # ends when its parent is gone
        os.close(held)
        asked.close()
        work(request, files)
    os.close(tell)
    os.waitpid(parent, 0)
    pid = int(os.read(told, 20))
    for file in (told, held, hold):
        os.close(file)
    return pid


def work(request: dict[str, Any], files: list[int]) -> NoReturn:
    """Be the program that was asked for; does not return.

    Args:
      request: `places`, what each open file's number is to be; `session`, whether to begin one;
        `umask`; `environment`; and `arguments`, which begin with `-m` and a module.
      files: the open files.
    """
    code: Any = 1
    try:
        become(request, files)
        with contextlib.suppress(ModuleNotFoundError):
            sys.modules["numpy"].random.seed()  # as Python's own numbers, which begin anew by now
        _, module, *arguments = request["arguments"]
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    # what an interpreter does at its end, but for taking every module down
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code or 0)


def become(request: dict[str, Any], files: list[int]) -> None:
    """Take the files, the session and the environment that a started process would have."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["session"]:
        os.setsid()
    os.umask(request["umask"])
    # they wait where none of them is wanted: one that waited at its own place would be closed there
    above = max(*files, *request["places"]) + 1
    waiting = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, above) for file in files]
    for file in files:
        os.close(file)
    for file, place in zip(waiting, request["places"], strict=True):
        os.dup2(file, place)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()


if __name__ == "__main__":
    main()
