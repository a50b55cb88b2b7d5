"""Reads many files in one limited process and says of each how it ended: table or sentence.

`python -m tests.hostile.measured FOLDER MEMORY_MB SECONDS NAME …`, a JSON object a line.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from core.table.io.reading_process import read_or_refuse, restrict
from tests.hostile.identity import codec_faults, reading_faults

RESET = Path("/proc/self/clear_refs")


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
    result = read_or_refuse(path, path.name, memory_mb)
    facts: dict[str, object] = {
        "name": path.name,
        "seconds": time.perf_counter() - began,
        "peak_mb": peak_mb(),
    }
    if isinstance(result, str):
        return {**facts, "refused": result}
    faults = codec_faults(result.frame)
    if result.encoding == "utf-8" and not path.name.endswith(("gz", "bz2", "xz", "zip")):
        faults += reading_faults(result, path.read_bytes().decode())
    rows, columns = result.frame.shape
    shape = {"rows": rows, "columns": columns}
    return {**facts, **shape, "doubts": list(result.warnings), "faults": faults[:5]}


def main() -> None:
    """See the module."""
    folder, memory_mb, seconds, *names = sys.argv[1:]
    restrict(int(memory_mb), float(seconds))
    for name in names:
        print(json.dumps(measure(Path(folder) / name, int(memory_mb))), flush=True)


if __name__ == "__main__":
    main()
