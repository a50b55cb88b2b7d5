"""Ask: a question, and an answer that says how far it may be off, from synthetic rows alone."""

from __future__ import annotations

import streamlit as st

from core.export.answer_sentences import conclusions, label, notes, rows, sentence
from core.figures.answer import cells_figure, curve_figure, points_figure
from core.inference.intervals import Answer
from core.inference.questions import Question, Statistic
from core.message import Message
from core.runs.records import RunRecord
from core.schema.column import SchemaError
from core.services import limits
from core.services.inference import asking, replicas
from core.services.recipe import answer_code
from pages.ask import error_bars, question_form
from pages.server import guard
from pages.shared import visible
from pages.shared import widgets as shared
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store

HEADS = (
    (to_say("Of"), "of"), (to_say("Synthetic"), "value"),
    (to_say("Real table from"), "table low"), (to_say("Real table to"), "table high"),
    (to_say("Naive from"), "naive low"), (to_say("Naive to"), "naive high"),
    (to_say("Note"), "note"),
)  # fmt: skip


def render() -> None:
    """The page."""
    guard.require("steward", "reviewer")
    shared.header(
        say("Ask"),
        say("Ask the synthetic table. The answer says how far off it may be."),
    )
    run = shared.finished_run(say("No run has finished yet, so there is nothing to ask."))
    if run is None:
        return
    if not store().has_result(run.id):
        shared.unfinished(run)
        return
    if not run.private and not visible.may_look_inside(run.table_id):
        st.error(said(visible.NO_OUTSIDE), icon=":material/block:")
        return
    domain, hidden = run.schema.domain(), limits.hidden_columns(run)
    left, right = st.columns([2, 3], gap="large")
    with left:
        question = question_form.choose(domain, key=f"ask_{run.id}", hidden=hidden)
    with right:
        error_bars.show(run)
        _answered(run, question)


def _answered(run: RunRecord, question: Question) -> None:
    """The answer, kept in the session until the question or the replicas change."""
    key = f"answer_{run.id}_{replicas.complete(store(), run.id)}_{question.model_dump_json()}"
    if key not in st.session_state:
        try:
            with st.spinner(say("Computing …")):
                st.session_state[key] = asking.ask(store(), run, question)
        except SchemaError as error:
            st.caption(plain(said(error)))
            return
    answer: Answer = st.session_state[key]
    _show(answer)
    if answer.measured:
        st.caption(f":material/straighten: {plain(said(answer.measured))}")
    if answer.figures:
        code = answer_code(run, question)
        with st.expander(say("Show the code"), icon=":material/code:"):
            st.caption(say("To get this figure from the downloaded CSV file, without error bars:"))
            st.code(code.python, language="python")
            st.caption(say("With error bars, on this server:"))
            st.code(code.command, language="bash")


def _show(answer: Answer) -> None:
    """An answer as a sentence, a picture, notes and, of several values, a table."""
    if answer.figures:
        st.markdown(f"#### {plain(said(sentence(answer)))}")
        _picture(answer)
    for note in notes(answer):
        st.caption(f":material/info: {plain(said(note))}")
    if len(answer.figures) > 1:
        shown = [
            {name: said(row[key]) if key in ("of", "note") else row[key] for name, key in HEADS}
            for row in rows(answer)
        ]
        shared.number_table(shown, [name for name, _ in HEADS[1:-1]], ".4g")


def _picture(answer: Answer) -> None:
    """The figure that suits the statistic."""
    question, words = answer.question, said(sentence(answer))
    if question.statistic is Statistic.TABLE:
        figure = cells_figure(answer.figures)
    elif question.statistic is Statistic.SURVIVAL:
        figure = curve_figure(answer.figures, Message("{column}", column=question.column))
    else:
        values = [one for one in conclusions(answer) if one.value == one.value]
        if len(values) == 1 and values[0].table is None:
            return  # a point alone says nothing that the sentence does not
        figure = points_figure(values, [label(question, one) for one in values])
    shared.picture(figure, key="answer", alt=words)
