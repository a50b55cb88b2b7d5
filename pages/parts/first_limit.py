"""The limit of a ledger account, set once: on Plan before the first release, or on Ledger."""

from __future__ import annotations

import streamlit as st

from core.runs.accounts.account import DEFAULT_LIMIT, set_limit, table_account
from core.runs.storage.records import TableRecord
from pages.parts import guard, shared
from pages.parts.language import say


def choose(table: TableRecord) -> float | None:
    """The limit that a first release is to open the account with; None where there is no choice."""
    account = table_account(shared.store(), table.id)
    if account.limit is not None or any(e.kind == "release" for e in account.entries):
        return None
    if not guard.sets_limits():
        return None
    return float(
        st.number_input(
            say("Limit ε for all releases about these people together"),
            0.1,
            100.0,
            DEFAULT_LIMIT,
            0.5,
            key=f"first_limit_{table.id}",
            help=say(
                "Set once, with this first release: later ones must fit into what is left of it. "
                "It cannot be changed afterwards. Lower is safer."
            ),
        )
    )


def settle(table: TableRecord, limit: float | None) -> None:
    """Open the account with the chosen limit; the usual one opens with the release itself."""
    if limit is not None and limit != DEFAULT_LIMIT:
        set_limit(shared.store(), table.id, epsilon=limit)
