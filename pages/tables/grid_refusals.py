"""Edits of the grid: kept, or refused by name while the grid shows what still holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from core.runs.records import TableRecord
from core.schema.schema import Kind, Schema, SchemaColumn, SchemaError
from core.services import tables
from pages.shared import widgets as shared
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain

LABELS = {
    "kind": to_say("Kind"),
    "missing": to_say("May be missing"),
    "absent": to_say("Written as"),
    "codes": to_say("Also missing"),
    "from": to_say("From"),
    "to": to_say("To"),
    "scale": to_say("Scale"),
    "keep": to_say("In the synthetic table"),
}
OURS = ("kind", "missing", "scale", "keep")  # cells that hold the product's words


@dataclass(frozen=True)
class _Refused:
    """An edit that was refused: its cells as (column, heading, written, held), and why."""

    cells: tuple[tuple[str, str, str, str], ...]
    error: str
    schema: Schema


def keep(table: TableRecord, shown: pd.DataFrame, edited: pd.DataFrame) -> None:
    """Keep an edited grid, or what was refused of it; then the page anew.

    Args:
      edited: the grid as somebody left it.
    """
    earlier: dict[tuple[str, Kind], SchemaColumn]
    earlier = st.session_state.setdefault(f"earlier_{table.id}", {})
    with shared.change():
        try:
            tables.change_grid(shared.store(), table, edited, earlier)
        except SchemaError as error:
            cells = tuple(_cells(shown, edited))
            st.session_state[_key(table)] = _Refused(cells, str(error), table.schema)
            st.session_state[f"refusals_{table.id}"] = count(table) + 1
        else:
            leave(table)
            earlier |= {(column.name, column.kind): column for column in table.schema.columns}


def show(table: TableRecord) -> None:
    """The edit that was refused last, until another one is kept or it is let go."""
    if not standing(table):
        return
    refused: _Refused = st.session_state[_key(table)]
    st.error(_words(refused), icon=":material/error:")
    st.button(say("Leave it as it was"), key=f"leave_{table.id}", on_click=leave, args=(table,))


def standing(table: TableRecord) -> bool:
    """Whether an edit of this table, as it is now, was refused and not dealt with."""
    refused: _Refused | None = st.session_state.get(_key(table))
    return refused is not None and refused.schema == table.schema


def count(table: TableRecord) -> int:
    """How many edits of this table were refused in this session."""
    return int(st.session_state.get(f"refusals_{table.id}", 0))


def leave(table: TableRecord) -> None:
    """Let a refused edit go."""
    st.session_state.pop(_key(table), None)


def _key(table: TableRecord) -> str:
    return f"refused_{table.id}"


def _cells(shown: pd.DataFrame, edited: pd.DataFrame) -> Iterator[tuple[str, str, str, str]]:
    for name in LABELS:
        for row in shown.index[shown[name].ne(edited[name])]:
            held, written = str(shown.at[row, name]), str(edited.at[row, name])
            yield str(shown.at[row, "column"]), name, written, held


def _words(refused: _Refused) -> str:
    """Which cells were refused, what was written there, and what they hold all the same."""
    sentences = [_sentence(*cell) for cell in refused.cells]
    return " ".join([*sentences, plain(said(refused.error))])


def _sentence(column: str, name: str, written: str, held: str) -> str:
    if name in OURS:
        written, held = said(written), said(held)
    words = {
        "column": plain(column),
        "heading": said(LABELS[name]),
        "written": plain(written),
        "held": plain(held),
    }
    if held:
        return say(
            "**{column} · {heading}**: “{written}” was not taken, it holds “{held}” as before.",
            **words,
        )
    return say(
        "**{column} · {heading}**: “{written}” was not taken, it is empty as before.", **words
    )
