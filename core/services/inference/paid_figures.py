"""Figures of real rows that a run paid for, beside those of its synthetic table; for all eyes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from core.export.answer_sentences import shown
from core.inference.estimates import Scale
from core.inference.measured import Measured, synthetic_figure
from core.inference.questions import Statistic, words
from core.message import Message, from_json, joined, to_json, to_say
from core.privacy.plan import Plan
from core.runs.execution.paid_release import MeasureQuestion
from core.runs.records import RunRecord
from core.runs.storage.artefacts import SYNTHETIC_TABLE, ArtefactStore, load_json
from core.runs.storage.store import RunStore
from core.schema.schema import Domain

FILE = "measured.json"  # of a run: what its paid questions came to
_LOST = Message("Not measured: the run learned no such value, or its release was lost.")
SCALES: dict[Statistic, Scale] = {Statistic.COUNT: "count", Statistic.SHARE: "share"}
SIGNIFICANT = 1.96  # standard errors from 0
SIGN, SIZE = to_say("sign"), to_say("size")
Row = dict[str, Any]
EMPTY: Row = {"real": None, "synthetic": None, "half": None, "differs": None, "note": ""}


def measured(store: RunStore, run: RunRecord) -> list[Row]:
    """Each question whose real figure a run paid for, beside the synthetic one; kept with it.

    Returns:
      As of `agreement.compare`, but "half" is of the interval of "real", which has noise.
    """
    if not (run.private and store.has_result(run.id) and MeasureQuestion.bought(run.plan)):
        return []
    artefacts = store.artefacts(run.id)
    if not artefacts.exists(FILE):
        with artefacts.readable(SYNTHETIC_TABLE) as table:
            rows = pd.read_parquet(table)
        told = list(rows_of(run.plan, artefacts, rows, run.schema.domain()))
        with artefacts.replacing(FILE) as file:
            file.write(json.dumps(to_json(told), ensure_ascii=False).encode())
    with artefacts.open(FILE) as file:
        return list(json.load(file, object_hook=from_json))


def rows_of(
    plan: Plan, artefacts: ArtefactStore, table: pd.DataFrame, domain: Domain
) -> Iterator[Row]:
    """The same, of releases among artefacts and a synthetic table."""
    once = [Message("Each person counts once.")] if plan.records == "people" else []
    for step in MeasureQuestion.bought(plan):
        found = load_json(artefacts, step.file, Measured)
        row: Row = {"what": plan.phase(step.phase).title, "note": _LOST}
        if found is not None:
            row = _beside(found, synthetic_figure(found, table, domain))
            row["note"] = joined([row["note"], *once])
        yield EMPTY | row


def _beside(found: Measured, synthetic: float) -> Row:
    """A measured figure beside the synthetic table's."""
    question, (value, error) = found.question, found.figure(found.sums)
    what, half = words(question), SIGNIFICANT * error
    scale = SCALES.get(question.statistic, "number")
    if np.isnan(half + synthetic) or (scale != "number" and half > value):
        return {"what": what, "note": Message("{what}: the noise is too large to tell.", what=what)}
    gap = question.statistic is Statistic.DIFFERENCE and abs(value) > half
    differs = [SIGN] * (gap and synthetic * value < 0) + [SIZE] * (abs(synthetic - value) > half)
    names = joined(map(Message, differs), ", ")
    note = Message(
        "{what}: {real} ± {half} measured on the real rows with noise; synthetic {synthetic}: "
        "{result}",
        what=what,
        real=shown(value, scale),
        half=shown(half, scale),
        synthetic=shown(synthetic, scale),
        result=Message("differs in {what}.", what=names) if differs else Message("agrees."),
    )
    told: Row = {"what": what, "differs": differs, "note": note}
    return told | {"real": value, "half": half, "synthetic": synthetic}
