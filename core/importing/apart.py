"""Read a table in a process of its own, with limits of memory and time: none hurts the server.

A workbook of five kilobytes can ask for 500 gigabytes, in native code that no exception stops. So
whoever serves others asks `core.importing.reading_process` by a pickled request, which leaves a
Parquet file of raw cells and never answers by a pickle.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, BinaryIO, Self

from core.importing.raw_table import TABLE, Progress, RawTable
from core.message import from_json, plural
from core.reading.address import Address, Allowed
from core.reading.cells import TableReadError
from core.schema.form import FileForm

ROOT = Path(__file__).resolve().parents[2]
MEMORY, SECONDS = "FACSIMILE_READ_MB", "FACSIMILE_READ_SECONDS"
# what names of variables with passwords hold: these are nothing for who reads hostile files
SECRET = re.compile("database|storage|fsspec|connect|pass|secret|token|key|credential", re.I)
LEAST_MB = 256  # what the libraries need before a file is opened, and some
READER = ("-m", "core.importing.reading_process")
READERS = 2  # processes at once; whoever comes later waits, so that many files together do no harm
GRACE = 5.0  # seconds for starting up and for handing over, beside those for reading
HEARTBEAT = 1.0  # seconds after which whoever waits is told of the rows again
WORDS_END = 4_000  # bytes of the process's last words that are looked at
_turns = threading.BoundedSemaphore(READERS)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be read: a file, its content handed over, or what lies at an address.

    What is not set in `declared` of how a text file is written is proposed.
    """

    path: Path | None = None
    name: str = ""
    address: Address | None = None
    allowed: Allowed | None = None
    declared: FileForm | None = None
    proposing: bool = True


@dataclass(frozen=True)
class ReadBounds:
    """What reading one file may take: MB of 2²⁰ bytes of the whole process, ≥ 256, and seconds."""

    memory_mb: int = 2048
    seconds: float = 300.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The bounds that the environment sets; those it does not set have their defaults."""
        memory = _whole(environment, MEMORY, cls.memory_mb, LEAST_MB)
        return cls(memory, float(_whole(environment, SECONDS, int(cls.seconds), 1)))


def _whole(environment: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = environment.get(name, "").strip() or str(default)
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise TableReadError(
            "{variable} must be a whole number of at least {least}. Nothing was read. Correct "
            "it where the program is started.",
            variable=name,
            least=least,
        )
    return int(text)


def takes_too_much(memory_mb: int) -> TableReadError:
    """The error for a table whose reading would take more memory than is allowed."""
    return TableReadError(
        "Reading this table takes more than {most:,} MB of memory, so it was stopped. Nothing "
        "was kept. Keep only the columns and rows you need, or set {variable} higher.",
        most=memory_mb,
        variable=MEMORY,
    )


def _takes_too_long(seconds: float) -> TableReadError:
    return TableReadError(
        "Reading this table takes longer than {time}, so it was stopped. Nothing was kept. Keep "
        "only the columns and rows you need, or set {variable} higher.",
        time=plural(round(seconds), "{n:,} second", "{n:,} seconds"),
        variable=SECONDS,
    )


def no_room(error: OSError) -> TableReadError:
    """The error for a disk that is full, or a file that is larger than is allowed."""
    return TableReadError(
        "There is no room for the rows ({reason}). Nothing was kept. Free some disk space and "
        "try again.",
        reason=error.strerror,
    )


def read_apart(
    request: Request,
    rows: Path,
    *,
    content: BinaryIO | None = None,
    progress: Progress = lambda rows: None,
    bounds: ReadBounds | None = None,
) -> RawTable:
    """Read one table in another process; a file waits for its turn.

    Args:
      rows: Parquet file that its raw cells go to, in a private folder that is removed afterwards;
        other files lie there too.
      progress: hears how many rows have passed, at least every second; if it raises, the process
        ends.

    Raises:
      TableReadError: one plain line that quotes no value; no rows are kept.
    """
    bounds = bounds or ReadBounds.from_environment()
    if content is not None:
        copy = rows.absolute().parent / "content"
        request = replace(request, path=copy)
        try:
            with copy.open("wb") as file:
                shutil.copyfileobj(content, file, 1 << 20)
        except OSError as error:
            raise no_room(error) from None
    elif request.path is not None:
        request = replace(request, path=request.path.absolute())
    outside = request.address is not None
    asked = pickle.dumps((request, rows.absolute(), bounds))
    seconds = None if outside else bounds.seconds
    # A file without a name: the system forgets it however this process ends.
    with nullcontext() if outside else _turns, tempfile.TemporaryFile() as cried:
        answer = _answer(asked, seconds, _environment(request), cried, progress)
        if "refused" in answer:
            raise TableReadError(from_json(answer["refused"]))
        if "table" not in answer:
            raise _died(cried, bounds, outside)
    return TABLE.validate_python(answer["table"])


def _answer(
    asked: bytes,
    seconds: float | None,
    environment: Mapping[str, str],
    cried: IO[bytes],
    progress: Progress,
) -> dict[str, Any]:
    """Run the process to its end; its answer, or nothing, and its last words in `cried`."""
    try:
        child = subprocess.Popen(
            [sys.executable, *READER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=cried,
            cwd=ROOT,
            env=environment,
        )
    except OSError as error:
        raise TableReadError(
            "The file was not read because no process could be started ({reason}). Nothing was "
            "kept. Try again.",
            reason=error.strerror,
        ) from None
    answer: dict[str, Any] = {}
    assert child.stdin is not None and child.stdout is not None
    try:
        with suppress(BrokenPipeError), child.stdin:
            child.stdin.write(asked)
        for line in _lines(child.stdout, seconds):
            with suppress(ValueError):  # a library's own output
                answer |= json.loads(line)
            if "read" in answer:
                progress(answer["read"])
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    return answer


def _lines(pipe: IO[bytes], seconds: float | None) -> Iterator[bytes]:
    """Lines as they come, an empty object where none comes for a while; an error in the end."""
    ends = math.inf if seconds is None else time.monotonic() + seconds + GRACE
    poll, said = select.poll(), b""
    poll.register(pipe, select.POLLIN)
    while True:
        left = min(HEARTBEAT, ends - time.monotonic())
        if left <= 0.0:
            assert seconds is not None
            raise _takes_too_long(seconds)
        if not poll.poll(1_000 * left):
            yield b"{}"
            continue
        more = os.read(pipe.fileno(), 1 << 20)
        *lines, said = (said + more).split(b"\n")
        yield from lines
        if not more:
            return


def _environment(request: Request) -> dict[str, str]:
    """One allocator, so that memory can be counted; secrets only where an address needs them."""
    allocator = {"MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    away = request.address is not None and request.address.path is None
    kept = {name: text for name, text in os.environ.items() if away or not SECRET.search(name)}
    return {**kept, **threads, **allocator}


def _died(cried: IO[bytes], bounds: ReadBounds, outside: bool) -> TableReadError:
    cried.seek(max(0, cried.seek(0, os.SEEK_END) - WORDS_END))
    words = cried.read()
    if any(sign in words for sign in (b"memory allocation", b"bad_alloc", b"MemoryError")):
        return takes_too_much(bounds.memory_mb)
    if b"time is up" in words:
        return _takes_too_long(bounds.seconds)
    if outside:
        return TableReadError(
            "The table was not imported: the process that read it ended early. Nothing was kept. "
            "Try again, or choose fewer columns."
        )
    return TableReadError(
        "The file could not be read: it is damaged, or takes more memory than this machine has. "
        "Nothing was kept. Open it where it was made and save it again, as CSV or Parquet."
    )
