"""Bringing in an address in a process of its own: no table hurts the server, none fills its memory.

The first line of the process's input is the request, which may hold a password, so it is on no
command line and in no environment. It answers with a line of JSON for some batches and one at the
end: the table, or one sentence.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from core.privacy.ledger.ledger import LedgerError
from core.runs.storage.errors import RunStoreError, storage_trouble
from core.runs.storage.records import TableRecord
from core.runs.storage.store import RunStore
from core.runs.storage.workspace import PROJECT_ROOT, Workspace
from core.services.imports import Progress
from core.services.sources import import_address
from core.table.io.apart import ReadBounds, takes_too_much
from core.table.io.cells import TableReadError
from core.table.schema import SchemaError

__all__ = ["import_apart", "main"]

ROOMY = 2  # times the memory that reading a file may take: batches, counts and what is compared
REFUSALS = (TableReadError, SchemaError, RunStoreError, LedgerError)  # their words quote no value
BROKEN = (
    "The table was not brought in: the process that read it ended early. Nothing was kept. Try "
    "again, or choose fewer columns."
)


def import_apart(
    store: RunStore,
    text: str,
    *,
    query: str = "",
    password: str = "",
    signed_in: bool = False,
    owner: str = "",
    progress: Progress = lambda rows: None,
) -> TableRecord:
    """Bring in the table at an address like `import_address`, in another process.

    Args:
      store: where.
      text: a path, or the address of a database or an object store.
      query: of a database.
      password: in place of one in the address.
      signed_in: whether people sign in to this server.
      owner: address of who brings it in, "" where nobody signs in. The process keeps it with the
        table, since whoever asked may be gone by then.
      progress: hears how many rows have passed.

    Raises:
      TableReadError: one plain line; nothing was kept.
    """
    asked = {
        "text": text,
        "query": query,
        "password": password,
        "signed_in": signed_in,
        "owner": owner,
    }
    request = {"home": str(store.workspace.home), "asked": asked}
    answer: dict[str, Any] = {}
    child = subprocess.Popen(
        [sys.executable, "-m", "core.services.importing_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=PROJECT_ROOT,
        text=True,
    )
    try:
        with child:
            assert child.stdin is not None and child.stdout is not None
            with contextlib.suppress(BrokenPipeError), child.stdin:
                child.stdin.write(json.dumps(request) + "\n")
            for line in child.stdout:
                answer = json.loads(line)
                if "rows" in answer:
                    progress(answer["rows"])
    finally:
        child.kill()
    if "table" in answer:
        return store.table(answer["table"])
    raise TableReadError(answer.get("refused", BROKEN))


def main() -> None:
    """Bring in what the request names and answer."""
    request = json.loads(sys.stdin.readline())
    memory_mb = ROOMY * ReadBounds.from_environment().memory_mb
    for kind, most in ((resource.RLIMIT_DATA, memory_mb * 1024**2), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, most))
    # where memory runs out, this process goes and not the server
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    _say(**_answer(request, memory_mb))


def _answer(request: dict[str, Any], memory_mb: int) -> dict[str, Any]:
    """The table, or why there is none."""
    try:
        with RunStore(Workspace(Path(request["home"]))) as store:
            table = import_address(store, **request["asked"], progress=lambda n: _say(rows=n))
            return {"table": table.id}
    except REFUSALS as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"refused": str(takes_too_much(memory_mb))}
    except Exception as error:
        # its own words may quote a value or an address, so only its name is said
        known = storage_trouble(error)
        return {
            "refused": known
            or f"The table could not be brought in ({type(error).__name__}). Nothing was kept."
        }


def _say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # the answer is given: taking libraries down under a limit can only fail
