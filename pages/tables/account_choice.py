"""Whose people a table is about: the steward's answer, with the product's proposal."""

from __future__ import annotations

import streamlit as st

from core.runs.accounts import people
from core.runs.accounts.record_linkage import link_anew
from core.runs.records import TableRecord
from core.services import access
from pages.server import guard
from pages.shared import widgets as shared
from pages.shared.language import keyed, said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store

EXPLAINED = to_say(
    "Releases about the same people add up across all tables that contain them, whatever the "
    "columns are called. Tables about the same people therefore share one account with one limit. "
    "This includes rows kept out of training, because they are used to propose columns, draw "
    "figures and compare tables."
)


def render(table: TableRecord) -> None:
    """The question, or a line that there is nothing to ask."""
    viewer = guard.address() if guard.configured() else None
    owner = access.access_of(store(), table.id)
    if viewer is not None and owner is not None and owner.owner != viewer:
        return  # what it shares with other tables of its owner is not for everybody who may see it
    answer = people.account_choice(store(), table.id)
    names = _named(people.account_names(store(), without=table.id, viewer=viewer))
    with st.container(border=True):
        st.markdown(say("**Who are the people in this table?**"), help=said(EXPLAINED))
        if not names:
            st.caption(say("There are no earlier tables, so these people get their own account."))
            return
        for other in answer.linked:
            st.markdown(f":material/group: {plain(said(other.evidence))}")
        if not answer.linked:
            st.caption(
                say(
                    "No earlier table has enough rows in common with this one to be about the same "
                    "people."
                )
            )
        # what somebody else's tables hold is not told here, and their accounts are not offered
        options = [*names, people.NEW]
        current = table.account_id if table.account_id in names else people.NEW
        chosen = st.selectbox(
            say("Who are the people in this table?"),
            options,
            index=options.index(current),
            format_func=lambda key: (
                say("people who are in no earlier table")
                if key == people.NEW
                else say("the people in {tables}", tables=names[key])
            ),
            key=keyed(f"people_{table.id}_{table.account_id}"),
            label_visibility="collapsed",
        )
        wanted = table.account_id if chosen == current else chosen
        if answer.words and wanted == table.account_id:
            st.caption(
                say(
                    "Kept separate by the steward: “{words}”. Certificates say so.",
                    words=plain(answer.words),
                )
            )
        elif any(other.account_id != wanted for other in answer.linked):
            _explain_separation(table, wanted)
        elif wanted != table.account_id:
            # tables that came in after this one may share rows with it too
            if any(other.account_id != wanted for other in link_anew(store(), table.id)):
                _explain_separation(table, wanted)
            else:
                with shared.change():
                    people.change_account(store(), table.id, wanted)
        st.caption(said(EXPLAINED))


def _explain_separation(table: TableRecord, wanted: str) -> None:
    """Keeping people apart whose rows are shared takes words."""
    st.warning(
        say(
            "This table shares rows with a table in another account. If these are the same people, "
            "two accounts together can reveal more about them than either limit allows. To keep "
            "the accounts separate, explain why these are different people. The ledger keeps your "
            "explanation, and every certificate says that you declared that these people have no "
            "other account."
        ),
        icon=":material/warning:",
    )
    words = st.text_input(
        say("Why these are different people"),
        max_chars=300,
        key=f"apart_{table.id}",
        placeholder=say("for example: other hospitals whose case numbers happen to be the same"),
    )
    key = f"keep_apart_{table.id}"
    if st.button(say("Keep the accounts separate"), key=key, disabled=not words):
        with shared.change():
            people.change_account(store(), table.id, wanted, words)


def _named(names: dict[str, str]) -> dict[str, str]:
    """The accounts' names, in the language of who is here."""
    return {
        key: say("account {id}", people=key) if name == f"account {key}" else name
        for key, name in names.items()
    }
