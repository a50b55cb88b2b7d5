"""What generated tables are made of: declared columns, and how numbers in (0, 1) become values.

A column is declared by who writes the generator; no bound and no label is read from rows.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.schema.column import Column, Kind
from core.schema.rules.rules import Rule

Values = NDArray[np.generic]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """What is known to hold of a generated table, for tests that are interested in it.

    Attributes:
      rules: that every row keeps, and that no schema declares.
      strong_pairs: all pairs of columns that go together strongly; empty where nobody says.
      parity: the columns whose parity of signs is the class, before label noise.
    """

    rules: tuple[Rule, ...] = ()
    strong_pairs: tuple[tuple[str, str], ...] = ()
    parity: tuple[str, ...] = ()


@dataclass
class Draft:
    """A table under construction: its values by column, and what is declared of them."""

    values: dict[str, Values] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    truth: Truth = field(default_factory=Truth)

    def put(self, column: Column, values: Values) -> None:
        """Add a column; numbers are moved inside its bounds and onto its grid."""
        if column.kind.numeric:
            assert column.low is not None and column.high is not None
            inside = np.clip(np.asarray(values, dtype=np.float64), column.low, column.high)
            if column.step:
                inside = column.low + np.round((inside - column.low) / column.step) * column.step
                inside = np.round(inside, 6)  # decimals that a file writes short
            values = inside.astype(column.dtype)
        self.values[column.name] = values
        self.columns.append(column)

    def frame(self) -> pd.DataFrame:
        """The rows, in the order in which columns were added."""
        return pd.DataFrame(self.values)


def number(name: str, low: float, high: float, **more: Any) -> Column:
    """A number between bounds; `more` are further fields, such as scale and spikes."""
    return Column(name=name, kind=Kind.NUMBER, low=low, high=high, dtype="float64", **more)


def whole(name: str, low: int, high: int, **more: Any) -> Column:
    """A whole number between bounds; `more` as for `number`."""
    return Column(name=name, kind=Kind.INTEGER, low=low, high=high, step=1, dtype="int64", **more)


def listed(name: str, labels: tuple[str, ...]) -> Column:
    """One of some labels."""
    return Column(name=name, kind=Kind.CATEGORY, categories=labels)


def flag(name: str) -> Column:
    """0 or 1."""
    return Column(name=name, kind=Kind.CATEGORY, categories=("0", "1"), dtype="int64")


def labels(stem: str, count: int) -> tuple[str, ...]:
    """That many names: stem00, stem01 and so on."""
    return tuple(f"{stem}{i:02d}" for i in range(count))


def pick(names: tuple[str, ...], codes: NDArray[np.integer]) -> Values:
    """The labels that codes [n] stand for."""
    return np.array(names, dtype=object)[codes]


def binary(positive: NDArray[np.bool_]) -> Values:
    """0 and 1 of truth values [n]."""
    return positive.astype(np.int64)


def coin(odds: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Truth values [n] that are true with the logistic of `odds` [n]."""
    return rng.random(len(odds)) < 1.0 / (1.0 + np.exp(-odds))


def level(latent: Floats, shares: Floats) -> NDArray[np.int64]:
    """Codes [n]: standard normal numbers cut so that each code has its share [k]."""
    return np.searchsorted(np.cumsum(shares)[:-1], ndtr(latent)).astype(np.int64)


def falling(count: int, power: float = 1.0) -> Floats:
    """Shares [count] that fall as 1/rank^power."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -power
    return weights / weights.sum()


def flipped(
    positive: NDArray[np.bool_], share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Truth values [n] of which about that share is turned round."""
    return positive ^ (rng.random(len(positive)) < share)
