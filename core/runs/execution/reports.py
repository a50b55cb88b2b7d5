"""Reports of a run: the inside one, kept by content, and the one for people outside.

A finished inside report is filed under a digest of everything it was made from, beside the table's
rows, so that nothing is measured twice and everything goes when the table is deleted.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from io import BufferedReader
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

import pandas as pd

from core.encoding.layout.layout import Layout
from core.message import Message
from core.quality.report.types import ReleasedHistograms
from core.runs.execution.noisy_scores import SYNTHETIC_CELLS, count_synthetic
from core.runs.execution.paid_release import ReviewHistograms
from core.runs.execution.privacy_certificate import VERSION
from core.runs.execution.report_rows import Side, real_sides, synthetic_side
from core.runs.records import RunRecord
from core.runs.storage import artefacts as stored
from core.runs.storage.artefacts import ArtefactStore
from core.runs.storage.row_batches import row_batches
from core.runs.storage.store import RunStore

if TYPE_CHECKING:
    from core.quality.report.types import Report


Compare: TypeAlias = "Callable[..., Report]"

FORMAT = 6  # of a report; another number makes every report anew


def make_reports(
    store: RunStore,
    run: RunRecord,
    *,
    on_progress: Callable[[str, float], None],
    compare: Compare | None = None,
) -> None:
    """Write outside.json and report.json into the run's folder, the latter stage by stage.

    A private run's synthetic records are also counted in public cells, so that noisy counts of the
    real ones, whenever some are bought, tell how near it is.

    Args:
      on_progress: told what is being measured and the fraction done.
      compare: makes the inside report; `core.quality.report.build_report.build_report` when None.
    """
    artefacts = store.artefacts(run.id)
    person = run.schema.person
    together = person is not None and person.grouped
    synthetic = synthetic_side(artefacts, stored.SYNTHETIC_TABLE, together=together)
    if run.private:  # else the synthetic rows themselves may quote anyone: they have no outside
        seen = artefacts.exists(stored.MODELLED_TABLE)
        modelled = synthetic_side(artefacts, stored.MODELLED_TABLE).rows if seen else None
        _report_outside(artefacts, run, synthetic, modelled)
        with artefacts.readable(stored.MODELLED_TABLE if seen else stored.SYNTHETIC_TABLE) as file:
            parts = row_batches(file)
            cells = count_synthetic(
                parts, Layout(run.schema.domain()).domain, run.plan.n, run.plan.shift
            )
        if cells is not None:
            stored.save_json(artefacts, SYNTHETIC_CELLS, cells)
    earlier = store.table_artefacts(run.table_id).within("reports")
    name = report_name(store, run)
    if earlier.exists(name):
        _copy(earlier, name, artefacts)
        on_progress(Message("Measured before"), 1.0)
        return
    columns = [column.name for column in run.schema.domain().columns]
    real, holdout = real_sides(store, run, columns)
    options: dict[str, Any] = {}
    if real.of > len(real.rows) or synthetic.of > len(synthetic.rows):
        options["rows"] = (real.of, synthetic.of)
    if run.plan.protection is not None:
        options["alpha"] = run.plan.attempt_alpha
    if len(holdout.rows):
        options["test"] = holdout.rows
    if artefacts.exists(stored.BASELINE_TABLE):
        options["before"] = synthetic_side(artefacts, stored.BASELINE_TABLE).rows

    def save(report: Report) -> None:
        stored.save_json(artefacts, stored.INSIDE_REPORT, report)

    compare = compare or _standard()
    report = compare(
        real.rows, synthetic.rows, run.schema, on_progress=on_progress, save=save, **options
    )
    save(report)
    stored.save_json(earlier, name, report)


def content_key(files: Sequence[BinaryIO], *facts: object) -> str:
    """64 hex digits that name the bytes of these files and these facts, and nothing else."""
    digest = hashlib.sha256(json.dumps([FORMAT, VERSION, *facts]).encode())
    for file in files:
        digest.update(hashlib.file_digest(cast("BufferedReader", file), "sha256").digest())
    return digest.hexdigest()


def report_name(store: RunStore, run: RunRecord) -> str:
    """The file among the table's that a finished inside report is kept in."""
    artefacts = store.artefacts(run.id)
    names = [
        name for name in (stored.SYNTHETIC_TABLE, stored.BASELINE_TABLE) if artefacts.exists(name)
    ]
    alpha = None if run.plan.protection is None else run.plan.attempt_alpha
    with ExitStack() as opened:
        files = [opened.enter_context(artefacts.open(name)) for name in names]
        files.append(opened.enter_context(store.table_artefacts(run.table_id).open(stored.ROWS)))
        key = content_key(files, run.schema.model_dump_json(), alpha, len(files))
        return f"{key}.json"


def _report_outside(
    artefacts: ArtefactStore, run: RunRecord, synthetic: Side, modelled: pd.DataFrame | None
) -> None:
    """Write the report for people outside; opens no real row."""
    # measuring is heavy: a worker imports it when its fit is done
    from core.quality.report.outside import outside_report

    histograms = stored.load_json(artefacts, ReviewHistograms.artefact, ReleasedHistograms)
    report = outside_report(
        synthetic.rows, run.schema, released=histograms, modelled=modelled, rows=synthetic.of
    )
    stored.save_json(artefacts, stored.OUTSIDE_REPORT, report)


def _copy(source: ArtefactStore, name: str, target: ArtefactStore) -> None:
    with source.open(name) as report, target.replacing(stored.INSIDE_REPORT) as file:
        shutil.copyfileobj(report, file)


def _standard() -> Compare:
    # measuring is heavy: a fit should not wait for it
    from core.quality.report.build_report import build_report

    return build_report
