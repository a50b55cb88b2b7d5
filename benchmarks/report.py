"""How long a whole report takes, and how much memory: first figures, all figures, by length.

    python benchmarks/report.py --train adult_train.csv --test adult_test.csv --target income
    python benchmarks/report.py … --rows 1000000

Each length runs in a process of its own, as the worker makes reports: files are read, measured and
the report written. With `--rows` both tables are drawn from the training table with replacement;
the synthetic one also has every tenth value of each column shuffled.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def tables(train: pd.DataFrame, rows: int | None, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A real and a synthetic table of that many rows."""
    rng = np.random.default_rng(seed)
    real = train if rows is None else train.iloc[rng.integers(len(train), size=rows)]
    made = train.iloc[rng.integers(len(train), size=len(real))].reset_index(drop=True)
    for name in made.columns:
        some = np.flatnonzero(rng.random(len(made)) < 0.1)
        made[name] = made[name].where(
            ~np.isin(np.arange(len(made)), some), made[name].sample(frac=1, random_state=seed).array
        )
    return real.reset_index(drop=True), made


def measure(folder: Path, target: str) -> dict[str, float]:
    """In this process: seconds to the first figures and to all, peak memory."""
    import psutil

    from core.proposing.propose import infer_schema
    from core.quality.report.build_report import build_report
    from core.runs.execution.reporter import peak_memory_mb

    before = psutil.Process().memory_info().rss / 2**20
    began = time.perf_counter()
    real, made = (pd.read_parquet(folder / f"{name}.parquet") for name in ("real", "made"))
    test = pd.read_parquet(folder / "test.parquet")
    read = time.perf_counter() - began
    schema = infer_schema(real.head(100_000)).model_copy(update={"target": target})
    began = time.perf_counter()
    first: list[float] = []
    report = build_report(
        real,
        made,
        schema,
        test=test,
        save=lambda _: first.append(time.perf_counter() - began),
    )
    return {
        "rows": len(real),
        "read_s": read,
        "first_s": first[0],
        "all_s": time.perf_counter() - began,
        "imports_mb": before,
        "peak_mb": peak_memory_mb(),
        "report_mb": len(report.model_dump_json()) / 1e6,
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", type=Path)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--target", required=True)
    parser.add_argument("--rows", type=int, nargs="*", default=[])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        print(json.dumps(measure(options.folder, options.target)))
        return 0
    from tests.reading.files import read_table

    read = read_table(options.train)
    train, test = read.frame, read_table(options.test, schema=read.schema).frame
    found = []
    for rows in options.rows or [None]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            real, made = tables(train, rows, seed=0)
            for key, frame in (("real", real), ("made", made), ("test", test)):
                frame.to_parquet(folder / f"{key}.parquet", index=False)
            command = [sys.executable, __file__, "--target", options.target, "--folder", name]
            ended = subprocess.run(command, capture_output=True, text=True, check=True)
        one = json.loads(ended.stdout.splitlines()[-1])
        found.append(one)
        print(
            f"{one['rows']:>9,} rows a side: first figures {one['first_s']:.1f} s, "
            f"all {one['all_s']:.0f} s, peak memory {one['peak_mb']:,.0f} MiB"
        )
    if options.json:
        print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
