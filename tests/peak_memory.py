"""The most memory that a process of its own holds while it runs a few lines.

It may be forked, see `tests.forked`: what it holds then begins with what was imported before, so
peaks are for comparing with each other.
"""

from __future__ import annotations

import subprocess
import sys

TELL = """
from core.runs.execution.reporter import peak_memory_mb
print(peak_memory_mb())
"""


def peak_mb(script: str, *arguments: object) -> float:
    """Run a script and say the largest size of its process, in MB of 2²⁰ bytes.

    Args:
      script: Python; prints nothing.
      arguments: of it, in `sys.argv` from 1 on.
    """
    command = [sys.executable, "-m", "tests.script", script + TELL, *map(str, arguments)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
