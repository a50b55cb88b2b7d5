"""Ledger: what was released about whom, what is left, and whether the record is intact."""

from __future__ import annotations

import streamlit as st

from core.privacy.plan import LARGEST_EPSILON
from core.runs.accounts.account import DEFAULT_LIMIT, Account, set_limit, table_account
from core.runs.records import TableRecord
from pages.ledger import account_view, shared_people
from pages.server import guard
from pages.shared import visible
from pages.shared import widgets as shared
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain

MEANING = to_say(
    "The limit is the largest ε that all releases about these people may have together, whoever "
    "combines them. When it is reached, no further release is made: ask the table's owner. Another "
    "limit cannot be set after the first release, because what was released under this one's "
    "promise cannot be taken back."
)


def render() -> None:
    """The page."""
    guard.require("steward", "privacy_officer")
    shared.header(
        say("Ledger"),
        say("Every private release about each table's people. Entries are added, never changed."),
    )
    office = "privacy_officer" in guard.roles()  # which is about everybody's accounts
    if office:
        shared_people.render()
    tables = shared.store().tables() if office else visible.tables(shared.store())
    if not tables and not guard.steward():
        st.caption(say("No table has been brought in yet."))
        return
    if not tables:
        none = say("No table is here whose entries could be shown.")
        shared.nothing_yet(none, say("Bring in a table"), "tables")
        return
    _broken()
    runs = shared.store().runs() if office else visible.runs(shared.store())
    by_id = {run.id: run for run in runs}
    for account_id in dict.fromkeys(table.account_id for table in tables):
        _account([table for table in tables if table.account_id == account_id], by_id)
    st.caption(said(MEANING))
    if st.button(say("Check that nothing was changed"), icon=":material/verified:"):
        if shared.store().ledger.verify():
            st.success(say("The chain of entries is intact."), icon=":material/check:")


def _broken() -> None:
    """Say where the entries cannot be trusted; nothing where they can."""
    verification = shared.store().ledger.verify()
    if verification:
        return
    changed = say("The ledger was changed from outside.") if verification.checked else ""
    nothing = say("What is shown here may be wrong, and nothing more can be released.")
    st.error(f"{changed} {plain(said(verification.problem))} {nothing}")


def _account(tables: list[TableRecord], runs: account_view.Runs) -> None:
    """One account, with all tables about its people."""
    account = table_account(shared.store(), tables[0].id)
    with st.container(border=True):
        named = (
            say("**{table}** ({n:,} rows)", table=plain(table.name), n=table.n) for table in tables
        )
        st.markdown(" · ".join(named))
        st.caption(shared.spent_words(account.account_id))
        if any(entry.kind == "release" for entry in account.entries) or account.limit is not None:
            account_view.units(account)
            account_view.numbers(account)
            account_view.over_time(account)
        if account.limit is None:
            _without_limit(tables[0], account)
        account_view.declared(account)
        account_view.entries(account, runs)


def _without_limit(table: TableRecord, account: Account) -> None:
    """Before a first release, or an account of an older version."""
    if any(entry.kind == "release" for entry in account.entries):
        st.caption(
            say(
                "No limit was set before the first release, by an older version of this product. "
                "Releases are recorded; a limit after the fact would promise what was given away."
            )
        )
        return
    st.caption(
        say(
            "The first release opens the account with a limit of ε {limit:g} for all releases "
            "together, unless you set another one before it, here or on Plan.",
            limit=DEFAULT_LIMIT,
        )
    )
    if not guard.sets_limits():
        st.caption(f":material/badge: {say('The privacy officer sets another one.')}")
        return
    with st.popover(say("Set a limit"), icon=":material/vertical_align_top:"):
        st.write(
            say("All releases about these people together. It can be set once, before the first.")
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
                set_limit(shared.store(), table.id, epsilon=float(epsilon))
