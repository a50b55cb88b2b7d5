"""My analysis: the questions that matter, asked of real and of synthetic rows; inside only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.inference.questions import Question, check, words
from core.runs.records import RunRecord
from core.schema.schema import Domain
from core.services import limits
from core.services.inference import agreement, paid_figures
from pages.ask import error_bars, question_form
from pages.review import discussion
from pages.server import guard
from pages.shared import widgets as shared
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store


def tab(run: RunRecord, report: dict[str, Any]) -> None:
    """The pinned questions side by side, and a way for stewards to change them."""
    if report["view"] == "outside":
        for row in paid_figures.measured(store(), run):
            st.markdown(f"- {plain(said(row['note']))}")
        st.caption(say("Only what a run paid for (see Plan, Options) is shown outside."))
        return
    error_bars.show(run)
    rows = agreement.compared(store(), run)
    again = bool(rows) and st.button(say("Compare again"), icon=":material/refresh:")
    if rows is None or again:
        with shared.plain_errors(), st.spinner(say("Asking real and synthetic rows …")):
            rows = agreement.compare(store(), run)
    if found := agreement.summary(rows or ()):
        st.markdown(f"#### {plain(said(found))}")
    _table(rows or ())
    if guard.steward():
        domain, hidden = run.schema.domain(), limits.hidden_columns(run)
        pins(run.table_id, domain, hidden, key=f"mine_{run.id}", first=not rows)


def _table(rows: Sequence[dict[str, Any]]) -> None:
    """Each conclusion: real, synthetic with ±, and in what they differ."""
    shown = [
        {
            to_say("Question"): said(row["what"]),
            to_say("Real"): row["real"],
            to_say("Synthetic"): row["synthetic"],
            "±": row["half"],
            to_say("Result"): _result(row["differs"]),
            to_say("Note"): said(row["note"]),
        }
        for row in rows
    ]
    shared.number_table(shown, ("Real", "Synthetic", "±"), ".4g")
    if rows:
        st.caption(
            say(
                "Size: the real value lies outside the 95% interval around the synthetic one. "
                "Sign: they point to opposite sides. Significance: only one of them clearly "
                "differs from 0."
            )
        )


def _result(differs: list[str] | None) -> str:
    if differs is None:
        return say("not compared")
    names = ", ".join(said(reason) for reason in differs)
    return say("differs in {what}", what=names) if names else say("agrees")


def pins(
    table_id: str, domain: Domain, hidden: Sequence[str], *, key: str, first: bool = False
) -> None:
    """The pinned questions of a table, each with a button to remove it, and a form for more.

    Args:
      first: whether they are open before anybody opened them.
    """
    kept = agreement.pinned(store(), table_id)
    label, icon = say("Questions that matter ({n})", n=len(kept)), ":material/push_pin:"
    opened = st.expander(label, first, icon=icon, key=f"{key}_pins", on_change="rerun")
    if not opened.open:
        return
    with opened:
        st.caption(
            say(
                "Pin what people want to find out from this table. Review then says whether real "
                "and synthetic rows lead to the same conclusions."
            )
        )
        for number, question in enumerate(kept):
            name = plain(said(words(question)))
            if st.button(say("Remove: {name}", name=name), key=f"{key}_{number}", type="tertiary"):
                _keep(table_id, [one for one in kept if one != question])
        question = question_form.choose(domain, key=key, hidden=hidden)
        if st.button(say("Pin this question"), key=f"{key}_pin", icon=icon):
            with shared.plain_errors():
                check(question, domain, hidden)
                _keep(table_id, [*(one for one in kept if one != question), question])


def _keep(table_id: str, questions: Sequence[Question]) -> None:
    with shared.change():
        agreement.pin(store(), table_id, questions, author=discussion.signed_name())
