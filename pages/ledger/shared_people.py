"""People in tables of several owners, on the Ledger page of the privacy officer alone."""

from __future__ import annotations

import streamlit as st

from core.runs.accounts import between_owners
from core.runs.accounts.between_owners import SharedPeople
from pages.server import guard
from pages.shared import widgets as shared
from pages.shared.language import say
from pages.shared.plain import plain
from pages.shared.workspace_store import store


def render() -> None:
    """What tables of different owners share; nothing where all have one owner."""
    if not between_owners.has_owners(store()):
        return
    with st.container(border=True):
        st.markdown(say("**The same people in tables of different owners**"))
        st.caption(
            say(
                "Stewards do not see other stewards' tables, so the same people may have two "
                "accounts whose releases are not added up. Only you can see where this is the "
                "case. Joined accounts share one limit, and both stewards see its entries."
            )
        )
        if not st.toggle(say("Compare all tables"), key="shared_people"):
            return
        found = between_owners.shared_people(store())
        if not found:
            st.caption(say("No two tables of different owners have enough rows in common."))
        for number, one in enumerate(found):
            _pair(one, number)


def _pair(one: SharedPeople, number: int) -> None:
    """Two tables, and what may be done about their accounts."""
    first, second = (
        say("**{table}** ({owner})", table=plain(title), owner=plain(owner) or say("no owner"))
        for title, owner in zip(one.titles, one.owners, strict=True)
    )
    st.markdown(
        say("{first} and {second}: about {n:,} rows", first=first, second=second, n=one.rows)
    )
    join, note = st.columns(2)
    if join.button(say("Join the accounts"), key=f"join_{number}_{one.accounts}"):
        with shared.change():
            between_owners.join_accounts(store(), *one.accounts)
    if one.noted:
        note.caption(say("Noted. Future certificates of both accounts say so."))
    elif note.button(
        say("Note that these are the same people"), key=f"note_{number}_{one.accounts}"
    ):
        with shared.change():
            author = guard.signature() or say("privacy officer")
            between_owners.note_shared(store(), *one.accounts, author)
