"""Reads many files in one limited process and says of each how it ended: table or sentence.

`python -m tests.hostile.measured FOLDER MEMORY_MB SECONDS NAME …`, a JSON object a line.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from core.importing.apart import Request
from core.importing.raw_table import RawTable
from core.importing.reading_process import read_or_refuse, restrict
from core.reading.typed_cells import typed_rows
from tests.hostile.identity import codec_faults, reading_faults
from tests.reading.files import ReadResult

RESET = Path("/proc/self/clear_refs")
MOST_ROWS = 100_000  # of a table whose cells are looked at one by one


def peak_mb() -> float:
    """The most memory this process held since `forget_peak`, in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def forget_peak() -> None:
    """Measure anew."""
    RESET.write_text("5", encoding="ascii")


def measure(path: Path, memory_mb: int) -> dict[str, object]:
    """Read one file; what became of it."""
    forget_peak()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        rows = Path(folder) / "rows.parquet"
        result = read_or_refuse(Request(path=path), rows, memory_mb)
        facts: dict[str, object] = {
            "name": path.name,
            "seconds": time.perf_counter() - began,
            "peak_mb": peak_mb(),
        }
        if isinstance(result, str):
            return {**facts, "refused": result}
        faults = changes(result, path) if result.n <= MOST_ROWS else []
    shape = {"rows": result.n, "columns": len(result.names)}
    return {**facts, **shape, "doubts": list(result.doubts), "faults": faults[:5]}


def changes(result: RawTable, path: Path) -> list[str]:
    """Cells that are not what they were, under the proposed schema.

    Args:
      result: the table.
      path: of its file.
    """
    schema = result.schema
    assert schema is not None
    frame = typed_rows(pq.read_table(result.path), schema.columns)
    faults = codec_faults(frame, schema)
    if schema.encoding == "utf-8" and path.suffix == ".csv":
        read = ReadResult(frame, schema, schema.form, result.doubts)
        faults += reading_faults(read, path.read_bytes().decode(errors="replace"))
    return faults


def main() -> None:
    """See the module."""
    folder, memory_mb, seconds, *names = sys.argv[1:]
    restrict(int(memory_mb), float(seconds))
    for name in names:
        print(json.dumps(measure(Path(folder) / name, int(memory_mb))), flush=True)


if __name__ == "__main__":
    main()
