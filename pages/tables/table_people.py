"""Whose people a table is about: the steward's answer, with the product's proposal."""

from __future__ import annotations

import streamlit as st

from core.runs.accounts import people
from core.runs.records import TableRecord
from core.runs.storage.access import accesses
from pages.server import guard
from pages.shared import widgets as shared
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain

EXPLAINED = to_say(
    "What is released about people adds up over all tables they are in, whatever the columns are "
    "called. So tables about the same people share one account with one limit. Rows that are kept "
    "out of training belong to it too: they are looked at when columns are proposed, pictured and "
    "compared with earlier tables."
)


def render(table: TableRecord) -> None:
    """The question, or a line that there is nothing to ask."""
    store = shared.store()
    viewer = guard.address() if guard.configured() else None
    owner = accesses(store).get(table.id)
    if viewer is not None and owner is not None and owner.owner != viewer:
        return  # what it shares with other tables of its owner is not for everybody who may see it
    answer = people.account_choice(store, table.id)
    names = _named(people.account_names(store, without=table.id, viewer=viewer))
    with st.container(border=True):
        st.markdown(say("**Whose people are these?**"), help=said(EXPLAINED))
        if not names:
            alone = say("No earlier table is here, so they get an account of their own.")
            st.caption(f"{alone} {said(EXPLAINED)}")
            return
        for other in answer.linked:
            st.markdown(f":material/group: {plain(said(other.evidence))}")
        if not answer.linked:
            st.caption(
                say("No earlier table shares enough rows with this one to be about its people.")
            )
        # what somebody else's tables hold is not told here, and their accounts are not offered
        options = [*names, people.NEW]
        current = table.account_id if table.account_id in names else people.NEW
        chosen = st.selectbox(
            say("Whose people are these?"),
            options,
            index=options.index(current),
            format_func=lambda key: (
                say("people no earlier table is about")
                if key == people.NEW
                else say("the people of {tables}", tables=names[key])
            ),
            key=f"people_{table.id}_{table.account_id}",
            label_visibility="collapsed",
        )
        wanted = table.account_id if chosen == current else chosen
        if answer.words and wanted == table.account_id:
            st.caption(
                say(
                    "Kept apart by the steward: “{words}”. Certificates say so.",
                    words=plain(answer.words),
                )
            )
        elif any(other.account_id != wanted for other in answer.linked):
            _in_words(table, wanted)
        elif wanted != table.account_id:
            # tables that came in after this one may share rows with it too
            if any(other.account_id != wanted for other in people.link_anew(store, table.id)):
                _in_words(table, wanted)
            else:
                with shared.change():
                    people.change_account(store, table.id, wanted)
        st.caption(said(EXPLAINED))


def _in_words(table: TableRecord, wanted: str) -> None:
    """Keeping people apart whose rows are shared takes words."""
    st.warning(
        say(
            "Rows of this table are also in a table of another account. If those are the same "
            "people, two accounts together reveal more about them than either limit allows. To "
            "keep them apart, say in words why they are other people: the ledger keeps it, and "
            "every certificate says that you declared that these people have no other account."
        ),
        icon=":material/warning:",
    )
    words = st.text_input(
        say("Why these are other people"),
        max_chars=300,
        key=f"apart_{table.id}",
        placeholder=say("for example: other hospitals, whose case numbers happen to be the same"),
    )
    key = f"keep_apart_{table.id}"
    if st.button(say("Keep these people apart"), key=key, disabled=not words):
        with shared.change():
            people.change_account(shared.store(), table.id, wanted, words)


def _named(names: dict[str, str]) -> dict[str, str]:
    """The accounts' names, in the language of who is here."""
    return {
        key: say("account {people}", people=key) if name == f"account {key}" else name
        for key, name in names.items()
    }
