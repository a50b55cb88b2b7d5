"""Ledger: what was released about whom, what is left, and whether the record is intact."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.privacy.ledger import Ledger
from core.runs import service
from core.runs.records import TableRecord
from pages.parts import guard, routes, shared


def render() -> None:
    """The page."""
    guard.require("steward")
    shared.header(
        "Ledger", "Every private release of each table. Entries are added, never changed."
    )
    tables = shared.store().tables()
    if not tables:
        shared.nothing_yet("Nothing has been released yet.", "Bring in a table", "tables")
        return
    for table in tables:
        _table(table)
    if st.button("Check that nothing was changed", icon=":material/verified:"):
        report = Ledger(shared.store().engine).verify()
        if report:
            st.success("The chain of entries is intact.", icon=":material/check:")
        else:
            st.error(f"The ledger was changed from outside. {report.problem}")


def _table(table: TableRecord) -> None:
    account = service.account(shared.store(), table.id)
    with st.container(border=True):
        st.markdown(f"**{table.name}** · {table.n:,} rows")
        if account.limit is None:
            st.caption("No limit is set. Releases are recorded.")
            if not account.entries:
                _limit(table)
        elif account.left is not None:
            st.progress(
                account.left.share,
                text=f"Limit ε {account.limit:g}; "
                f"left: {account.left.words(account.delta or 1e-6)}",
            )
        rows = [
            {
                "when": pd.Timestamp(entry.time, unit="s", tz="UTC"),
                "what": "account opened" if entry.kind == "account" else "release",
                "model": entry.model,
                "ε": "no privacy" if entry.epsilon is None else f"{entry.epsilon:.3g}",
                "δ": entry.delta,
                "run": entry.run,
            }
            for entry in account.entries
            if entry.kind == "release" or account.limit is not None
        ]
        if rows:
            st.dataframe(pd.DataFrame(rows), hide_index=True)


def _limit(table: TableRecord) -> None:
    with st.popover("Set a limit", icon=":material/vertical_align_top:"):
        st.write("All releases of this table together. It can be set once, before the first.")
        epsilon = st.number_input(
            "ε for all releases together", 0.1, 100.0, 3.0, 0.5, key=f"epsilon_{table.id}"
        )
        if st.button("Set this limit", key=f"limit_{table.id}", type="primary"):
            with shared.plain_errors():
                service.set_limit(shared.store(), table.id, epsilon=float(epsilon))
                st.rerun()


if __name__ == "__main__":
    routes.front_door()  # a server that has run no page yet runs this file by itself
