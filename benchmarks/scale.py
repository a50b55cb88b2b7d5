"""How large a table may be: seconds and memory of a whole line, by rows and columns.

    python benchmarks/scale.py --rows 1000000 --columns 50 --model pearl [--report] [--json]
    python benchmarks/scale.py                       # a sweep, as ratios to its first line

Each line runs in a process of its own: a generated Parquet file is taken into a workspace, a run is
planned and paid for, the model is trained, as many rows are drawn and written as Parquet and as
CSV, and the two tables are compared where that is asked for. Writing the file is not counted.
Seconds are those of the clock; beside them stand the processor's, which other people's work does
not stretch, and the machine's load.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.runs.request import RunRequest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.scale_page import plan_on_paper, write_page  # noqa: E402
from core.schema.column import Column, Kind  # noqa: E402
from core.schema.schema import Schema  # noqa: E402
from core.writing.tables import write_row_groups  # noqa: E402

BATCH = 131_072
EPSILON = 1.0
SWEEP_ROWS, SWEEP_COLUMNS, SWEEP_WORKERS = (10**5, 10**6, 10**7), (10, 50, 200, 1000), (1, 2, 4)
MOST_CELLS = 5 * 10**8  # of a line of the sweep
MODELS = ("pearl", "scan_focus", "p3gm")
LABELS = tuple(f"label {i}" for i in range(12))
MIB = 1024.0


def schema_of(columns: int) -> Schema:
    """Numbers, whole numbers and categories in turns, some with gaps; the last is the target."""
    declared = [_column(i) for i in range(columns - 1)]
    target = Column(name="target", kind=Kind.CATEGORY, categories=("no", "yes"), dtype="str")
    return Schema(columns=(*declared, target), target="target")


def _column(i: int) -> Column:
    gaps, name = i % 7 == 0, f"c{i:04d}"
    if i % 5 in (0, 3):
        return Column(
            name=name, kind=Kind.NUMBER, low=-5.0, high=5.0, missing=gaps, dtype="float64"
        )
    if i % 5 == 1:
        return Column(
            name=name, kind=Kind.INTEGER, low=0, high=200, step=1, spikes=(0.0,), dtype="int64"
        )
    names = LABELS[: 3 + i % 10]
    return Column(name=name, kind=Kind.CATEGORY, categories=names, missing=gaps, dtype="str")


def batches(rows: int, schema: Schema, seed: int = 0) -> Iterator[pd.DataFrame]:
    """Rows whose columns hang together through three hidden numbers, `BATCH` at a time."""
    weights = np.random.default_rng(seed).normal(size=(len(schema.columns), 3))
    for number, start in enumerate(range(0, rows, BATCH)):
        random = np.random.default_rng((seed, number))
        count = min(BATCH, rows - start)
        hidden = random.normal(size=(count, 3))
        cells = {}
        for column, weight in zip(schema.columns, weights, strict=True):
            x = 0.6 * hidden @ weight + random.normal(size=count)
            gone = (random.random(count) < 0.1) if column.missing else np.zeros(count, dtype=bool)
            if column.kind is Kind.NUMBER:
                cells[column.name] = np.where(gone, np.nan, np.clip(x, -5.0, 5.0))
            elif column.kind is Kind.INTEGER:
                cells[column.name] = np.clip(x * 40.0, 0, 200).astype(np.int64)
            else:
                names = np.array([*(column.categories or ()), None], dtype=object)
                positions = np.clip((x + 2.0) / 4.0 * (len(names) - 1), 0, len(names) - 2)
                at = np.where(gone, len(names) - 1, positions.astype(np.int64))
                cells[column.name] = pd.Series(names[at], dtype="str")
        yield pd.DataFrame(cells)


def line(options: argparse.Namespace, file: Path, home: Path) -> dict[str, Any]:
    """Work one line off, in this process; what it took."""
    from core.runs.execution.threads import limit_threads

    limit_threads()
    from core.models.registry import synthesizer
    from core.runs.execution.job import Job
    from core.runs.execution.pipeline import execute
    from core.runs.execution.reports import make_reports
    from core.runs.execution.training_rows import StoredRows
    from core.runs.storage.store import RunStore
    from core.runs.workspace import Workspace
    from core.services.export import reviewed_file
    from core.services.planning import make_plan

    schema, watch = schema_of(options.columns), _Watch()
    made = options.synthetic or options.rows
    with RunStore(Workspace(home)) as store:
        watch.enter("import")
        table = _take_in(store, file, schema)
        watch.enter("plan")
        request = _request(options, made)
        plan = make_plan(schema, table.training_n, request)
        run = store.create_run(table.id, plan, request, schema=schema)
        rows = StoredRows(store, table.id, schema)
        with store.artefacts(run.id).working() as workplace:
            job = Job(
                table="scale",
                table_id=table.id,
                request=request,
                plan=plan,
                schema=schema,
                device="cpu",
                artefacts=workplace,
                account_id=table.account_id,
                debit_key=run.debit_key,
            )
            execute(job, rows, store=store, on_event=watch, find=synthesizer)
        if not options.no_csv:
            watch.enter("csv")
            reviewed_file(store, run, format="csv")
        if options.report:
            watch.enter("report")
            make_reports(store, store.run(run.id), on_progress=lambda *_: None)
        watch.enter(None)
    return {
        "model": options.model,
        "rows": options.rows,
        "synthetic": made,
        "columns": options.columns,
        "workers": options.workers,
        **watch.figures(),
    }


def _request(options: argparse.Namespace, rows: int) -> RunRequest:
    settings = json.loads(options.settings)
    return RunRequest(
        model=options.model, epsilon=EPSILON, settings=settings, rows=rows, seed=1, device="cpu"
    )


class _Watch:
    """Seconds and memory of each stage; an observer of a run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peaks: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self._now: str | None = None
        self._since, self._used = time.monotonic(), sum(os.times()[:4])

    def figures(self) -> dict[str, Any]:
        """What was measured, rounded."""
        return {
            "seconds": round(sum(self.seconds.values()), 1),
            "cpu_seconds": round(sum(os.times()[:4]), 1),
            "peak_memory_mb": round(max(self.peaks.values())),
            "load": round(os.getloadavg()[1], 1),
            "stages": {name: round(seconds, 1) for name, seconds in self.seconds.items()},
            "stages_cpu": {name: round(seconds, 1) for name, seconds in self.cpu.items()},
            "peaks": {name: round(mb) for name, mb in self.peaks.items()},
        }

    def enter(self, stage: str | None) -> None:
        """The stage before ends, this one begins."""
        now, used = time.monotonic(), sum(os.times()[:4])
        if self._now is not None:
            self.cpu[self._now] = self.cpu.get(self._now, 0.0) + used - self._used
            self.seconds[self._now] = self.seconds.get(self._now, 0.0) + now - self._since
            ended = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)  # a table is read by a child
            self.peaks[self._now] = max(resource.getrusage(who).ru_maxrss for who in ended) / MIB
            told = f"{self._now}: {now - self._since:.0f} s, of them {used - self._used:.0f} s of"
            print(f"{told} a processor; peak {self.peaks[self._now]:.0f} MB", file=sys.stderr)
        self._now, self._since, self._used = stage, now, used

    def __call__(self, event: Any) -> Any:
        from core.models.events import Signal

        if event.kind == "phase":
            self.enter(event.data["name"])
        return Signal.GO_ON


def _take_in(store: Any, file: Path, schema: Schema) -> Any:
    """The file as a table of the workspace, as a steward brings it in and confirms it."""
    from core.services.imports import import_address
    from core.services.tables import confirm_schema

    table = import_address(store, str(file), account_id="scale")
    table = confirm_schema(store, table.id, schema)
    store.attest(table.id)
    return table


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """One line, in a fresh process, on a file that is written before."""
    folder = Path(tempfile.mkdtemp(prefix="scale-", dir=options.folder))
    try:
        file = folder / "table.parquet"
        with file.open("wb") as out:
            write_row_groups(batches(options.rows, schema_of(options.columns)), out)
        command = [
            sys.executable, __file__, "--rows", str(options.rows), "--columns",
            str(options.columns), "--model", options.model, "--workers", str(options.workers),
            "--settings", options.settings, "--synthetic", str(options.synthetic or options.rows),
            "--inside", str(folder),
        ]  # fmt: skip
        command += ["--report"] * options.report + ["--no-csv"] * options.no_csv
        threads = {"OMP_NUM_THREADS": str(options.workers)}
        done = subprocess.run(
            command, env=os.environ | threads, check=True, stdout=subprocess.PIPE, text=True
        )
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result | {"file_mb": round(file.stat().st_size / 2**20)}
    finally:
        shutil.rmtree(folder)


def sweep(options: argparse.Namespace) -> None:
    """Rows by columns by workers; a page and a file of figures beside the other results."""
    lines = []
    for rows in SWEEP_ROWS:
        for columns in SWEEP_COLUMNS:
            if rows * columns > MOST_CELLS:
                continue
            for workers in SWEEP_WORKERS if (rows, columns) == (10**6, 50) else (2,):
                one = argparse.Namespace(
                    **vars(options) | {"rows": rows, "columns": columns, "workers": workers}
                )
                lines.append(measured(one))
                print(json.dumps(lines[-1]), flush=True)
                write_page(lines)
    print(plan_on_paper(lines))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--synthetic", type=int, help="rows to make; as many by default")
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--model", choices=MODELS, default="pearl")
    parser.add_argument("--workers", type=int, default=2, help="processors that compute")
    parser.add_argument("--settings", default="{}", help="of the model, as JSON")
    parser.add_argument("--report", action="store_true", help="compare the tables too")
    parser.add_argument("--no-csv", action="store_true", help="leave the CSV file out")
    parser.add_argument("--folder", help="where files are made; the system's by default")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        print(json.dumps(line(options, options.inside / "table.parquet", options.inside / "home")))
    elif options.rows is None:
        sweep(options)
    else:
        result = measured(options)
        for name in ("rows", "columns", "seconds", "cpu_seconds", "peak_memory_mb", "load"):
            print(f"{name}: {result[name]}")
        print(", ".join(f"{name} {s} s" for name, s in result["stages_cpu"].items()))
        if options.json:
            print(json.dumps(result))


if __name__ == "__main__":
    main()
