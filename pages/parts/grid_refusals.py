"""Edits of the grid: kept, or refused by name while the grid shows what still holds."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.runs.storage.records import TableRecord
from core.services import tables
from core.table.schema import Kind, SchemaColumn, SchemaError
from pages.parts import shared
from pages.parts.plain import plain

LABELS = {
    "kind": "Kind",
    "missing": "May be missing",
    "absent": "Written as",
    "codes": "Also missing",
    "from": "From",
    "to": "To",
    "scale": "Scale",
    "keep": "In the synthetic table",
}


def keep(table: TableRecord, shown: pd.DataFrame, edited: pd.DataFrame) -> None:
    """Keep an edited grid, or what was refused of it; then the page anew.

    Args:
      table: whose columns.
      shown: the grid as it holds.
      edited: the grid as somebody left it.
    """
    earlier: dict[tuple[str, Kind], SchemaColumn]
    earlier = st.session_state.setdefault(f"earlier_{table.id}", {})
    with shared.change():
        try:
            tables.change_grid(shared.store(), table, edited, earlier)
        except SchemaError as error:
            st.session_state[_key(table)] = (_words(shown, edited, error), table.schema)
            st.session_state[f"refusals_{table.id}"] = count(table) + 1
        else:
            leave(table)
            earlier |= {(column.name, column.kind): column for column in table.schema.columns}


def show(table: TableRecord) -> None:
    """The edit that was refused last, until another one is kept or it is let go."""
    if not standing(table):
        return
    words, _ = st.session_state[_key(table)]
    st.error(words, icon=":material/error:")
    st.button("Leave it as it was", key=f"leave_{table.id}", on_click=leave, args=(table,))


def standing(table: TableRecord) -> bool:
    """Whether an edit of this table, as it is now, was refused and not dealt with."""
    refused = st.session_state.get(_key(table))
    return refused is not None and refused[1] == table.schema


def count(table: TableRecord) -> int:
    """How many edits of this table were refused in this session."""
    return int(st.session_state.get(f"refusals_{table.id}", 0))


def leave(table: TableRecord) -> None:
    """Let a refused edit go."""
    st.session_state.pop(_key(table), None)


def _key(table: TableRecord) -> str:
    return f"refused_{table.id}"


def _words(shown: pd.DataFrame, edited: pd.DataFrame, error: SchemaError) -> str:
    """Which cells were refused, what was written there, and what they hold all the same."""
    cells = []
    for name in LABELS:
        for row in shown.index[shown[name].ne(edited[name])]:
            old = shown.at[row, name]
            held = f"it holds “{plain(old)}” as before" if old != "" else "it is empty as before"
            cells.append(
                f"**{plain(shown.at[row, 'column'])} · {LABELS[name]}**: "
                f"“{plain(edited.at[row, name])}” was not taken, {held}."
            )
    return " ".join([*cells, plain(error)])
