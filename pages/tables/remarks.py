"""Remarks on a table: what must be decided, what should be checked, and notes, folded."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.proposing.remarks import Remark, Urgency
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain

MOST_LINES = 8  # of checks; more are folded
_BESIDE = {
    Urgency.DECIDE: to_say("Decide: {words}"),
    Urgency.CHECK: to_say("Check: {words}"),
    Urgency.NOTE: "{words}",
}


def beside(remarks: Sequence[Remark]) -> dict[str, str]:
    """What stands beside each column in the grid, the gravest remark first."""
    words: dict[str, str] = {}
    for urgency, template in _BESIDE.items():
        for one in remarks:
            # words that name several columns stand below the grid
            alone = len(one.columns) == 1 or not one.named
            for name in one.columns if one.urgency is urgency and alone else ():
                words[name] = (
                    f"{words.get(name, '')} {say(template, words=said(one.words))}".strip()
                )
    return words


def decisions(remarks: Sequence[Remark]) -> None:
    """A warning of what a run would lose or publish; nothing where there is nothing to decide."""
    if lines := _lines(remarks, Urgency.DECIDE):
        title = say("**Must decide ({n})**", n=len(lines))
        st.warning("\n".join([title, *lines]), icon=":material/warning:")


def checks_and_notes(remarks: Sequence[Remark]) -> None:
    """What may have been read wrongly, and folded what is good to know."""
    checks, notes = _lines(remarks, Urgency.CHECK), _lines(remarks, Urgency.NOTE)
    title = say("**Should check ({n})**", n=len(checks))
    if 0 < len(checks) <= MOST_LINES:
        st.info("\n".join([title, *checks]), icon=":material/help:")
    elif checks:
        st.expander(title, icon=":material/help:").markdown("\n".join(checks))
    if notes:
        title = say("Notes ({n})", n=len(notes))
        st.expander(title, icon=":material/info:").markdown("\n".join(notes))


def _lines(remarks: Sequence[Remark], urgency: Urgency) -> list[str]:
    """A line for all columns of which the same is said."""
    about: dict[str, list[str]] = {}
    for one in remarks:
        if one.urgency is urgency:
            about.setdefault(plain(said(one.words)), []).extend(() if one.named else one.columns)
    named = {words: ", ".join(map(plain, names)) for words, names in about.items()}
    return [f"- **{names}**: {words}" if names else f"- {words}" for words, names in named.items()]
