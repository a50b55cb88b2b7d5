"""Comparison: the tables that a report compares, opened once, subsampled to a fixed size.

95 % intervals say how far a number would move with other rows of the same tables. Rows are drawn
anew, fewer than there are, and the error is scaled to the tables' size. Distances are never
negative, so their intervals are somewhat too wide where tables hardly differ.

Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993 (standard error); Bickel,
Götze and van Zwet, 1997 (m out of n).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.person_rows import number_people
from core.message import Message
from core.quality.aligned_tables import AlignedTable, Features, sample_rows
from core.schema.person import Person
from core.schema.schema import Schema

TABLE_ROWS = 500_000  # rows a side for single columns and pairs
BEFORE_ROWS = 20_000  # rows of the table before boosting, and of real ones beside them
TEST_ROWS = 20_000
RESAMPLES, ROWS = 16, 5_000  # of a bootstrap, and rows a side in each
LEAST_ROWS = 8  # fewer real rows than this cannot be split for learning and testing
TEST_EVERY = 4


@dataclass(frozen=True)
class Comparison:
    """A real and a synthetic table, and what else is known of them.

    Attributes:
      frames: the real and the synthetic table as they were given, all rows.
      real, synthetic: at most 500,000 rows each.
      train, test: real rows to learn from and to test on; `test` is the holdout where there is one.
      holdout: real rows that the synthesizer never saw.
      one_each: of `real` and of `holdout`, rows to take for one of each person; None where rows are
        not put together by person, or there is no holdout.
      before: what would have been released before boosting, if anything.
      target: the column to learn; None when there is none among the features.
      notes: how the tables were read, a sentence each, where a reader must know it.
      alpha: level of the tests of tagged columns, in (0, 1/2).
      grouping: at most two columns to group by first, none for the usual ones, and how many are
        compared at a time.
    """

    schema: Schema
    frames: tuple[pd.DataFrame, pd.DataFrame]
    features: Features
    real: AlignedTable
    synthetic: AlignedTable
    train: AlignedTable
    test: AlignedTable
    holdout: AlignedTable | None
    one_each: tuple[NDArray[np.int64], NDArray[np.int64]] | None
    before: AlignedTable | None
    target: str | None
    notes: tuple[str, ...]
    seed: int
    alpha: float
    grouping: tuple[tuple[str, ...], int] = ((), 2)

    @classmethod
    def open(
        cls,
        real: pd.DataFrame,
        synthetic: pd.DataFrame,
        schema: Schema,
        *,
        test: pd.DataFrame | None = None,
        before: pd.DataFrame | None = None,
        seed: int = 0,
        alpha: float = 0.05,
        grouping: tuple[tuple[str, ...], int] = ((), 2),
    ) -> Comparison:
        """Read the tables; the arguments are those of `build_report`."""
        rng = np.random.default_rng(seed)
        notes: list[Message] = []
        if max(len(real), len(synthetic)) > TABLE_ROWS:
            notes.append(
                Message("Measured on random samples of at most {n:,} rows a side.", n=TABLE_ROWS)
            )
        given = {
            "real": (real, TABLE_ROWS),
            "synthetic": (synthetic, TABLE_ROWS),
            "test": (test, TEST_ROWS),
            "before": (before, BEFORE_ROWS),
        }
        frames = {
            name: frame.iloc[sample_rows(len(frame), most, rng)]
            for name, (frame, most) in given.items()
            if frame is not None and len(frame)
        }
        features, aligned = Features.fit(schema, *frames.values())
        tables = dict(zip(frames, aligned, strict=True))
        train, held_out = tables["real"], tables.get("test")
        if held_out is None:
            train, held_out = _split(tables["real"])
            notes.append(
                Message(
                    "No test table was given, so every fourth real row was used for testing. The "
                    "model was trained on those rows too, so a model that copies rows looks better "
                    "here than it is."
                )
            )
        return cls(
            schema=schema,
            frames=(real, synthetic),
            features=features,
            real=tables["real"],
            synthetic=tables["synthetic"],
            train=train,
            test=held_out,
            holdout=tables.get("test"),
            one_each=_one_each(frames["real"], frames.get("test"), schema.person, rng),
            before=tables.get("before"),
            target=schema.target if schema.target in features.names else None,
            notes=tuple(notes),
            seed=seed,
            alpha=alpha,
            grouping=grouping,
        )

    def rng(self, stream: int) -> np.random.Generator:
        """A generator for one stream of draws, so that families do not disturb each other."""
        return np.random.default_rng((self.seed, stream))

    @cached_property
    def resampled(self) -> AlignedTable:
        """As many real rows as there are synthetic ones, drawn with replacement: the ceiling."""
        return self.real.take(self.rng(1).integers(self.real.n, size=self.synthetic.n))

    @cached_property
    def beside_before(self) -> AlignedTable:
        """Real rows that the table before boosting is compared with."""
        return self.real.sample(BEFORE_ROWS, self.rng(5))

    def samples(self, rows: int, stream: int) -> tuple[AlignedTable, AlignedTable, AlignedTable]:
        """At most `rows` rows of the real, the synthetic and the resampled table."""
        rng = self.rng(stream)
        real, synthetic = self.real.sample(rows, rng), self.synthetic.sample(rows, rng)
        return real, synthetic, self.resampled.sample(rows, rng)


def _one_each(
    real: pd.DataFrame,
    holdout: pd.DataFrame | None,
    person: Person | None,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """A random row of each person, of both tables, ascending; see `Comparison.one_each`."""
    if holdout is None or person is None or not person.grouped:
        return None

    def chosen(frame: pd.DataFrame) -> NDArray[np.int64]:
        order = rng.permutation(len(frame))
        number = number_people(frame[list(person.columns)])[0]
        return np.sort(order[np.unique(number[order], return_index=True)[1]])

    return chosen(real), chosen(holdout)


def _split(real: AlignedTable) -> tuple[AlignedTable, AlignedTable]:
    rows = np.arange(real.n)
    last = rows % TEST_EVERY == TEST_EVERY - 1
    if real.n < LEAST_ROWS:
        return real, real.take(rows[:0])
    return real.take(rows[~last]), real.take(rows[last])


def half_width_of(draws: Sequence[float], share: float) -> float:
    """Half a 95 % interval, from draws that took a share of the rows; 0 for fewer than two."""
    if len(draws) < 2:
        return 0.0
    return float(1.96 * np.std(draws, ddof=1) * np.sqrt(share))


def table_half_width(
    measure: Callable[[AlignedTable, AlignedTable], float],
    real: AlignedTable,
    synthetic: AlignedTable,
    *,
    seed: int = 0,
) -> float:
    """Half a 95 % interval of a measure whose error shrinks with the root of rows."""
    rng = np.random.default_rng(seed)
    sizes = [min(table.n, ROWS) for table in (real, synthetic)]
    draws = [
        measure(
            real.take(rng.integers(real.n, size=sizes[0])),
            synthetic.take(rng.integers(synthetic.n, size=sizes[1])),
        )
        for _ in range(RESAMPLES)
    ]
    # The larger share: a table that was drawn whole brings all of its error, whatever the other.
    return half_width_of(draws, max(sizes[0] / real.n, sizes[1] / synthetic.n))
