"""The tables and runs that this person may see. Pages ask here, never the store itself.

Without sign-in that is all of them. With it, a table is seen by its owner and by those the owner
shared it with; tables without an owner are seen by everybody whose role sees tables.
"""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from core.runs.errors import NotFoundError
from core.runs.records import RunRecord, TableRecord
from core.services import access, discussion
from pages.server import guard
from pages.shared.language import to_say
from pages.shared.workspace_store import store

NO_OUTSIDE = to_say(
    "This run has no differential privacy, so it has no outside view and nothing was shown. Ask "
    "the steward for a private run."
)
OFFICE = ("steward", "reviewer")  # the roles that see tables


def hidden(address: str) -> set[str]:
    """Ids of the tables that somebody, signed in by this address, may not see.

    Needs no visit: downloads ask again when they are fetched.
    """
    if not guard.configured():
        return set()
    roles = guard.roles_of(address)
    if not roles & set(OFFICE):
        return {table.id for table in store().tables()}
    return access.hidden_tables(store(), address, steward="steward" in roles)


def tables() -> list[TableRecord]:
    """The tables that this person may see, newest first."""
    away = hidden(guard.address())
    return [table for table in store().tables() if table.id not in away]


def table(table_id: str) -> TableRecord:
    """One table; NotFoundError where there is none that this person may see."""
    found = store().table(table_id)
    if found.id in hidden(guard.address()):
        raise NotFoundError("There is no such table in this workspace.")  # the words of the store
    return found


def current_table(table_id: str, *any_of: guard.Role) -> TableRecord:
    """A table, for a dialog; see `still`."""
    if guard.may(*any_of):
        with suppress(NotFoundError):
            return table(table_id)
    st.rerun(scope="app")


def runs(table_id: str | None = None) -> list[RunRecord]:
    """The runs that this person may see, newest first; of one table where one is named."""
    away = hidden(guard.address())
    return [run for run in store().runs(table_id) if run.table_id not in away]


def still(run_id: str, *any_of: guard.Role) -> RunRecord:
    """A run, for a part of a page that is drawn again without its page: a fragment, a dialog.

    No page stands before such a part to ask who is there, so it asks here each time. Where the
    answer is no, the whole page is drawn anew, and says so.

    Args:
      any_of: roles that may open the page.
    """
    if guard.may(*any_of):
        with suppress(NotFoundError):
            run = store().run(run_id)
            if run.table_id not in hidden(guard.address()):
                return run
    st.rerun(scope="app")


def may_look_inside(table_id: str) -> bool:
    """Whether this person may see real data without noise."""
    return guard.steward() or discussion.rule(store(), table_id).inside
