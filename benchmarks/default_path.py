"""What a steward gets who declares nothing, beside the same table with all of it declared public.

    FACSIMILE_DATA=… python -m benchmarks.default_path adult titanic court visits TABLE.csv \
        --model scan_focus --epsilon 0.2,1,4 --seeds 3 --target NAME --out FILE.json

Each table × ε × seed is two runs: `declared` takes bounds and labels as inferred from the rows;
`default` learns them with noise, within the same ε. A quarter of the rows (or people) is kept apart
to judge by, as `frontier.py` does. Both tables are read by the schema inferred from the training
rows, so a label that became OTHER is wrong and a column that is gone is all missing.

Printed are means, with the least and the most over seeds in brackets; a ratio is the mean of each
seed's default ÷ declared. `uploads.py` has the tables with a name; `--target` and `--person` are
for files. FILE.json is written after every run, and a run in it is not repeated unless `--again`.
`--quick` leaves out the prediction gap, most of the time that judging a wide table takes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.frontier import Results
from benchmarks.frontier_figures import FIGURES, ceiling, judged
from benchmarks.named_tables import NamedTable
from benchmarks.uploads import NAMES, Upload, judged_columns, upload
from core.api import Synthetic, synthesize
from core.models.registry import cards, synthesizer
from core.reading.typed_cells import frame_as_declared
from core.schema.column import Column
from core.schema.labels import (
    category_indices,
    is_absent,
    listed_labels,
    to_labels,
    to_numbers,
)
from core.schema.schema import Schema
from core.services.synthesis.options import settings_of

Values = dict[str, float | None]
Runs = dict[str, dict[str, Any]]
OWN = {
    "columns_gone": "columns that have disappeared",
    "columns_made_up": "columns of made-up values (identifiers, text)",
    "labels_kept": "labels kept",
    "labels_there": "labels in the rows",
    "labels_share": "labels kept of those in the rows",
    "other_cells": "cells under OTHER, of all modelled cells that are not missing",
    "other_rows": "cells under OTHER, training rows, mean over lists",
    "other_made": "cells under OTHER, synthetic rows, mean over lists",
    "outside": "numeric cells outside the bounds",
    "seconds": "seconds",
    "epsilon_claimed": "ε claimed",
}


def default_run(rows: pd.DataFrame, options: dict[str, Any]) -> Synthetic:
    """A run of which nothing is declared; `options` are those of `core.api.synthesize`."""
    return synthesize(rows, **options)


def declared_run(rows: pd.DataFrame, options: dict[str, Any]) -> Synthetic:
    """A run with what is inferred from the rows declared public; `options` as above."""
    return synthesize(rows, **options, declare_public=True)


RUNS: dict[str, Callable[[pd.DataFrame, dict[str, Any]], Synthetic]] = {
    "declared": declared_run,
    "default": default_run,
}


@contextlib.contextmanager
def new_workspace() -> Iterator[None]:
    """An empty workspace, so that no run uses what another learned; notes are not printed."""
    before = os.environ.get("FACSIMILE_HOME")
    with tempfile.TemporaryDirectory(prefix="default-path-") as folder:
        os.environ["FACSIMILE_HOME"] = folder
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                yield
        finally:
            del os.environ["FACSIMILE_HOME"]
            if before is not None:
                os.environ["FACSIMILE_HOME"] = before


def run_one(path: str, given: Upload, epsilon: float, seed: int, asked: argparse.Namespace) -> Any:
    """What one run reached, or why it was refused.

    Args:
      path: of `RUNS`.

    Returns:
      {"figures": …} or {"failed": …}, JSON values.
    """
    options = given.options | {"epsilon": epsilon, "delta": asked.delta, "model": asked.model}
    options |= {"seed": seed, "device": "cpu", "settings": settings_of(asked.settings)}
    with new_workspace():
        began = time.perf_counter()
        try:
            made = RUNS[path](given.table.train, options)
        except ValueError as error:
            return {"failed": str(error)}
        seconds = time.perf_counter() - began
    figures = domain_figures(given.table, made.schema, made.table)
    figures |= {"seconds": seconds, "epsilon_claimed": made.guarantee.epsilon}
    table = judged_columns(given.table)
    synthetic = made.table.reindex(columns=list(table.schema.names))  # a column that is gone: empty
    return {
        "figures": judged(table, synthetic, seed, ten=False, every_column=not asked.quick)
        | figures,
        "trained": len(given.table.train),
    }


def domain_figures(table: NamedTable, schema: Schema, made: pd.DataFrame) -> Values:
    """What a run's domains hold of the training rows.

    Shares of cells are means over the run's own modelled columns, each of the cells that are not
    missing. A code of which the list holds the beginning is not under OTHER, a placeholder is.
    Labels are those of the columns that are lists in the table's inferred schema; one is lost with
    its column, and none is where the run reads the column as numbers.
    """
    columns = [column for column in schema.columns if column.modelled]
    names = {column.name for column in columns}
    rows = frame_as_declared(table.train, columns)
    found: dict[str, list[float]] = {"other_rows": [], "other_made": [], "outside": []}
    merged = present = 0
    for column in columns:
        cells = _present(rows[column.name], column)
        present += len(cells)
        if column.kind.listed:
            other = (column.categories or ()).index(column.other) if column.other else -1
            unlisted = np.isin(category_indices(cells, column), (-1, other))
            found["other_rows"].append(float(unlisted.mean()))
            merged += int(unlisted.sum())
            drawn = _present(made[column.name], column) if column.name in made else cells[:0]
            found["other_made"].append(float((listed_labels(drawn, column) == column.other).mean()))
        elif column.low is not None and column.high is not None:
            x = to_numbers(cells, column)
            found["outside"].append(
                1.0 - float(pd.Series(x).between(column.low, column.high).mean())
            )
    kept, there = _labels_kept(table, schema)
    shares = {key: float(np.nanmean(some)) if some else None for key, some in found.items()}
    return shares | {
        "other_cells": merged / present if present else None,
        "columns_gone": float(sum(name not in made for name in table.train.columns)),
        "columns_made_up": float(sum(name in made and name not in names for name in schema.names)),
        "labels_kept": float(kept),
        "labels_there": float(there),
        "labels_share": kept / there if there else None,
    }


def _labels_kept(table: NamedTable, schema: Schema) -> tuple[int, int]:
    """How many labels of the training rows a run's lists hold, and how many there are."""
    kept = there = 0
    for column in table.schema.columns:
        if not (column.modelled and column.kind.listed):
            continue
        own = schema[column.name] if column.name in schema.names else None
        if own is not None and own.modelled and own.kind.numeric:
            continue
        real = set(to_labels(_present(table.train[column.name], column)))
        there += len(real)
        kept += 0 if own is None or not own.modelled else len(real & _labels(own))
    return kept, there


def _labels(column: Column) -> set[str]:
    return set(column.categories or ()) - {column.other}


def _present(cells: pd.Series, column: Column) -> pd.Series:
    return cells[~is_absent(cells, column)]


# -- a campaign -----------------------------------------------------------------------------------


def identity(name: str, epsilon: float, seed: int, path: str, asked: argparse.Namespace) -> str:
    """What tells one run from another."""
    own = {key: getattr(asked, key) for key in ("target", "person", "rows_per_person", "delta")}
    said = [f"{key}={value}" for key, value in own.items() if value is not None]
    parts = [name, asked.model, *asked.settings, *said, f"e{epsilon:g}", f"s{seed}", path]
    return " ".join(parts)


def campaign(results: Results, asked: argparse.Namespace) -> None:
    """Make the runs that are asked for and not there, and store each as it is done."""
    synthesizer(asked.model)  # loads its libraries, which no run's seconds should hold
    own = {"target": asked.target, "person": asked.person, "rows_per_person": asked.rows_per_person}
    for name in asked.tables:
        for seed in range(asked.seeds):
            given = None
            for epsilon in asked.epsilon:
                for path in RUNS:
                    key = identity(name, epsilon, seed, path, asked)
                    if key in results.runs and not asked.again:
                        continue
                    given = given or upload(name, seed=seed, **own)
                    if given.table.name not in results.ceilings:
                        results.ceilings[given.table.name] = ceiling(judged_columns(given.table))
                    run = run_one(path, given, epsilon, seed, asked)
                    date = datetime.now(UTC).date().isoformat()
                    results.runs[key] = run | {"date": date, "command": repeat(name, asked)}
                    results.save()
                    print(f"{key}: {run.get('failed', 'done')}", file=sys.stderr, flush=True)


def repeat(name: str, asked: argparse.Namespace, epsilon: float | None = None) -> str:
    """The command that makes a table's runs again."""
    epsilons = asked.epsilon if epsilon is None else [epsilon]
    words = ["python", "-m", "benchmarks.default_path", name, "--model", asked.model]
    words += ["--epsilon", ",".join(f"{one:g}" for one in epsilons), "--seeds", str(asked.seeds)]
    for key in ("target", "person", "rows_per_person", "delta"):
        if getattr(asked, key) is not None:
            words += [f"--{key.replace('_', '-')}", str(getattr(asked, key))]
    words += ["--settings", *asked.settings] if asked.settings else []
    words += ["--quick"] if asked.quick else []
    return shlex.join([*words, "--out", str(asked.out), "--again"])


def page(results: Results, asked: argparse.Namespace) -> str:
    """A table in Markdown for every table and ε, with the command that repeats it."""
    parts = []
    for name in asked.tables:
        for epsilon in asked.epsilon:
            lines = [f"## {name}, ε = {epsilon:g}, {asked.model}", ""]
            runs = {
                path: [
                    results.runs[identity(name, epsilon, seed, path, asked)]
                    for seed in range(asked.seeds)
                ]
                for path in RUNS
            }
            lines += figures_table(runs, results.ceilings.get(Path(name).stem, {}))
            parts.append("\n".join([*lines, "", f"`{repeat(name, asked, epsilon)}`", ""]))
    return "\n".join(parts)


def figures_table(runs: dict[str, list[dict[str, Any]]], real: Values) -> list[str]:
    """Lines of a table in Markdown: figures in rows, declared, default, ratio, real rows.

    Args:
      runs: by path, in the order of seeds.
      real: what learning from the real rows reaches.
    """
    titles = {key: figure.title for key, figure in FIGURES.items() if key not in OWN} | OWN
    lines = ["| figure | declared | default | default ÷ declared | real rows |", "|---" * 5 + "|"]
    for key, title in titles.items():
        pairs = [
            tuple(run.get("figures", {}).get(key) for run in both)
            for both in zip(runs["declared"], runs["default"], strict=True)
        ]
        cells = [spread([pair[i] for pair in pairs]) for i in (0, 1)]
        if cells == ["–", "–"]:
            continue
        ratios = [default / declared for declared, default in pairs if declared and default]
        best = "" if real.get(key) is None else f"{real[key]:.4g}"
        lines.append(f"| {title} | {cells[0]} | {cells[1]} | {spread(ratios)} | {best} |")
    refused = [
        f"{path}, seed {seed}: refused. {run['failed']}"
        for path, some in runs.items()
        for seed, run in enumerate(some)
        if "failed" in run
    ]
    return lines + ([""] + refused if refused else [])


def spread(values: list[float | None]) -> str:
    """The mean and, of several, the least and the most.

    >>> spread([0.25, 0.75, None]), spread([2.0]), spread([])
    ('0.5 (0.25–0.75)', '2', '–')
    """
    there = [value for value in values if value is not None]
    if not there:
        return "–"
    text = f"{np.mean(there):.4g}"
    return text if len(there) == 1 else f"{text} ({min(there):.4g}–{max(there):.4g})"


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("tables", nargs="+", metavar="TABLE", help=f"path, or {', '.join(NAMES)}")
    parser.add_argument("--model", default="scan_focus", choices=[card.id for card in cards()])
    parser.add_argument(
        "--epsilon", type=lambda text: [float(one) for one in text.split(",")], default=[1.0]
    )
    parser.add_argument("--delta", type=float, help="the product's own when not given")
    parser.add_argument("--seeds", type=int, default=1, help="pairs of runs of each")
    parser.add_argument("--target", help="column to predict, in files")
    parser.add_argument("--person", help="column of files that says who a row is about")
    parser.add_argument("--rows-per-person", type=int)
    parser.add_argument("--settings", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--quick", action="store_true", help="without the prediction gap")
    parser.add_argument("--again", action="store_true", help="repeat runs that are there")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run, judge, write, print. Exit code 0."""
    asked = parse(arguments)
    results = Results(asked.out)
    campaign(results, asked)
    print(page(results, asked))
    return 0


if __name__ == "__main__":
    sys.exit(main())
