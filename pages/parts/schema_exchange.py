"""Schemas that were declared before: offered when a new file looks alike, saved and loaded."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.runs.storage.records import TableRecord
from core.services import schemas
from core.table.schema_matching import Comparison, compare
from pages.parts import downloads, shared, visible
from pages.parts.plain import plain


def last_time(table: TableRecord) -> None:
    """Offer the declarations of an earlier table whose columns are called alike."""
    match = schemas.like_last_time(shared.store(), table, visible.tables(shared.store()))
    if match is None:
        return
    earlier, comparison = match
    with st.container(border=True):
        st.markdown(f":material/history: **Like {plain(earlier.name)}**: {plain(comparison.words)}")
        st.caption(
            "Its kinds, bounds, categories, people and rules can be taken over. Look at them "
            "before you confirm; what is new stays as it was proposed."
        )
        if st.button("Declare as last time", key=f"as_{table.id}", icon=":material/history:"):
            with shared.change():
                schemas.adopt(shared.store(), table, earlier.schema)
        _differences(comparison)


def files(table: TableRecord) -> None:
    """Save the schema as a file, and load or compare another."""
    with st.expander("Schema as a file", icon=":material/schema:"):
        downloads.offer(
            "Save the schema (JSON)",
            lambda: schemas.schema_file(table),
            table_id=table.id,
            file_name="schema.json",
            mime="application/json",
            icon=":material/download:",
            help="What is declared of the columns, as the command line takes it. Its notes are "
            "for inside only.",
        )
        file = st.file_uploader("Load or compare a schema", type=["json"], key=f"load_{table.id}")
        if file is None:
            return
        with shared.plain_errors():
            saved = schemas.read_schema_file(file.getvalue())
            comparison = compare(table.schema, saved)
            st.markdown(plain(comparison.words))
            _differences(comparison)
            if st.button("Take over what it declares", key=f"take_{table.id}"):
                with shared.change():
                    schemas.adopt(shared.store(), table, saved)


def _differences(comparison: Comparison) -> None:
    """What is declared otherwise, a row a column."""
    rows = [
        *((name, "new", "") for name in comparison.new),
        *((name, "gone", "") for name in comparison.gone),
        *((name, "declared otherwise", ", ".join(w)) for name, w in comparison.changed.items()),
    ]
    if rows:
        table = pd.DataFrame(rows, columns=["column", "how", "what"])
        with st.popover("What differs", icon=":material/difference:"):
            st.dataframe(table, hide_index=True)
