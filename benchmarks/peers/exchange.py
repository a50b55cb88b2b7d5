"""What every peer's glue shares: reading a table as declared, bins, and saying what was done.

It runs in a peer's environment, so it needs numpy and pandas and nothing of ours. Numbers that the
declaration calls log-scaled get 31 log-spaced bins and one for the exact lower bound, other numbers
32 bins of equal width or one a value where there are fewer; an absent value has a code of its own.
Preprocessing matters as much as the method: see `docs/results.md`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

BINS = 32
LARGEST_GRID = 5_000_000  # values of a column that are listed to draw from


class ColumnCodes:
    """One declared column's codes 0 … size - 1, and the way back.

    Attributes:
      size: how many codes there are, with the one for absent values.
    """

    def __init__(self, column: dict[str, Any], *, log: bool) -> None:
        self.name, self.missing = column["name"], bool(column["missing"])
        self.categories = column.get("categories")
        self.log, self.step = log, float(column.get("step") or 0.0)
        self.edges, self.grid = np.zeros(0), None
        if self.categories:
            values = len(self.categories)
        else:
            self.low, self.high = float(column["low"]), float(column["high"])
            values = self._cut()
        self.size = values + self.missing

    def _cut(self) -> int:
        """Edges of the bins, and the values on the grid with their codes; the number of bins."""
        on_grid = round((self.high - self.low) / self.step) + 1 if self.step else None
        if self.log:
            spaced = np.expm1(np.linspace(0.0, np.log1p(self.high - self.low), BINS))
            self.edges = self.low + np.concatenate([[0.0], spaced])
        elif on_grid is not None and on_grid <= BINS:
            half = 0.5 * self.step
            self.edges = self.low + self.step * np.arange(on_grid + 1) - half
        else:
            self.edges = np.linspace(self.low, self.high, BINS + 1)
        if on_grid is not None and on_grid <= LARGEST_GRID:
            self.grid = self.low + self.step * np.arange(on_grid)
            self.grid_codes = self._bin(self.grid)  # ascending
        return len(self.edges) - 1

    def _bin(self, numbers: np.ndarray) -> np.ndarray:
        """Codes of numbers [n]; with log-spaced bins the lower bound itself is code 0."""
        if self.log:
            inner = np.searchsorted(self.edges[2:-1], numbers, side="right") + 1
            return np.where(numbers <= self.low, 0, inner)
        return np.searchsorted(self.edges[1:-1], numbers, side="right")

    def encode(self, series: pd.Series) -> np.ndarray:
        """Codes [n] of cells [n]."""
        absent = series.isna().to_numpy()
        if self.categories:
            codes = pd.Categorical(series, categories=self.categories).codes.astype(np.int64)
            absent = absent | (codes < 0)
        else:
            numbers = series.to_numpy(dtype=float, na_value=np.nan)
            codes = self._bin(np.clip(np.where(absent, self.low, numbers), self.low, self.high))
        return np.where(absent, self.size - 1 if self.missing else 0, codes).astype(np.int64)

    def decode(self, codes: np.ndarray, rng: np.random.Generator) -> pd.Series:
        """Cells [n]: labels, or numbers drawn evenly from those of the bin; absent ones are NaN."""
        codes = np.asarray(codes, dtype=np.int64)
        absent = (codes == self.size - 1) if self.missing else np.zeros(len(codes), dtype=bool)
        inside = np.where(absent, 0, codes)
        if self.categories:
            values = pd.Series(np.array(self.categories, dtype=object)[inside])
        else:
            low, high = self.edges[inside], self.edges[inside + 1]
            numbers = np.clip(low + (high - low) * rng.random(len(codes)), self.low, self.high)
            if self.step:
                steps = np.round((numbers - self.low) / self.step)
                numbers = np.round(self.low + self.step * steps, 6)
            if self.grid is not None:
                first = np.searchsorted(self.grid_codes, inside, side="left")
                last = np.searchsorted(self.grid_codes, inside, side="right")
                drawn = first + np.floor((last - first) * rng.random(len(codes))).astype(np.int64)
                drawn = np.minimum(drawn, len(self.grid) - 1)
                numbers = np.where(last > first, np.round(self.grid[drawn], 6), numbers)
            values = pd.Series(numbers)
        return values.mask(absent)


class TableCodes:
    """All declared columns' codes."""

    def __init__(self, schema: dict[str, Any], log_bins: Sequence[str]) -> None:
        self.columns = [
            ColumnCodes(c, log=c["name"] in log_bins or c.get("scale") == "log")
            for c in schema["columns"]
        ]

    @property
    def sizes(self) -> dict[str, int]:
        """How many codes each column has, by name."""
        return {column.name: column.size for column in self.columns}

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Codes of a table, same columns."""
        return pd.DataFrame({c.name: c.encode(frame[c.name]) for c in self.columns})

    def decode(self, codes: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        """A table of codes, in values."""
        return pd.DataFrame({c.name: c.decode(codes[c.name], rng) for c in self.columns})


def arguments() -> argparse.Namespace:
    """What a peer's glue is called with."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkout", type=Path, required=True, help="the peer's repository")
    parser.add_argument("--table", type=Path, required=True, help="rows to train on, CSV")
    parser.add_argument("--schema", type=Path, required=True, help="what is public of them, JSON")
    parser.add_argument("--log-bins", nargs="*", default=[], help="further log-scaled columns")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=NUMBER")
    parser.add_argument("--out", type=Path, required=True, help="the synthetic table, CSV")
    return parser.parse_args()


def chosen(options: argparse.Namespace, **usual: float) -> dict[str, float]:
    """The peer's settings: its usual ones, changed by `--set`."""
    given = dict(pair.split("=", 1) for pair in options.set)
    unknown = sorted(set(given) - set(usual))
    if unknown:
        sys.exit(f"this peer has no setting called {unknown[0]}; it has {', '.join(usual)}")
    return {name: type(usual[name])(given.get(name, usual[name])) for name in usual}


def read(options: argparse.Namespace) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The rows, labels as text, and the schema's JSON."""
    schema = json.loads(options.schema.read_text(encoding="utf-8"))
    labels = {c["name"]: str for c in schema["columns"] if c.get("categories")}
    return pd.read_csv(options.table, dtype=labels, keep_default_na=False, na_values=[""]), schema


def finish(
    options: argparse.Namespace,
    synthesize: Callable[[], pd.DataFrame],
    settings: dict[str, Any],
    packages: Sequence[str],
) -> None:
    """Run, write the table, and say on the last line how long it took, settings and versions."""
    began = time.perf_counter()
    frame = synthesize()
    seconds = time.perf_counter() - began
    frame.to_csv(options.out, index=False)
    versions = {name: version(name) for name in packages}
    print(json.dumps({"seconds": seconds, "settings": settings, "versions": versions}))
