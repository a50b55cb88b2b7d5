"""build_report: everything the Review page shows, measured family by family, saved after each.

The report reopens the real table without noise, for eyes inside the organisation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd

from core.message import Message, ReportedError
from core.quality.aligned_tables import sample_rows
from core.quality.comparison import Comparison
from core.quality.metrics.columns import single_columns
from core.quality.metrics.estimators import one_thread
from core.quality.metrics.family import Family, Measured, Step, families
from core.quality.report.types import Report
from core.schema.coverage import coverage
from core.schema.schema import Schema

FIRST_LOOK_ROWS = 20_000  # of longer tables, rows a side of the pictures that come first
READING_COST = 0.1  # of opening the tables, in the unit of `Family.cost`


def build_report(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    test: pd.DataFrame | None = None,
    on_progress: Callable[[str, float], None] | None = None,
    save: Callable[[Report], None] | None = None,
    seed: int = 0,
    alpha: float = 0.05,
    before: pd.DataFrame | None = None,
    rows: tuple[int, int] | None = None,
    grouping: tuple[tuple[str, ...], int] = ((), 2),
) -> Report:
    """Compare a synthetic table with the real one, ≥ 1 row each.

    Args:
      test: real rows the synthesizer never saw; without it every fourth real row is used.
      on_progress: told what is being measured and the fraction done, in [0, 1].
      save: called with the report so far after each family; single columns come first.
      alpha: level of the tests of tagged columns, in (0, 1/2).
      before: what the trained model draws by itself, where rows are chosen afterwards.
      rows: of the whole tables, where `real` and `synthetic` are samples; the report says so.
      grouping: at most two columns to group by first, and how many to compare at a time, for
        NIST's score.

    Raises:
      ValueError: a table has no rows, or no column can be compared.
    """
    if not len(real) or not len(synthetic):
        raise ReportedError("A report needs at least one real and one synthetic row.")
    on_progress, save = on_progress or _ignore, save or _ignore
    if save is not _ignore and (look := _first_look(real, synthetic, schema, seed=seed)):
        save(_sampled_of(look, real, synthetic, rows))
    on_progress(Message("Reading both tables"), 0.0)
    tables = Comparison.open(
        real, synthetic, schema, test=test, before=before, seed=seed, alpha=alpha, grouping=grouping
    )
    if not len(tables.features):
        raise ReportedError("No column can be compared: each is dropped, text or an identifier.")
    report = _sampled_of(_empty(tables), real, synthetic, rows)
    for family, measured in _measured(tables, on_progress):
        if measured is None:
            report = _with(report, notes=[*report.notes, *filter(None, [family.otherwise])])
            continue
        report = _with(report, scores=[*report.scores, *measured.scores], **measured.parts)
        save(report)
    on_progress(Message("Report finished"), 1.0)
    report = _with(report, complete=True)
    save(report)
    return report


def _measured(tables: Comparison, on_progress: Step) -> Iterator[tuple[Family, Measured | None]]:
    """Every family in order with what it measures, or None where it does not apply.

    Two are measured at a time: most of what they do is computed outside Python.
    """
    known, told = families(), Lock()
    applied = [family for family in known if family.applies(tables)]
    whole, done = READING_COST + sum(family.cost for family in applied), dict[int, float]()

    def measure(family: Family) -> Measured | None:
        if family not in applied:
            return None

        def step(text: str, fraction: float) -> None:
            with told:
                done[family.order] = family.cost * fraction
                on_progress(text, (READING_COST + sum(done.values())) / whole)

        step(family.text.format(target=tables.target), 0.0)
        measured = family.measure(tables, step)
        done[family.order] = family.cost
        return measured

    with one_thread(), ThreadPoolExecutor(2) as pool:
        yield from zip(known, pool.map(measure, known), strict=True)


def _ignore(*_: object) -> None:
    """Nobody listens."""


def _empty(tables: Comparison) -> Report:
    target, found = tables.schema.target, coverage(tables.schema)
    return Report(
        rows_real=len(tables.frames[0]),
        rows_synthetic=len(tables.frames[1]),
        target=target if target and tables.schema[target].modelled else None,
        coverage=list(found.sentences),
        covered=found.complete,
        notes=list(tables.notes),
    )


def _sampled_of(
    report: Report, real: pd.DataFrame, synthetic: pd.DataFrame, rows: tuple[int, int] | None
) -> Report:
    """The report with the tables' own numbers of rows, and a word on how many were looked at."""
    if rows is None:
        return report
    note = Message(
        "Compared on {real:,} of {of_real:,} real rows and {synthetic:,} of {of_synthetic:,} "
        "synthetic rows, chosen by their position alone.",
        real=len(real),
        of_real=rows[0],
        synthetic=len(synthetic),
        of_synthetic=rows[1],
    )
    notes = [note, *report.notes]
    return _with(report, rows_real=rows[0], rows_synthetic=rows[1], notes=notes)


def _with(report: Report, **parts: Any) -> Report:
    return Report(**{**dict(report), **parts})


def _first_look(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, *, seed: int
) -> Report | None:
    """Pictures of single columns from a few rows, while all rows are being read; None for none."""
    if max(len(real), len(synthetic)) <= FIRST_LOOK_ROWS:
        return None
    rng = np.random.default_rng(seed)
    few = [frame.iloc[sample_rows(len(frame), FIRST_LOOK_ROWS, rng)] for frame in (real, synthetic)]
    tables = Comparison.open(few[0], few[1], schema, seed=seed)
    if not len(tables.features):
        return None
    note = Message(
        "A first look at {n:,} rows a side; the results on all rows will follow.", n=FIRST_LOOK_ROWS
    )
    rows = {"rows_real": len(real), "rows_synthetic": len(synthetic)}
    return _with(_empty(tables), **single_columns(tables, _ignore).parts, notes=[note], **rows)
