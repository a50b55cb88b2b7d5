"""Ledger: what was released about whom, what is left, and whether the record is intact."""

from __future__ import annotations

import streamlit as st

from core.privacy.plan import LARGEST_EPSILON
from core.runs.accounts.account import DEFAULT_LIMIT, set_limit, table_account
from core.runs.records import TableRecord
from pages.ledger import account_view, shared_people
from pages.server import guard
from pages.shared import visible
from pages.shared import widgets as shared
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store

MEANING = to_say(
    "The limit is the largest ε that all releases about these people may have together, even for "
    "someone who combines them. Once it is reached, no more releases are made. It cannot be "
    "changed after the first release, because what was released under it cannot be taken back."
)


def render() -> None:
    """The page."""
    guard.require("steward", "privacy_officer")
    shared.header(
        say("Ledger"),
        say(
            "Every private release about the people in each table. Entries are only added, never "
            "changed."
        ),
    )
    office = "privacy_officer" in guard.roles()  # which is about everybody's accounts
    if office:
        shared_people.render()
    tables = store().tables() if office else visible.tables()
    if not tables and not guard.steward():
        st.caption(say("There are no tables yet."))
        return
    if not tables:
        none = say("There are no tables yet, so the ledger has no entries to show.")
        shared.empty_page(none, say("Add a table"), "tables")
        return
    _broken()
    runs = store().runs() if office else visible.runs()
    by_id = {run.id: run for run in runs}
    for account_id in dict.fromkeys(table.account_id for table in tables):
        _account([table for table in tables if table.account_id == account_id], by_id)
    st.caption(said(MEANING))
    if st.button(say("Verify the ledger"), icon=":material/verified:"):
        if store().ledger.verify():
            st.success(
                say("The ledger is intact: no entry was changed or removed."),
                icon=":material/check:",
            )


def _broken() -> None:
    """Say where the entries cannot be trusted; nothing where they can."""
    verification = store().ledger.verify()
    if verification:
        return
    changed = say("Someone changed the ledger outside Facsimile.") if verification.checked else ""
    nothing = say("The entries below may be wrong, and nothing more can be released.")
    st.error(f"{changed} {plain(said(verification.problem))} {nothing}")


def _account(tables: list[TableRecord], runs: account_view.Runs) -> None:
    """One account, with all tables about its people."""
    account = table_account(store(), tables[0].id)
    with st.container(border=True):
        named = (
            say("**{table}** ({n:,} rows)", table=plain(table.name), n=table.n) for table in tables
        )
        st.markdown(" · ".join(named))
        st.caption(shared.spending_sentences(account.account_id))
        if account.limit is None:
            _without_limit(tables[0])
        else:
            account_view.units(account)
            account_view.numbers(account)
            account_view.over_time(account)
        account_view.declared(account)
        account_view.entries(account, runs)


def _without_limit(table: TableRecord) -> None:
    """How a limit can be set before the first release."""
    st.caption(
        say(
            "The first release opens the account with a limit of ε = {limit:g} for all releases "
            "together, unless you set a different limit first, here or on the Plan page.",
            limit=DEFAULT_LIMIT,
        )
    )
    if not guard.sets_limits():
        st.caption(f":material/badge: {say('Only the privacy officer can set a different limit.')}")
        return
    with st.popover(say("Set a limit"), icon=":material/vertical_align_top:"):
        st.write(
            say(
                "For all releases about these people together. You can set it only once, before "
                "the first release."
            )
        )
        epsilon = st.number_input(
            say("ε for all releases together"),
            0.1,
            LARGEST_EPSILON,
            3.0,
            0.5,
            key=f"epsilon_{table.id}",
        )
        if st.button(say("Set this limit"), key=f"limit_{table.id}"):
            with shared.change():
                set_limit(store(), table.id, epsilon=float(epsilon))
