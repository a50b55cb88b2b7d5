"""Replicas: what the mechanism makes of tables whose truth is known.

For each, rows are drawn from the trained model and taken for the truth; the plan's noise is added
anew to what the plan releases of them; a model is fitted to that, and rows are drawn from it. How
far a statistic of the rows lies from that of their source is how far the run's own may be off.

Source: Ferrando, Wang and Sheldon, "Parametric Bootstrap for Differentially Private Confidence
Intervals", AISTATS 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.special import stdtrit  # lighter than scipy.stats: pages import this

from core.message import Message
from core.models.registry import cards
from core.privacy.plan import Plan
from core.writing.tables import write_row_groups

FOLDER = "replicas"  # of a run; a file each
COUNT = 20
MOST_ROWS = 100_000  # of either table of a replica
TOO_NARROW = ("pearl",)  # models whose truths are the model itself: `coverage_pearl.md` of results


class Files(Protocol):
    """What is needed of a run's artefacts here."""

    def open(self, name: str) -> BinaryIO:
        """The bytes of an artefact."""

    def replacing(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A stream that becomes the artefact, whole or not at all."""

    def names(self, folder: str) -> list[str]:
        """What is complete in a folder; nothing when it is absent."""

    def within(self, folder: str) -> Any:
        """The artefacts in a folder, made when absent."""


@dataclass(frozen=True)
class Replica:
    """One of them.

    Attributes:
      source: rows drawn from the trained model, which this replica takes for the truth.
      drawn: synthetic rows of a model that was fitted anew to noisy numbers of the source.
    """

    source: pd.DataFrame
    drawn: pd.DataFrame


def no_replicas(plan: Plan) -> Message | None:
    """Why a run of this plan has no replicas; None where it can have some."""
    card = next(card for card in cards() if card.id == plan.model)
    if not card.replicas:
        return Message(
            "{name} takes too long to be trained twenty times again, so its figures have no "
            "error bars.",
            name=card.name,
        )
    if plan.protection is not None:
        return Message(
            "This run hides distributions on purpose, so its figures have no error bars."
        )
    return None


def write_replica(files: Files, number: int, replica: Replica) -> None:
    """Keep one beside a run's other files: its source as one group of rows, drawn as another."""
    with files.within(FOLDER).replacing(f"{number:03d}.parquet") as file:
        write_row_groups([replica.source, replica.drawn], file)


def numbers_kept(files: Files) -> tuple[int, ...]:
    """Which replicas are complete."""
    return tuple(sorted(int(name.partition(".")[0]) for name in files.names(FOLDER)))


def replicas_of(files: Files, columns: Sequence[str] | None = None) -> tuple[Replica, ...]:
    """All that a run has; none before they were made.

    Args:
      columns: those to read; all when None.
    """
    folder = files.within(FOLDER) if numbers_kept(files) else files
    return tuple(_read(folder, number, columns) for number in numbers_kept(files))


def half_width(
    errors: NDArray[np.float64], level: float, chance: NDArray[np.float64] | float = 0.0
) -> NDArray[np.float64]:
    """How far published values may be off, either way: t · √(mean of squared errors).

    The mean error is not taken off the value. What noise hides is shrunk, and replicas of what was
    shrunk are shrunk once more: their mean error says how far it is off, not to which side of what
    is left it lies (Morris, "Parametric Empirical Bayes Inference", JASA 1983).

    Args:
      errors: float64 [replicas, values], of each replica beside its truth.
      level: of the interval, in (0, 1).
      chance: variance beside that of the errors; what is < 0 takes some off, half of it at most.
    """
    quantile = stdtrit(len(errors), 0.5 + level / 2.0)
    squares = np.square(errors).mean(axis=0)
    return np.asarray(quantile * np.sqrt(squares + np.maximum(chance, -squares / 2)))


def _read(folder: Files, number: int, columns: Sequence[str] | None) -> Replica:
    with folder.open(f"{number:03d}.parquet") as file:
        table = pq.ParquetFile(file)
        names = None if columns is None else list(columns)
        source, drawn = (table.read_row_group(i, names).to_pandas() for i in (0, 1))
    return Replica(source, drawn)
