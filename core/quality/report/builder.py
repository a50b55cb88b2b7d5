"""Build: a report under construction, and how its tables are opened.

Heavy measures work on subsamples of fixed size, so that time and memory stay bounded whatever the
table's length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from core.quality.aligned_tables import Cells, Features, sample_rows
from core.quality.report.types import Report, Score
from core.table.schema import Schema

__all__ = ["TEST_ROWS", "Build", "capped", "mean_of", "open_build"]

Observe = Callable[[str, float], None]
Save = Callable[[Report], None]

TABLE_ROWS = 500_000  # rows a side for single columns and pairs
BEFORE_ROWS = 20_000
TEST_ROWS = 20_000
LEAST_ROWS = 8  # fewer real rows than this cannot be split for learning and testing
TEST_EVERY = 4


@dataclass
class Build:
    """A report under construction: the tables read once, and what is measured so far."""

    features: Features
    real: Cells
    synthetic: Cells
    train: Cells
    test: Cells
    target: str | None
    seed: int
    observe: Observe
    save: Save | None
    parts: dict[str, Any]
    before: Cells | None = None
    holdout: Cells | None = None
    scores: list[Score] = field(default_factory=list)

    def publish(self, *, complete: bool = False) -> Report:
        """The report so far, saved."""
        report = Report(**self.parts, scores=list(self.scores), complete=complete)
        if self.save is not None:
            self.save(report)
        return report

    def rng(self, purpose: int) -> np.random.Generator:
        """A generator of its own for each purpose, so that stages do not disturb each other."""
        return np.random.default_rng((self.seed, purpose))

    @cached_property
    def again(self) -> Cells:
        """As many real rows as there are synthetic ones, drawn with replacement: the ceiling."""
        return self.real.take(self.rng(1).integers(self.real.n, size=self.synthetic.n))


def open_build(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    test: pd.DataFrame | None,
    before: pd.DataFrame | None,
    seed: int,
    observe: Observe | None,
    save: Save | None,
) -> Build:
    """Read the tables once, subsampled where they are long; arguments as `build_report`."""
    watch = observe or (lambda _text, _fraction: None)
    watch("Reading both tables", 0.0)
    rng = np.random.default_rng(seed)
    parts: dict[str, Any] = {
        "rows_real": len(real),
        "rows_synthetic": len(synthetic),
        "target": schema.target if schema.target and schema[schema.target].modelled else None,
        "notes": [],
    }
    if max(len(real), len(synthetic)) > TABLE_ROWS:
        parts["notes"].append(f"Measured on random samples of at most {TABLE_ROWS:,} rows a side.")
    most = {"real": TABLE_ROWS, "synthetic": TABLE_ROWS, "test": TEST_ROWS}
    given = {"real": real, "synthetic": synthetic, "test": test, "before": before}
    frames = {
        name: frame.iloc[sample_rows(len(frame), most.get(name, BEFORE_ROWS), rng)]
        for name, frame in given.items()
        if frame is not None and len(frame)
    }
    features, found = Features.fit(schema, *frames.values())
    cells = dict(zip(frames, found, strict=True))
    if "test" in cells:
        train, held_out = cells["real"], cells["test"]
    else:
        train, held_out = _split(cells["real"])
        parts["notes"].append(
            "No test table was given: every fourth real row was used for testing. The synthetic "
            "table was learnt from those rows too, so one that copies rows looks too good here."
        )
    return Build(
        features,
        cells["real"],
        cells["synthetic"],
        train,
        held_out,
        parts["target"] if parts["target"] in features.names else None,
        seed,
        watch,
        save,
        parts,
        cells.get("before"),
        cells.get("test"),
    )


def _split(real: Cells) -> tuple[Cells, Cells]:
    """Three quarters to learn from and every fourth row to test on; nothing to test when tiny."""
    rows = np.arange(real.n)
    last = rows % TEST_EVERY == TEST_EVERY - 1
    if real.n < LEAST_ROWS:
        return real, real.take(rows[:0])
    return real.take(rows[~last]), real.take(rows[last])


def capped(cells: Cells, *, rows: int, rng: np.random.Generator) -> Cells:
    """At most `rows` of the rows, drawn without replacement."""
    return cells.take(sample_rows(cells.n, rows, rng))


def mean_of(values: list[float]) -> float:
    """Their mean; 0 for none."""
    return float(np.mean(values)) if values else 0.0
