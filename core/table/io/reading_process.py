"""The process that reads one file and nothing else: `core.table.io.apart` starts it.

Its first line of input is the request, the rest is the file; its output is one JSON object, and the
rows go to an open file as Arrow data. Whatever happens, the answer is a table or one sentence.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from core.table.io.apart import takes_too_much
from core.table.io.cells import DeclaredWords, ReadLimits, TableReadError
from core.table.io.read import ReadResult, read_table

__all__ = ["main", "read_or_refuse", "restrict"]

MIB = 1024**2
LIBRARIES_MB = 1024  # addresses for libraries and reserves, which hold no memory
THREADS = 4  # each has a stack that counts


def restrict(memory_mb: int, seconds: float) -> None:
    """Limit this process for good.

    Args:
      memory_mb: what it may write to (RLIMIT_DATA); addresses may be 1,024 MB more.
      seconds: of processor time.
    """
    for kind, most in (
        (resource.RLIMIT_DATA, memory_mb * MIB),
        (resource.RLIMIT_AS, (memory_mb + LIBRARIES_MB) * MIB),
        (resource.RLIMIT_FSIZE, memory_mb * MIB),
        (resource.RLIMIT_CORE, 0),  # a crash must not leave rows on the disk
    ):
        resource.setrlimit(kind, (most, most))
    whole = int(seconds) + 1
    # Four threads may use four processors; the parent's clock is the stricter one.
    resource.setrlimit(resource.RLIMIT_CPU, (THREADS * whole, THREADS * whole + 1))
    signal.signal(signal.SIGXCPU, lambda *_: os.write(2, b"time is up\n") and os._exit(1))
    pa.set_cpu_count(THREADS)
    # Where memory runs out all the same, this process goes and not the server.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def read_or_refuse(
    source: Path | BinaryIO, name: str, memory_mb: int, declared: DeclaredWords | None = None
) -> ReadResult | str:
    """A table, or one sentence, whatever the libraries raise.

    Args:
      source: a path or a stream.
      name: of the file.
      memory_mb: the limit that this process is under.
      declared: see `DeclaredWords`.
    """
    limits = ReadLimits(max_bytes=memory_mb * MIB)
    try:
        return read_table(source, name, limits=limits, declared=declared)
    except TableReadError as error:
        return str(error)
    except (MemoryError, RecursionError):
        return str(takes_too_much(memory_mb))
    except Exception as error:
        # Its own words may quote a value, so only its name is said.
        return (
            f"The file could not be read as a table ({type(error).__name__}). Nothing was kept. "
            "Open it where it was made and save it again, as CSV in UTF-8."
        )


def main() -> None:
    """Read what the request names and answer."""
    request = json.loads(sys.stdin.buffer.readline())
    memory_mb = int(request["memory_mb"])
    restrict(memory_mb, float(request["seconds"]))
    source = sys.stdin.buffer if request["path"] is None else Path(request["path"])
    result = read_or_refuse(source, request["name"], memory_mb, request["declared"])
    answer: dict[str, Any] = {"refused": result}
    if not isinstance(result, str):
        answer = _hand_over(result, int(request["rows"]), memory_mb)
    print(json.dumps(answer), flush=True)


def _hand_over(result: ReadResult, file: int, memory_mb: int) -> dict[str, Any]:
    """Write the rows to an open file; what is to be said about them, or why they cannot be kept."""
    try:
        table = pa.Table.from_pandas(result.frame, preserve_index=False)
        with os.fdopen(file, "wb") as stream, pa.ipc.new_file(stream, table.schema) as writer:
            writer.write_table(table)
    except (MemoryError, pa.ArrowMemoryError):
        return {"refused": str(takes_too_much(memory_mb))}
    except OSError as error:
        return {
            "refused": f"There is no room for the rows ({error.strerror}). Nothing was kept. Free "
            "some disk space and try again."
        }
    form = result.form.model_dump(mode="json")
    return {"encoding": result.encoding, "warnings": result.warnings, "form": form}


if __name__ == "__main__":
    main()
    os._exit(0)  # the answer is given: taking libraries down under a limit can only fail
