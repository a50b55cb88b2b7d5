"""Reports of a run: the inside one, kept by content, and the one for people outside.

A finished inside report is filed under a digest of everything it was made from, beside the table's
rows, so that nothing is measured twice and everything goes when the table is deleted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from core.runs.execution.noisy_scores import MADE, count_made
from core.runs.execution.privacy_certificate import product_version
from core.runs.execution.review_histograms import OVERLAY
from core.runs.storage.artefacts import OUTSIDE
from core.runs.storage.records import RunRecord
from core.runs.storage.store import RunStore
from core.runs.storage.workspace import private_folder, replacing

if TYPE_CHECKING:
    from core.quality.report.types import Report

__all__ = ["Compare", "content_key", "make_reports"]

Compare: TypeAlias = "Callable[..., Report]"

FORMAT = 2  # of a report; another number makes every report anew


def make_reports(
    store: RunStore,
    run: RunRecord,
    *,
    observe: Callable[[str, float], None],
    compare: Compare | None = None,
) -> None:
    """Write outside.json and report.json into the run's folder, the latter stage by stage.

    A private run's synthetic records are also counted in public cells, so that noisy counts of the
    real ones, whenever some are bought, tell how near it is.

    Args:
      store: where.
      run: with a synthetic table.
      observe: told what is being measured and the fraction done.
      compare: makes the inside report; `core.quality.report.build_report.build_report` when None.
    """
    synthetic = pd.read_parquet(store.artefact(run.id, "synthetic.parquet"))
    if run.private:  # else the synthetic rows themselves may quote anyone: they have no outside
        _outside(store, run, synthetic)
        if (made := count_made(synthetic, run.schema.domain(), run.plan.n)) is not None:
            _write(store.artefact(run.id, MADE), made.model_dump_json().encode())
    target = store.artefact(run.id, "report.json")
    table = store.table(run.table_id).path
    kept = private_folder(table.parent / "reports") / f"{_key(store, run)}.json"
    if kept.exists():
        _write(target, kept.read_bytes())
        observe("Measured before", 1.0)
        return
    columns = [column.name for column in run.schema.domain().columns]
    real, held = store.load_split(run.table_id, run.schema.holdout, columns=columns)
    more: dict[str, Any] = {}
    if run.plan.protection is not None:
        more["alpha"] = run.plan.protection.alpha
    if len(held):
        more["test"] = held
    if store.has_artefact(run.id, "before.parquet"):
        more["before"] = pd.read_parquet(store.artefact(run.id, "before.parquet"))

    def save(report: Report) -> None:
        _write(target, report.model_dump_json().encode())

    report = (compare or _standard())(
        real, synthetic, run.schema, observe=observe, save=save, **more
    )
    save(report)
    _write(kept, report.model_dump_json().encode())


def content_key(files: list[Path], *facts: object) -> str:
    """64 hex digits that name the bytes of these files and these facts, and nothing else."""
    whole = hashlib.sha256(json.dumps([FORMAT, product_version(), *facts]).encode())
    for path in files:
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()


def _key(store: RunStore, run: RunRecord) -> str:
    names = ("synthetic.parquet", "before.parquet")
    files = [store.artefact(run.id, name) for name in names if store.has_artefact(run.id, name)]
    protection = run.plan.protection
    alpha = None if protection is None else protection.alpha
    files.append(store.table(run.table_id).path)
    return content_key(files, run.schema.model_dump_json(), alpha, len(files))


def _outside(store: RunStore, run: RunRecord, synthetic: pd.DataFrame) -> None:
    """The report for people outside; opens no real row."""
    from core.quality.report.outside import outside_report
    from core.quality.report.types import ReleasedHistograms

    released = None
    if store.has_artefact(run.id, OVERLAY):
        released = ReleasedHistograms.model_validate_json(
            store.artefact(run.id, OVERLAY).read_bytes()
        )
    report = outside_report(synthetic, run.schema, released=released)
    _write(store.artefact(run.id, OUTSIDE), report.model_dump_json().encode())


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def _standard() -> Compare:
    """Imported late: it is heavy, and a fit should not wait for it."""
    from core.quality.report.build_report import build_report

    return build_report
