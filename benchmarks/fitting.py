"""One model or peer on one table, in a process of its own: rows, seconds, peak memory, versions.

Our models go through `python -m core.cli synth` with a workspace that is thrown away; peers through
their glue in `benchmarks/peers/`, with the interpreter of their own environment:

    DIR/{aim,mst,mwem}/bin/python             packages jax, pandas … ; checkout DIR/private-pgm
    DIR/swift/bin/python                      packages jax, mbi … ; checkout DIR/dpsynth
    DIR/tabpe/bin/python                      packages torch, pandas … ; checkout DIR/DPSDA
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.named_tables import NamedTable
from core.writing.tables import write_csv_parts

__all__ = ["PEERS", "Fit", "FitError", "absent", "fit_and_sample"]

ROOT = Path(__file__).resolve().parents[1]
PEERS = {  # and their checkouts
    "aim": "private-pgm",
    "mst": "private-pgm",
    "mwem": "private-pgm",
    "swift": "dpsynth",
    "tabpe": "DPSDA",
}
TAIL = 400  # characters of a failed program's last words
LOOK_SECONDS = 0.2
XLA = (  # one thread; light optimisation, since many small programs are compiled and run once
    "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=1 "
    "--xla_llvm_disable_expensive_passes=true"
)


class FitError(RuntimeError):
    """A program did not make a table; its last words are in the message."""


@dataclass(frozen=True)
class Fit:
    """What a fit made.

    Attributes:
      frame: synthetic rows, in the table's columns.
      seconds: of the whole process, from its start to its end.
      memory_mb: the most that the process held, in MB of resident memory.
      settings, versions: as the program says.
      load: processes that wanted a core of this machine, on average, when it ended.
    """

    frame: pd.DataFrame
    seconds: float
    memory_mb: float
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    load: float = 0.0


def absent(tool: str, peers: Path | None) -> str:
    """Why a peer cannot run, in words; empty where it can, and for our own models."""
    if tool not in PEERS:
        return ""
    if peers is None:
        return "--peers does not say where it is"
    for path in (peers / tool / "bin" / "python", peers / PEERS[tool]):
        if not path.exists():
            return f"there is no {path}"
    return ""


def fit_and_sample(
    tool: str,
    table: NamedTable,
    *,
    epsilon: float,
    delta: float,
    seed: int,
    settings: tuple[str, ...] = (),
    peers: Path | None = None,
    threads: int = 1,
    limit: float | None = None,
) -> Fit:
    """Fit on the rows to train on and draw a synthetic table.

    Args:
      tool: one of our models' ids, or a peer's name.
      table: its rows and what is declared of them.
      epsilon, delta: the budget.
      seed: of what is not noise.
      settings: NAME=VALUE, the rest as usual.
      peers: the folder of peers' environments and checkouts.
      threads: that the process may compute with.
      limit: seconds after which it is ended.

    Raises:
      FitError: it failed, or took longer than `limit`.
    """
    with tempfile.TemporaryDirectory(prefix="frontier-") as name:
        folder = Path(name)
        schema = folder / "schema.json"
        schema.write_text(table.schema.model_dump_json(), encoding="utf-8")
        program = _peer if tool in PEERS else _ours
        command, out = program(tool, table, folder, schema, settings, peers)
        command += ["--epsilon", f"{epsilon:g}", "--delta", f"{delta:g}", "--seed", str(seed)]
        log, seconds, memory_mb = _run(command, folder, threads, limit)
        answer = json.loads(log.splitlines()[-1])
        frame = pd.read_parquet(out) if out.suffix == ".parquet" else _read(out, table)
    if tool in PEERS:
        assert peers is not None
        versions = answer["versions"] | {"commit": _commit(peers / PEERS[tool])}
    else:
        versions = {"commit": _commit(ROOT)}
    used = answer["settings"] if tool in PEERS else dict(p.split("=", 1) for p in settings)
    load = round(os.getloadavg()[0], 2)
    return Fit(frame[list(table.schema.names)], seconds, memory_mb, used, versions, load)


def _ours(
    tool: str,
    table: NamedTable,
    folder: Path,
    schema: Path,
    settings: tuple[str, ...],
    _: Path | None,
) -> tuple[list[str], Path]:
    rows, out = folder / "table.parquet", folder / "out.parquet"
    table.train.to_parquet(rows, index=False)
    command = [sys.executable, "-m", "core.cli", "synth", str(rows), "--model", tool]
    command += ["--schema", str(schema), "--device", "cpu", "--quiet", "--json"]
    command += ["--settings", *settings] if settings else []
    return [*command, "--out", str(out)], out


def _peer(
    tool: str,
    table: NamedTable,
    folder: Path,
    schema: Path,
    settings: tuple[str, ...],
    peers: Path | None,
) -> tuple[list[str], Path]:
    if reason := absent(tool, peers):
        raise FitError(f"{tool}: {reason}")
    assert peers is not None
    rows, out = folder / "table.csv", folder / "out.csv"
    write_csv_parts([table.train], rows)
    glue = ROOT / "benchmarks" / "peers" / f"{tool}.py"
    command = [str(peers.absolute() / tool / "bin" / "python"), str(glue)]
    command += ["--checkout", str(peers.absolute() / PEERS[tool])]
    command += ["--table", str(rows), "--schema", str(schema), "--log-bins", *table.log_bins]
    command += ["--set", *settings] if settings else []
    return [*command, "--out", str(out)], out


def _run(
    command: list[str], folder: Path, threads: int, limit: float | None
) -> tuple[str, float, float]:
    """What the program printed, its seconds and its peak memory in MB."""
    environment = os.environ | {
        "FACSIMILE_HOME": str(folder / "workspace"),
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "NPROC": str(threads),
        "PYTHONHASHSEED": "0",  # AIM goes through sets of names, whose order this fixes
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": XLA if threads == 1 else XLA.partition(" ")[2],
    }
    answer, log = folder / "answer.txt", folder / "log.txt"
    began, most = time.perf_counter(), 0.0
    with answer.open("wb") as printed, log.open("wb") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=printed, stderr=errors
        )
        try:
            while process.poll() is None:
                most = max(most, _peak_mb(process.pid))
                if limit is not None and time.perf_counter() - began > limit:
                    raise FitError(f"ended after {limit:g} s")
                time.sleep(LOOK_SECONDS)
        finally:
            process.kill()
            process.wait()
    seconds = time.perf_counter() - began
    if process.returncode:
        words = log.read_text(encoding="utf-8", errors="replace")
        raise FitError(words[-TAIL:].strip() or f"exit code {process.returncode}")
    return answer.read_text(encoding="utf-8"), seconds, most


def _peak_mb(pid: int) -> float:
    """The most that a process has held so far; 0 where that cannot be seen."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    lines = [line.split() for line in status.splitlines() if line.startswith("VmHWM")]
    return float(lines[0][1]) / 1024.0 if lines else 0.0


def _read(path: Path, table: NamedTable) -> pd.DataFrame:
    """A peer's CSV file; labels as text."""
    labels = {column.name: "str" for column in table.schema.columns if column.kind.listed}
    return pd.read_csv(path, dtype=labels, keep_default_na=False, na_values=[""])


def _commit(folder: Path) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"
