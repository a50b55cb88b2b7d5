"""Any tables: what a run that nothing was declared to learns of their bounds and lists.

    python benchmarks/learned_domains.py FILE... [--epsilon 1] [--seeds 5]

Printed are means over all columns and seeds: of numbers, the share of cells beyond the bounds, in
how many columns these are more than 2 and 5 %, and how much wider than the middle 99.6 % of the
numbers the bounds are (as a power of two, and in how many columns more than four times); of lists,
the share of cells under labels that were not found; of both, missing cells of columns that the run
took to have none. Columns of which 90 % or more are missing are left out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.privacy.discovery.open_domain import as_learned, open_domain, without_proposals
from core.privacy.discovery.release import release_domain
from core.privacy.meter import Meter
from core.proposing.propose import infer_schema
from core.reading.typed_cells import frame_as_declared
from core.runs.request import RunRequest
from core.schema.column import Kind, SchemaColumn
from core.services.planning import make_plan

MOST_MISSING = 0.9
MIDDLE = [0.002, 0.998]
NUMBERS = "numbers"
OUTSIDE, FAR, VERY, WIDER, MUCH = "outside", "over 2 %", "over 5 %", "log2 wider", "over 4 times"


def judged(column: SchemaColumn, cells: pd.Series) -> tuple[str, dict[str, float]] | None:
    """The kind of a learned column, and how what was learned fits its cells; None if left out."""
    missing = float(cells.isna().mean())
    if missing >= MOST_MISSING or column.kind is Kind.DATETIME or column.kind.surrogate:
        return None
    lost = {"missing lost": 0.0 if column.missing else missing}
    if column.kind.listed:
        there = cells.dropna().astype("str")
        return "lists", lost | {OUTSIDE: float((~there.isin(column.categories or ())).mean())}
    assert column.low is not None and column.high is not None
    numbers = pd.to_numeric(cells, errors="coerce").dropna()
    outside = float(((numbers < column.low) | (numbers > column.high)).mean())
    low, high = numbers.quantile(MIDDLE)
    wider = np.log2(max(column.high - column.low, 1e-9) / max(high - low, 1e-9)).clip(-10, 10)
    over = {FAR: float(outside > 0.02), VERY: float(outside > 0.05), MUCH: float(wider > 2.0)}
    return NUMBERS, lost | {OUTSIDE: outside, WIDER: float(wider)} | over


def found(path: str, epsilon: float, seeds: int) -> list[tuple[str, dict[str, float]]]:
    """What some runs learn of each column of a file; their noise is drawn anew."""
    frame = pd.read_csv(path, low_memory=False)
    schema = as_learned(infer_schema(frame))
    plan = make_plan(schema, len(frame), RunRequest(model="scan_focus", epsilon=epsilon))
    wanted, read = open_domain(schema), without_proposals(schema)
    cells = frame_as_declared(frame, [read[name] for name in wanted.names])
    runs = [release_domain(cells, wanted, plan, Meter(plan)) for _ in range(seeds)]
    every = (judged(column, cells[column.name]) for run in runs for column in run.columns)
    return [one for one in every if one is not None]


def main(arguments: list[str] | None = None) -> int:
    """Learn, judge, print. Exit code 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    columns = [one for path in options.files for one in found(path, options.epsilon, options.seeds)]
    for kind in (NUMBERS, "lists"):
        own = [values for of, values in columns if of == kind]
        means = ", ".join(f"{n} {fmean(one[n] for one in own):.4f}" for n in own[0]) if own else ""
        print(f"{kind}: {len(own)} columns; {means}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
