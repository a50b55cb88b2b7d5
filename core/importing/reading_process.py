"""The process that reads one table and nothing else: `core.importing.apart` starts it.

Its request may hold a password, so it is on no command line and in no environment. It answers with
a line of JSON for each batch and one at the end: a table, or one sentence, whatever happens.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pickle
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from core.importing.apart import Request, no_room, takes_too_much
from core.importing.raw_table import TABLE, Progress, RawTable, keep_rows
from core.message import Message, to_json, to_say
from core.reading.cells import ReadLimits, TableReadError
from core.reading.opening import open_address, open_path
from core.reading.raw_cells import Source
from core.schema.column import SchemaError

MIB = 1024**2
LIBRARIES_MB = 1024  # addresses for libraries and reserves, which hold no memory
THREADS = 4  # each has a stack that counts
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def restrict(memory_mb: int, seconds: float | None) -> None:
    """Limit this process for good.

    Args:
      seconds: of processor time, for who reads one file: addresses may then be 1,024 MB more than
        the memory, and a file no larger than it; None for who asks others.
    """
    most = {resource.RLIMIT_DATA: memory_mb * MIB}
    most[resource.RLIMIT_CORE] = 0  # a crash must not leave rows on the disk
    if seconds is not None:
        most[resource.RLIMIT_AS] = (memory_mb + LIBRARIES_MB) * MIB
        most[resource.RLIMIT_FSIZE] = memory_mb * MIB
        # Four threads may use four processors; the parent's clock is the stricter one.
        most[resource.RLIMIT_CPU] = THREADS * (int(seconds) + 1)
        signal.signal(signal.SIGXCPU, lambda *_: os.write(2, b"time is up\n") and os._exit(1))
        pa.set_cpu_count(THREADS)
    for kind, value in most.items():
        resource.setrlimit(kind, (value, value + (kind == resource.RLIMIT_CPU)))
    # Where memory runs out all the same, this process goes and not the server.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def read_or_refuse(
    request: Request, rows: Path, memory_mb: int, progress: Progress = lambda rows: None
) -> RawTable | str:
    """A table, or why there is none, whatever the libraries raise."""
    try:
        source = _opened(request, rows.parent, ReadLimits(max_bytes=memory_mb * MIB))
        return keep_rows(source, rows, proposing=request.proposing, progress=progress)
    except (TableReadError, SchemaError) as error:  # their words quote no value
        return str(error)
    except (MemoryError, RecursionError):
        return str(takes_too_much(memory_mb))
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            return str(no_room(error))
        # Its own words may quote a value or an address, so only its name is said.
        if request.address is not None:
            words = to_say("The table could not be imported ({error}). Nothing was kept.")
            return Message(words, error=type(error).__name__)
        return Message(
            "The file could not be read as a table ({error}). Nothing was kept. Open it in the "
            "program that made it and save it again, as CSV in UTF-8.",
            error=type(error).__name__,
        )


def _opened(request: Request, folder: Path, limits: ReadLimits) -> Source:
    path, declared, allowed = request.path, request.declared, request.allowed
    if path is not None:
        return open_path(path, folder, request.name, limits=limits, declared=declared)
    assert request.address is not None and allowed is not None
    return open_address(request.address, allowed, folder, declared, limits=limits)


def main() -> None:
    """Read what the request names and answer."""
    request, rows, bounds = pickle.load(sys.stdin.buffer)
    restrict(bounds.memory_mb, bounds.seconds if request.address is None else None)
    result = read_or_refuse(request, rows, bounds.memory_mb, lambda n: _say({"read": n}))
    if isinstance(result, str):
        _say({"refused": to_json(result)})
    else:
        _say({"table": TABLE.dump_python(result, mode="json")})


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)  # the answer is given: taking libraries down under a limit can only fail
