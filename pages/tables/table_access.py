"""Who may see a table, where people sign in: its owner says with whom it is shared."""

from __future__ import annotations

import streamlit as st

from core.runs.records import TableRecord
from core.services.access import access_of, share
from pages.server import guard
from pages.shared import widgets as shared
from pages.shared.language import say
from pages.shared.plain import plain
from pages.shared.workspace_store import store


def render(table: TableRecord) -> None:
    """With whom the table is shared; nothing where nobody signs in."""
    if not guard.configured():
        return
    access = access_of(store(), table.id)
    with st.popover(say("Shared with"), icon=":material/group:"):
        if access is None:
            st.caption(
                say(
                    "Everyone with a role on this server can see this table, because it was added "
                    "before sign-in was set up."
                )
            )
            return
        st.caption(say("Added by {owner}.", owner=plain(access.owner)))
        if access.owner != guard.address():
            st.caption(say("Only this person can share it."))
            return
        known = [one for one in guard.people() if one != access.owner]
        with st.form("access_form", border=False):
            stewards = st.toggle(say("All stewards"), access.stewards)
            chosen = st.multiselect(
                say("People"),
                list(dict.fromkeys([*known, *access.shared])),
                default=list(access.shared),
                help=say(
                    "Stewards can do everything with the table; reviewers can review its runs."
                ),
            )
            sent = st.form_submit_button(say("Save"))
        if sent:
            with shared.change():
                share(store(), table.id, chosen, stewards=stewards)
