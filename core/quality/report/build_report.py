"""build_report: everything the Review page shows, measured in stages and saved after each.

The report reopens the real table without noise, for eyes inside the organisation.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.quality.aligned_tables import sample_rows
from core.quality.metrics.lmdp_check import protection_checks
from core.quality.report import learning, stages
from core.quality.report.builder import Observe, Save, open_build
from core.quality.report.types import Report
from core.table.schema import Schema

__all__ = ["build_report"]

FIRST_LOOK_ROWS = 20_000  # of longer tables, rows a side of the pictures that come first
STAGES = (
    stages.columns,
    stages.pairs,
    stages.joint,
    stages.strengths,
    stages.plane,
    stages.shapes,
    stages.before,
    learning.disclosure,
    learning.telling_apart,
    learning.utility,
    learning.ten_kinds,
    learning.predictions,
)


def build_report(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    test: pd.DataFrame | None = None,
    observe: Observe | None = None,
    save: Save | None = None,
    seed: int = 0,
    alpha: float = 0.05,
    before: pd.DataFrame | None = None,
) -> Report:
    """Compare a synthetic table with the real one.

    Args:
      real: the table the synthesizer learnt from, ≥ 1 row.
      synthetic: ≥ 1 row; a column it lacks counts as missing throughout.
      schema: says which columns are compared (identifiers and text are left out) and the target.
      test: real rows the synthesizer never saw. Without it every fourth real row is kept for
        testing, and the report says so.
      observe: told what is being measured and the fraction done, in [0, 1].
      save: called with the report so far after each stage; single columns come first.
      seed: of subsamples and learners.
      alpha: level of the tests of tagged columns, in (0, 1/2).
      before: what the synthesizer would have released before boosting, to stand beside.

    Raises:
      ValueError: a table has no rows, or no column can be compared.
    """
    if not len(real) or not len(synthetic):
        raise ValueError("A report needs at least one real and one synthetic row.")
    if max(len(real), len(synthetic)) > FIRST_LOOK_ROWS and save is not None:
        _first_look(real, synthetic, schema, seed=seed, save=save)
    build = open_build(
        real, synthetic, schema, test=test, before=before, seed=seed, observe=observe, save=save
    )
    if not len(build.features):
        raise ValueError("No column can be compared: every one is dropped, text or an identifier.")
    for stage in STAGES:
        stage(build)
        if stage is stages.columns and schema.sensitive:
            build.observe("Testing the tagged columns", 0.08)
            checks = protection_checks(real, synthetic, schema, alpha=alpha, seed=seed)
            build.parts["protection"] = checks
        build.publish()
    build.observe("Report finished", 1.0)
    return build.publish(complete=True)


def _first_look(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, *, seed: int, save: Save
) -> None:
    """Pictures of single columns from a few rows, while all rows are being read."""
    rng = np.random.default_rng(seed)
    few = [frame.iloc[sample_rows(len(frame), FIRST_LOOK_ROWS, rng)] for frame in (real, synthetic)]
    build = open_build(
        few[0], few[1], schema, test=None, before=None, seed=seed, observe=None, save=None
    )
    if len(build.features):
        stages.columns(build)
        report = build.publish()
        note = f"A first look at {FIRST_LOOK_ROWS:,} rows a side; all rows follow."
        rows = {"rows_real": len(real), "rows_synthetic": len(synthetic)}
        save(report.model_copy(update={"notes": [note], "scores": [], **rows}))
