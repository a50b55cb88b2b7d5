"""Who may see a table, where people sign in: its owner says with whom it is shared."""

from __future__ import annotations

import streamlit as st

from core.runs.records import TableRecord
from core.runs.storage.access import accesses, set_access
from pages.server import guard
from pages.shared import widgets as shared
from pages.shared.language import say
from pages.shared.plain import plain


def render(table: TableRecord) -> None:
    """With whom the table is shared; nothing where nobody signs in."""
    if not guard.configured():
        return
    access = accesses(shared.store()).get(table.id)
    with st.popover(say("Shared with"), icon=":material/group:"):
        if access is None:
            st.caption(
                say(
                    "Everybody with a role here sees this table: it was there before people "
                    "signed in."
                )
            )
            return
        st.caption(say("Brought in by {owner}.", owner=plain(access.owner)))
        if access.owner != guard.address():
            st.caption(say("Only they can share it."))
            return
        known = [one for one in guard.people() if one != access.owner]
        with st.form("access_form", border=False):
            stewards = st.toggle(say("All stewards"), access.stewards)
            chosen = st.multiselect(
                say("People"),
                list(dict.fromkeys([*known, *access.shared])),
                default=list(access.shared),
                help=say(
                    "Stewards may do everything with it, reviewers may review what is made of it."
                ),
            )
            sent = st.form_submit_button(say("Keep this"))
        if sent:
            with shared.change():
                set_access(
                    shared.store(),
                    table.id,
                    owner=access.owner,
                    shared=chosen,
                    stewards=stewards,
                )
