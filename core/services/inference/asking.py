"""Ask a run's synthetic table; nothing real is opened and nothing is spent."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from core.inference.intervals import Answer, answer
from core.inference.questions import Question, QuestionError, check, read_question, words
from core.inference.replicas import TOO_NARROW, replicas_of
from core.message import Message, joined
from core.models.steps.counting.design import ALL_PAIRS, PAIRS
from core.runs.errors import NotFoundError
from core.runs.records import RunRecord
from core.runs.storage.artefacts import SYNTHETIC_TABLE
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.services import limits, reviews
from core.services.inference.paid_figures import measured

NARROW = Message(
    "The intervals of this model are too narrow. In tests they held about nine in ten shares and "
    "cells, three in four differences between groups and half of all coefficients, instead of 95 "
    "in 100. Those of the model Scan and focus hold."
)


def ask(store: RunStore, run: RunRecord, question: Question, *, level: float = 0.95) -> Answer:
    """The answer of a finished run's table, with intervals once there are replicas.

    Args:
      level: of the intervals, in (0, 1).

    Raises:
      QuestionError, ConditionError: it cannot be asked of this table.
    """
    domain, hidden = run.schema.domain(), limits.hidden_columns(run)
    check(question, domain, hidden)
    columns, target = question.columns(domain), [run.schema.target or ""]
    significant = [
        frozenset([*one["columns"], *(target if one["target"] else [])])
        for one in reviews.significant_sets(store, run.id)
    ]
    try:
        with store.artefacts(run.id).readable(SYNTHETIC_TABLE) as file:
            published = pd.read_parquet(file, columns=list(columns))
    except pa.ArrowInvalid:
        raise QuestionError("Choose different columns.") from None
    known = replicas_of(store.artefacts(run.id), columns)
    others = sum(column.name != run.schema.target for column in domain.modelled)
    counts = any(phase.name == PAIRS for phase in run.plan.phases)
    found = answer(
        question,
        published,
        known,
        domain,
        level=level,
        measured=significant,
        all_pairs=not counts or math.comb(others, 2) <= ALL_PAIRS,
    )
    if known and run.plan.model in TOO_NARROW:
        found = replace(found, caution=joined([NARROW, *filter(None, [found.caution])]))
    paid = (row["note"] for row in measured(store, run) if row["what"] == words(question))
    return replace(found, measured=next(paid, ""))


def ask_run(run: str | Path, statistic: str, of: str = "", **asked: Any) -> Answer:
    """The same for a run of the workspace, by its id or folder, in words of the command `ask`.

    Args:
      asked: "by", "where" and "at" as `read_question` takes them, and "level" of intervals.
    """
    level = asked.pop("level", 0.95)
    with RunStore(Workspace.default()) as store:
        found = store.run(Path(run).name)
        if not store.has_result(found.id):
            raise NotFoundError(Message("This run has not made a synthetic table yet."))
        question = read_question(statistic, of, domain=found.schema.domain(), **asked)
        return ask(store, found, question, level=level)
