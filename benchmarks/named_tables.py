"""Tables by name: the generated ones, and real ones from the folder FACSIMILE_DATA, as declared.

Bounds of the real tables are public ranges, not read from rows; lists of labels are those of the
whole file, taken as public (and given to every model and peer alike).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.declared_columns import Truth
from benchmarks.generated_tables import REPORTED, TUNING, make
from core.schema.column import Column, DomainSource, Kind
from core.schema.labels import to_labels
from core.schema.schema import Schema

__all__ = ["APART", "REAL", "NamedTable", "apart", "data_file", "load"]

REAL = ("adult", "titanic")
APART = 0.25  # share of rows kept for testing where no file holds them, the same for every seed

_ADULT = {
    "age": (17, 90),
    "fnlwgt": (0, 1_500_000),
    "education-num": (1, 16),
    "capital-gain": (0, 100_000),
    "capital-loss": (0, 5_000),
    "hours-per-week": (1, 99),
}
_TITANIC = {"age": (0, 100, 0.01), "sibsp": (0, 10, 1), "parch": (0, 10, 1), "fare": (0, 600, 1e-4)}
_TEXTS = ("name", "ticket", "cabin")


@dataclass(frozen=True)
class NamedTable:
    """A table, rows apart to judge by, and what is declared public.

    Attributes:
      name: as on the command line.
      train, test: rows.
      schema: without rules; it names the target.
      truth: what is known of a generated table; empty for real ones.
      log_bins: columns that peers cut in log-spaced bins besides those declared log-scaled.
    """

    name: str
    train: pd.DataFrame
    test: pd.DataFrame
    schema: Schema
    truth: Truth = Truth()
    log_bins: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The column to predict."""
        assert self.schema.target is not None
        return self.schema.target


def load(name: str, seed: int = 0, rows: int | None = None) -> NamedTable:
    """A table by name.

    Args:
      name: "adult", "titanic" or a generated table's.
      seed: of a generated table's rows; real ones are what they are.
      rows: to train on; all when None.

    Raises:
      KeyError: there is no such table.
      FileNotFoundError: FACSIMILE_DATA does not lead to a real table's file.
    """
    if name in (*TUNING, *REPORTED):
        table = make(name, rows, seed)
        return NamedTable(name, table.train, table.test, table.schema, table.truth)
    if name not in REAL:
        known = ", ".join((*REAL, *REPORTED, *TUNING))
        raise KeyError(f"no table is called '{name}'; there are: {known}")
    table = _adult() if name == "adult" else _titanic()
    if rows is None:
        return table
    return NamedTable(
        name, table.train.head(rows), table.test, table.schema, log_bins=table.log_bins
    )


def data_file(file: str) -> Path:
    """A file of the folder FACSIMILE_DATA; FileNotFoundError where it is not there."""
    folder = os.environ.get("FACSIMILE_DATA")
    if folder is None or not (Path(folder) / file).is_file():
        raise FileNotFoundError(
            f"FACSIMILE_DATA must lead to a folder with {file}; nothing was measured."
        )
    return Path(folder) / file


def apart(whole: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to train on and rows kept for testing, each in their order; no seed changes them."""
    order = np.random.default_rng(0).permutation(len(whole))
    cut = int(APART * len(whole))
    train, test = (whole.iloc[np.sort(part)] for part in (order[cut:], order[:cut]))
    return train.reset_index(drop=True), test.reset_index(drop=True)


def _read(file: str) -> pd.DataFrame:
    return pd.read_csv(data_file(file), na_values=["?"], skipinitialspace=True)


def _adult() -> NamedTable:
    train, test = _read("adult_train.csv"), _read("adult_test.csv")
    whole = pd.concat([train, test], ignore_index=True)
    columns = []
    for name in train.columns:
        if name not in _ADULT:
            columns.append(_listed(name, whole[name]))
            continue
        low, high = _ADULT[name]
        money = name.startswith("capital")
        columns.append(
            Column(
                name=name,
                kind=Kind.INTEGER,
                low=low,
                high=high,
                step=1,
                scale="log" if money else "linear",
                spikes=(0.0,) if money else (),
                dtype="int64",
            )
        )
    schema = Schema(columns=tuple(columns), target="income")
    return NamedTable("adult", train, test, schema, log_bins=("fnlwgt",))


def _titanic() -> NamedTable:
    whole = _read("titanic.csv").drop(columns=list(_TEXTS))
    columns = []
    for name in whole.columns:
        if name not in _TITANIC:
            columns.append(_listed(name, whole[name]))
            continue
        low, high, step = _TITANIC[name]
        counted = step == 1
        columns.append(
            Column(
                name=name,
                kind=Kind.INTEGER if counted else Kind.NUMBER,
                low=low,
                high=high,
                step=step,
                scale="log" if name == "fare" else "linear",
                missing=bool(whole[name].isna().any()),
                dtype="int64" if counted else "float64",
            )
        )
    train, test = apart(whole)
    return NamedTable("titanic", train, test, Schema(columns=tuple(columns), target="survived"))


def _listed(name: str, cells: pd.Series) -> Column:
    labels = to_labels(cells)
    return Column(
        name=name,
        kind=Kind.CATEGORY,
        categories=tuple(sorted(labels.dropna().unique())),
        missing=bool(cells.isna().any()),
        source=DomainSource.DECLARED,
        dtype="int64" if pd.api.types.is_integer_dtype(cells) else "str",
    )
