"""Do the synthetic table and the real one lead to the same conclusions? For eyes inside only.

Real rows are opened without noise, so whoever sees the result has looked inside. What ε paid for,
which is for all eyes, is in `paid_figures`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from core.export.answer_sentences import clear, conclusions, label
from core.inference.estimates import estimate
from core.inference.intervals import Figure
from core.inference.questions import MODELS, Question, Statistic, words
from core.message import Message, from_json, joined, to_json, to_say
from core.runs.execution.report_rows import real_sides
from core.runs.records import RunRecord
from core.runs.storage.reviews.notes import pin_questions, pinned_questions
from core.runs.storage.store import RunStore
from core.schema.column import SchemaError
from core.services.inference.asking import ask
from core.services.inference.paid_figures import EMPTY, SIGN, SIGNIFICANT, SIZE, Row

FILE = "agreement.json"  # of a run: what its pinned questions came to
CELLS = 0.9  # of a cross table or a curve that must lie in their intervals
SIGNIFICANCE = to_say("significance")


def pin(store: RunStore, table_id: str, questions: Sequence[Question], *, author: str) -> None:
    """Keep the questions that matter for a table; this may be done before any run."""
    told = [question.model_dump_json() for question in questions]
    pin_questions(store, table_id=table_id, author=author, questions=told)


def pinned(store: RunStore, table_id: str) -> tuple[Question, ...]:
    """The questions that matter for a table."""
    return tuple(map(Question.model_validate_json, pinned_questions(store, table_id)))


def compare(store: RunStore, run: RunRecord) -> list[Row]:
    """Each conclusion of the pinned questions from real and from synthetic rows; kept with the run.

    Returns:
      "what", "real", "synthetic", "half" (of the interval for the real table), "differs" (of
      sign, significance and size; None where it was not compared) and "note".
    """
    questions = pinned(store, run.table_id)
    rows = [EMPTY | row for question in questions for row in _rows(store, run, question)]
    told = {"questions": pinned_questions(store, run.table_id), "rows": rows}
    with store.artefacts(run.id).replacing(FILE) as file:
        file.write(json.dumps(to_json(told), ensure_ascii=False).encode())
    return rows


def compared(store: RunStore, run: RunRecord) -> list[Row] | None:
    """What `compare` kept for the questions that are pinned now; None where it has to compare."""
    artefacts, asked = store.artefacts(run.id), pinned_questions(store, run.table_id)
    if not artefacts.exists(FILE):
        return None if asked else []
    with artefacts.open(FILE) as file:
        kept = json.load(file, object_hook=from_json)
    return list(kept["rows"]) if kept["questions"] == asked else None


def _rows(store: RunStore, run: RunRecord, question: Question) -> Iterator[Row]:
    domain, what = run.schema.domain(), words(question)
    try:
        found = ask(store, run, question)
        if found.reason:
            raise SchemaError(found.reason)
    except SchemaError as error:
        yield {"what": what, "note": str(error)}
        return
    rows = real_sides(store, run, question.columns(domain))[0].rows
    real = estimate(question, rows, domain)
    if question.statistic in (Statistic.TABLE, Statistic.SURVIVAL):
        pairs = zip(found.figures, real.values, strict=True)
        share = float(np.mean([_inside(figure, value) for figure, value in pairs]))
        note = Message("{share:.0%} of the real values lie in their intervals.", share=share)
        yield {"what": what, "differs": [SIZE] * (share < CELLS), "note": note}
        return
    values = dict(zip(real.names, zip(real.values, real.errors, strict=True), strict=True))
    for figure in conclusions(found):
        if question.statistic in MODELS:
            term = label(question, figure)
            what = Message("{outcome}, regression: {term}", outcome=question.column, term=term)
        yield {"what": what} | _conclusion(question, figure, *values[figure.name])


def _inside(figure: Figure, value: float) -> bool:
    return figure.table is not None and bool(figure.table.low <= value <= figure.table.high)


def _conclusion(question: Question, figure: Figure, real: float, error: float) -> Row:
    if figure.table is None or not np.isfinite(real):
        return {"note": figure.reason}
    differs = [] if _inside(figure, real) else [SIZE]
    if question.statistic in (*MODELS, Statistic.DIFFERENCE):
        significant = bool(abs(real) > SIGNIFICANT * error)
        if significant != clear(figure):
            differs.insert(0, SIGNIFICANCE)
        if significant and np.sign(real) != np.sign(figure.value):
            differs.insert(0, SIGN)
    numbers = {"real": float(real), "synthetic": figure.value, "half": figure.table.half}
    return numbers | {"differs": differs}


def summary(rows: Sequence[Row]) -> Message | None:
    """How many conclusions agree, and in what the others differ; None where none was compared."""
    known = [row["differs"] for row in rows if row["differs"] is not None]
    apart = [differs[0] for differs in known if differs]
    if not known:
        return None
    agree = Message("{n} of {all} conclusions agree", n=len(known) - len(apart), all=len(known))
    names = joined([Message(reason) for reason in dict.fromkeys(apart)], ", ")
    return Message("{agree}; others differ in {what}", agree=agree, what=names) if apart else agree
