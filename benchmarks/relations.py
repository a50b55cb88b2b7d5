"""Any table: how much of its strong correlations and of its orders comes out.

    python benchmarks/relations.py FILE [--epsilon 1] [--seeds 3]

Nothing is declared. A correlation is strong if its Spearman coefficient is beyond 0.3; an order
holds where the first of two numbers or dates, whose usual ranges overlap, is above the second in
at most 0.5 % of the rows that have both.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core import api

STRONG, KEPT, FEWEST = 0.3, 0.995, 200  # the last: rows that have both columns


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that are numbers or dates, float64."""
    found = {}
    for name, cells in frame.items():
        known = pd.to_numeric(cells, errors="coerce")
        if known.notna().sum() < 0.95 * cells.notna().sum():
            dates = pd.to_datetime(cells, errors="coerce", format="mixed", utc=True)
            known = dates.astype("int64").astype(float).where(dates.notna())
        if known.notna().sum() >= max(FEWEST, 0.95 * cells.notna().sum()) and known.nunique() > 2:
            found[name] = known.astype(float)
    return pd.DataFrame(found)


def orders(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Columns of which the first is never above the second."""
    ends = frame.quantile([0.05, 0.95])
    found = []
    for low, high in permutations(frame, 2):
        there = frame[[low, high]].dropna()
        overlap = ends[[low, high]].loc[0.05].max() < ends[[low, high]].loc[0.95].min()
        if overlap and len(there) >= FEWEST and (there[low] <= there[high]).mean() >= KEPT:
            found.append((low, high))
    return found


def figures(real: pd.DataFrame, made: pd.DataFrame) -> dict[str, float]:
    """Of one run: what is left of the strong correlations, and how many rows break an order."""
    own, other = numbers(real), numbers(made).reindex(columns=numbers(real).columns)
    above = np.triu_indices(len(own.columns), 1)
    true, seen = (
        frame.corr("spearman", min_periods=FEWEST // 4).to_numpy()[above] for frame in (own, other)
    )
    strong = np.abs(np.nan_to_num(true)) > STRONG
    true, seen = true[strong], np.nan_to_num(seen[strong])
    broken = [float((other[low] > other[high]).mean()) for low, high in orders(own)]
    return {
        "strong correlations": float(strong.sum()),
        "of their size kept, %": 100.0 * float(np.mean(seen / true)),
        "mean error": float(np.abs(seen - true).mean()),
        "orders": float(len(broken)),
        "broken in more than 1 % of rows": float(np.sum(np.array(broken) > 0.01)),
    }


def main(arguments: list[str] | None = None) -> int:
    """Make, judge, print. Exit code 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(arguments)
    real, found = pd.read_csv(options.file, low_memory=False), []
    with tempfile.TemporaryDirectory() as home:
        os.environ["FACSIMILE_HOME"] = home
        for seed in range(options.seeds):
            asked = {"model": "scan_focus", "people": "new", "epsilon": options.epsilon}
            made = api.synthesize(real, **asked, seed=seed).table
            found.append(figures(real, made))
    for name in found[0]:
        values = [run[name] for run in found]
        print(f"{name}: {np.mean(values):.3g} ({min(values):.3g} to {max(values):.3g})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
