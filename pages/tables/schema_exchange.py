"""Schemas that were declared before: offered when a new file looks alike, saved and loaded."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.proposing.schema_matching import Comparison, compare
from core.runs.records import TableRecord
from core.services import schemas
from pages.shared import downloads, visible
from pages.shared import widgets as shared
from pages.shared.language import said, say
from pages.shared.plain import plain
from pages.shared.workspace_store import store


def last_time(table: TableRecord) -> None:
    """Offer the declarations of an earlier table whose columns are called alike."""
    match = schemas.like_last_time(store(), table, visible.tables())
    if match is None:
        return
    earlier, comparison = match
    with st.container(border=True):
        st.markdown(
            say(
                ":material/history: **Similar to {name}**: {comparison}",
                name=plain(earlier.name),
                comparison=plain(said(comparison.words)),
            )
        )
        st.caption(
            say(
                "You can reuse its column kinds, bounds, categories, person settings and rules. "
                "Check them before you confirm; new columns keep their proposals."
            )
        )
        key = f"as_{table.id}"
        if st.button(say("Reuse these declarations"), key=key, icon=":material/history:"):
            with shared.change():
                schemas.adopt(store(), table, earlier.schema)
        _differences(comparison)


def files(table: TableRecord) -> None:
    """Save the schema as a file, and load or compare another."""
    with st.expander(say("Schema file"), icon=":material/schema:"):
        downloads.offer(
            say("Download schema (JSON)"),
            lambda: schemas.schema_file(table),
            table_id=table.id,
            file_name="schema.json",
            mime="application/json",
            icon=":material/download:",
            help=say(
                "What you declared about the columns, as the command line reads it. For internal "
                "use, because it contains your notes."
            ),
        )
        file = st.file_uploader(
            say("Load or compare a schema"), type=["json"], key=f"load_{table.id}"
        )
        if file is None:
            return
        with shared.plain_errors():
            saved = schemas.read_schema_file(file.getvalue())
            comparison = compare(table.schema, saved)
            st.markdown(plain(said(comparison.words)))
            _differences(comparison)
            if st.button(say("Apply this schema"), key=f"take_{table.id}"):
                with shared.change():
                    schemas.adopt(store(), table, saved)


def _differences(comparison: Comparison) -> None:
    """What is declared otherwise, a row a column."""
    otherwise = say("declared differently")
    rows = [
        *((name, say("new"), "") for name in comparison.new),
        *((name, say("removed"), "") for name in comparison.gone),
        *(
            (name, otherwise, ", ".join(map(said, fields)))
            for name, fields in comparison.changed.items()
        ),
    ]
    if rows:
        table = pd.DataFrame(rows, columns=[say("column"), say("change"), say("details")])
        with st.popover(say("Differences"), icon=":material/difference:"):
            st.dataframe(table, hide_index=True)
