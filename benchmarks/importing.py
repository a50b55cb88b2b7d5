"""What bringing in a large table takes, in two checkouts of the product one after the other.

    python benchmarks/importing.py --checkout BEFORE --checkout . --folder DATA

Makes, once and from a seed, a Parquet file of `--rows` by 50 and a CSV file of `--megabytes`, and
brings each in by its address into a fresh workspace, as the Tables page does. The checkouts take
turns. Told are the median seconds, the most memory of one process and of all together in MB of 2²⁰
bytes, and ratios to the first checkout. The sample table's figure is `import_frame` alone, as the
first page waits for it, the median of many in one process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

BATCH, COLUMNS, TEXT_COLUMNS, MIB = 131_072, 50, 20, 2.0**20
LABELS = pa.array([f"ward {i}" for i in range(40)])
DAY = np.datetime64("2015-01-01")
SAMPLES, GLANCE = 9, 0.2  # imports of the sample; seconds between two looks at memory
WORK = """
import json, statistics, sys, time
from pathlib import Path
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.services.sample_tables import sample_table

try:
    from core.services.imports import import_address, import_frame
except ImportError:  # a checkout from before there was one reader
    from core.services.importing_process import import_apart as import_address
    from core.services.tables import import_frame

home, address, samples = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
seconds = []
for number in range(samples):
    with RunStore(Workspace(home / str(number))) as store:
        frame = None if address else sample_table()
        started = time.monotonic()
        if frame is None:
            table = import_address(store, address)
        else:
            table = import_frame(store, frame, name="sample", source="sample")
        seconds.append(time.monotonic() - started)
print(json.dumps({"seconds": statistics.median(seconds), "rows": table.n}))
"""


def batches(rows: int, columns: int, seed: int = 0) -> Iterator[pa.Table]:
    """Whole numbers, amounts with two decimals, labels and days in turns, every ninth with gaps."""
    for start in range(0, rows, BATCH):
        random, count = np.random.default_rng((seed, start)), min(BATCH, rows - start)
        made = {}
        for i in range(columns):
            gone = random.random(count) < 0.1 if i % 9 == 0 else None
            if i % 4 == 0:
                cells = pa.array(random.poisson(40, count), pa.int64(), mask=gone)
            elif i % 4 == 1:
                amounts = np.round(random.gamma(2.0, 45.0, count), 2)
                cells = pa.array(amounts, pa.float64(), mask=gone)
            elif i % 4 == 2:
                named = random.integers(0, len(LABELS), count)
                cells = LABELS.take(pa.array(named, pa.int64(), mask=gone))
            else:
                cells = pa.array(DAY + random.integers(0, 3_650, count), pa.date32(), mask=gone)
            made[f"c{i:02d}"] = cells
        yield pa.table(made)


def parquet_file(folder: Path, rows: int) -> Path:
    """The Parquet file, made where it is not there yet."""
    file, parts = folder / f"{rows}x{COLUMNS}.parquet", batches(rows, COLUMNS)
    if not file.exists():
        first, begun = next(parts), file.with_suffix(".begun")
        with pq.ParquetWriter(begun, first.schema) as writer:
            for part in chain([first], parts):
                writer.write_table(part)
        begun.rename(file)
    return file


def csv_file(folder: Path, megabytes: int) -> Path:
    """The CSV file, made where it is not there yet."""
    file, parts = folder / f"{megabytes}mb.csv", batches(10**9, TEXT_COLUMNS, seed=1)
    if not file.exists():
        first, begun = next(parts), file.with_suffix(".begun")
        with begun.open("wb") as out, pc.CSVWriter(out, first.schema) as writer:
            writer.write_table(first)
            while out.tell() < megabytes * 10**6:
                writer.write_table(next(parts))
        begun.rename(file)
    return file


def together(process_id: int) -> int:
    """Bytes that a process and its children hold, shared pages counted once; 0 once ended."""
    try:
        process = psutil.Process(process_id)
        all_of_them = (process, *process.children(recursive=True))
        return sum(one.memory_full_info().pss for one in all_of_them)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


def measured(checkout: Path, address: str, samples: int, folder: Path) -> dict[str, float]:
    """One import into a fresh workspace, in a process of its own.

    Args:
      checkout: whose code runs.
      address: of the table; "" for the sample table.
      samples: how many times.
      folder: where the workspace lies meanwhile.
    """
    with tempfile.TemporaryDirectory(dir=folder) as home:
        own = {"PYTHONPATH": str(checkout), "FACSIMILE_HOME": home}
        child = subprocess.Popen(
            [sys.executable, "-c", WORK, home, address, str(samples)],
            cwd=checkout,
            env=os.environ | own,
            stdout=subprocess.PIPE,
            text=True,
        )
        held, ended = [0], threading.Event()

        def watch() -> None:
            while not ended.wait(GLANCE):
                held.append(together(child.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        assert child.stdout is not None
        told = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)  # with the processes that it waited for
        ended.set()
        watcher.join()
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{checkout}: {address or 'the sample table'} was not brought in.")
    result: dict[str, float] = json.loads(told.splitlines()[-1])
    return result | {"largest_mb": used.ru_maxrss / 1024, "together_mb": max(held) / MIB}


def compared(options: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """By table, what each checkout took: medians over the repeats."""
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    rows, megabytes, addresses = options.rows, options.megabytes, {"sample": ""}
    if rows:
        addresses[f"Parquet, {rows:,} × {COLUMNS}"] = str(parquet_file(folder, rows))
    if megabytes:
        addresses[f"CSV, {megabytes} MB"] = str(csv_file(folder, megabytes))
    results = {}
    for name, address in addresses.items() if not options.make else ():
        times = 1 if address else SAMPLES
        lines: list[list[dict[str, float]]] = [[] for _ in options.checkout]
        for _ in range(options.repeats):
            for checkout, line in zip(options.checkout, lines, strict=True):
                line.append(measured(checkout.resolve(), address, times, folder))
        results[name] = [
            {key: statistics.median(one[key] for one in line) for key in line[0]} for line in lines
        ]
        for checkout, one in zip(options.checkout, results[name], strict=True):
            first = results[name][0]
            told = (f"{key} {one[key]:.3g} (× {one[key] / first[key]:.2f})" for key in one)
            print(f"{name}: {checkout}: {', '.join(told)}", flush=True)
    return results


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, action="append", required=True)
    parser.add_argument("--folder", type=Path, required=True, help="of files; they stay")
    parser.add_argument("--rows", type=int, default=10**7, help="of the Parquet file; 0 for none")
    parser.add_argument("--megabytes", type=int, default=526, help="of the CSV file; 0 for none")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--make", action="store_true", help="make the files alone")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = compared(options)
    print(json.dumps(results) if options.json else "", end="")


if __name__ == "__main__":
    main()
