"""Read a file in a process of its own, with limits of memory and time: no file hurts the server.

A workbook of five kilobytes can ask for 500 gigabytes, in native code that no exception of ours can
stop. So whoever serves others never calls `read_table` itself: the rows are read by
`core.table.io.reading_process` and come back as an Arrow file, never as pickled objects.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Self

import pyarrow as pa

from core.table.form import FileForm
from core.table.io.cells import DeclaredWords, TableReadError
from core.table.io.read import ReadResult

__all__ = ["MEMORY", "SECONDS", "ReadBounds", "read_apart", "takes_too_much"]

ROOT = Path(__file__).resolve().parents[3]
MEMORY, SECONDS = "FACSIMILE_READ_MB", "FACSIMILE_READ_SECONDS"
# what names of variables with passwords hold: these are nothing for who reads hostile files
SECRET = re.compile("database|storage|fsspec|connect|pass|secret|token|key|credential", re.I)
LEAST_MB = 256  # what the libraries need before a file is opened, and some
READER = ("-m", "core.table.io.reading_process")
READERS = 2  # processes at once; whoever comes later waits, so that many files together do no harm
GRACE = 5.0  # seconds for starting up and for handing over, beside those for reading
NAME_END = 40  # characters; only a name's endings are used
WORDS_END = 4_000  # bytes of the process's last words that are looked at
_turns = threading.BoundedSemaphore(READERS)


@dataclass(frozen=True)
class ReadBounds:
    """What reading one file may take.

    Attributes:
      memory_mb: of the whole process, in MB of 2²⁰ bytes, ≥ 256.
      seconds: from start to end, > 0.
    """

    memory_mb: int = 2048
    seconds: float = 300.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The bounds that the environment sets; those it does not set have their defaults.

        Raises:
          TableReadError: a variable that is no number, or too small a one.
        """
        memory = _whole(environment, MEMORY, cls.memory_mb, LEAST_MB)
        return cls(memory, float(_whole(environment, SECONDS, int(cls.seconds), 1)))


def _whole(environment: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = environment.get(name, "").strip() or str(default)
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise TableReadError(
            f"{name} must be a whole number of at least {least}. Nothing was read; correct it "
            "where the program is started."
        )
    return int(text)


def takes_too_much(memory_mb: int) -> TableReadError:
    """The error for a file whose reading would take more memory than is allowed."""
    return TableReadError(
        f"Reading this file takes more than {memory_mb:,} MB of memory, so it was stopped. Nothing "
        f"was kept. Keep the columns and rows you need, or set {MEMORY} higher."
    )


def _takes_too_long(seconds: float) -> TableReadError:
    plural = "second" if seconds == 1 else "seconds"
    return TableReadError(
        f"Reading this file takes longer than {seconds:,.0f} {plural}, so it was stopped. Nothing "
        f"was kept. Keep the columns and rows you need, or set {SECONDS} higher."
    )


def read_apart(
    source: Path | BinaryIO,
    name: str | None = None,
    *,
    bounds: ReadBounds | None = None,
    declared: DeclaredWords | None = None,
) -> ReadResult:
    """Read one table like `read_table`, in another process.

    Args:
      source: a path, or a binary stream from its current position.
      name: the file's name when the stream has none.
      bounds: of memory and time; the environment's by default.
      declared: see `DeclaredWords`; None where no schema exists yet.

    Raises:
      TableReadError: as `read_table`, or what reading would take is more than the bounds allow.
    """
    bounds = bounds or ReadBounds.from_environment()
    request: dict[str, Any] = {
        "name": (name or str(getattr(source, "name", "") or source))[-NAME_END:],
        "path": str(source.absolute()) if isinstance(source, Path) else None,
        "memory_mb": bounds.memory_mb,
        "seconds": bounds.seconds,
        "declared": None if declared is None else {c: list(w) for c, w in declared.items() if w},
    }
    # Files without a name: the system forgets them however this process ends.
    with (
        _turns,
        tempfile.TemporaryFile() as rows,
        tempfile.TemporaryFile() as said,
        tempfile.TemporaryFile() as cried,
    ):
        request["rows"] = rows.fileno()
        content = None if isinstance(source, Path) else source
        _run(request, content, said=said, cried=cried)
        said.seek(0)
        try:
            facts = json.loads(said.read())
        except ValueError:  # it ended without an answer
            raise _died(cried, bounds) from None
        if "refused" in facts:
            raise TableReadError(facts["refused"])
        facts["warnings"] = tuple(facts["warnings"])
        facts["form"] = FileForm.model_validate(facts["form"])
        return ReadResult(frame=_frame(rows), **facts)


def _run(
    request: dict[str, Any], content: BinaryIO | None, *, said: IO[bytes], cried: IO[bytes]
) -> None:
    """Run the process to its end.

    Args:
      request: its first line of input.
      content: what follows it, None where it opens a path itself.
      said: takes its answer.
      cried: takes its last words.

    Raises:
      TableReadError: it could not be started, or ran out of time.
    """
    try:
        child = subprocess.Popen(
            [sys.executable, *READER],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=cried,
            pass_fds=(request["rows"],),
            cwd=ROOT,
            env=_environment(),
        )
    except OSError as error:
        raise TableReadError(
            f"The file was not read, because no process could be started ({error.strerror}). "
            "Nothing was kept; try again."
        ) from None
    # A thread of its own, since a process that dies half way leaves a full pipe behind.
    feeder = threading.Thread(target=_feed, args=(child, request, content), daemon=True)
    feeder.start()
    try:
        child.wait(timeout=request["seconds"] + GRACE)
    except subprocess.TimeoutExpired:
        raise _takes_too_long(request["seconds"]) from None
    finally:
        child.kill()
        child.wait()
        feeder.join()


def _feed(
    child: subprocess.Popen[bytes], request: dict[str, Any], content: BinaryIO | None
) -> None:
    pipe = child.stdin
    assert pipe is not None
    try:
        with pipe:
            pipe.write(json.dumps(request).encode() + b"\n")
            if content is not None:
                shutil.copyfileobj(content, pipe, 1 << 20)
    except OSError:
        return  # it has ended before it read all; its answer says why


def _environment() -> dict[str, str]:
    """One thread a library and one allocator, so that memory can be counted; no secrets."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    allocator = {"MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    plain = {name: value for name, value in os.environ.items() if not SECRET.search(name)}
    return {**plain, **threads, **allocator}


def _died(cried: IO[bytes], bounds: ReadBounds) -> TableReadError:
    """Why a process that gave no answer has ended, as far as its last words tell."""
    cried.seek(max(0, cried.seek(0, os.SEEK_END) - WORDS_END))
    words = cried.read()
    if any(sign in words for sign in (b"memory allocation", b"bad_alloc", b"MemoryError")):
        return takes_too_much(bounds.memory_mb)
    if b"time is up" in words:
        return _takes_too_long(bounds.seconds)
    return TableReadError(
        "The file could not be read: it is damaged, or takes more memory than this machine has. "
        "Nothing was kept. Open it where it was made and save it again, as CSV or Parquet."
    )


def _frame(rows: IO[bytes]) -> Any:
    """The rows that the process left, mapped: text needs no second copy."""
    mapped = mmap.mmap(rows.fileno(), 0, access=mmap.ACCESS_READ)
    return pa.ipc.open_file(pa.py_buffer(mapped)).read_all().to_pandas()
