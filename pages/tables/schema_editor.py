"""What a table's columns are declared to be: target, rows kept out, the grid, category lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from core.encoding.holdout import SHARES
from core.runs.records import TableRecord
from core.schema.column import Column, Kind, SchemaColumn, SchemaError
from core.schema.schema import Schema
from core.services import tables
from core.services.schema_grid import grid_of
from pages.shared import widgets as shared
from pages.shared.language import keyed, number, said, say
from pages.shared.plain import plain
from pages.shared.workspace_store import store
from pages.tables import category_lists, remarks

FREE, OURS = ("from", "to", "absent", "codes"), ("kind", "missing", "scale", "keep")  # to edit
FIRST = ("column", "kind", "keep", "remark")  # columns of the grid; the rest by choice


def _headings(names: Sequence[str]) -> dict[str, ColumnConfig]:
    """How each column of the grid is called, explained and edited.

    Args:
      names: of the table's columns, which have to be read whole.
    """
    config = st.column_config
    width = min(max(120, 30 + 8 * max(map(len, names), default=0)), 320)  # px
    return _declared_headings() | {
        "column": config.TextColumn(say("Column"), disabled=True, pinned=True, width=width),
        "remark": config.TextColumn(
            say("Remark"), disabled=True, width=420, help=say("Double-click a cell to read it all.")
        ),
        "values": config.TextColumn(say("Categories"), disabled=True),
        "rare": config.TextColumn(
            say("Rare values"),
            disabled=True,
            help=say(
                "Listed values with fewer than ten rows. Declaring the list would publish that "
                "someone in the table has each of them. Only you see these counts."
            ),
        ),
        "origin": config.TextColumn(
            say("Origin"),
            disabled=True,
            help=say(
                "Proposed bounds are read from the rows and rounded outward. If you change one, it "
                "counts as set by you. The certificate states the origin."
            ),
        ),
        "absent": config.TextColumn(
            say("Missing value"),
            width=130,
            help=say(
                "How the file marks a missing value, such as ? or N/A. Leave it blank for an empty "
                "cell. The synthetic file does the same."
            ),
        ),
        "codes": config.TextColumn(
            say("Missing-value codes"),
            width=150,
            help=say(
                "Other values that mean “missing” in numbers and dates, separated by commas, such "
                "as -99, n/a. Each one is learned separately and occurs as often as in the real "
                "table."
            ),
        ),
        "written": config.TextColumn(
            say("Example"),
            disabled=True,
            help=say(
                "A made-up value written the way the file writes this column. The synthetic file "
                "does the same."
            ),
        ),
    }


def _declared_headings() -> dict[str, ColumnConfig]:
    """The same for what is declared public."""
    config = st.column_config
    return {
        "kind": config.SelectboxColumn(
            say("Kind"),
            options=[kind.value for kind in Kind],
            format_func=said,
            required=True,
            width=100,
            help=say("Identifiers and free text are replaced by made-up values and never learned."),
        ),
        "missing": config.CheckboxColumn(say("May be missing")),
        "from": config.TextColumn(
            say("From"), help=say("Lowest value that may become public."), width=96
        ),
        "to": config.TextColumn(
            say("To"), help=say("Highest value that may become public."), width=96
        ),
        "scale": config.SelectboxColumn(
            say("Scale"),
            options=["even", "heavy tail", "—"],
            format_func=said,
            width=105,
            help=say(
                "Heavy tail: most values are small and a few are very large, such as amounts of "
                "money."
            ),
        ),
        "keep": config.SelectboxColumn(
            say("In the synthetic table"),
            options=["learn", "learned earlier", "declare", "make up", "leave out"],
            format_func=said,
            required=True,
            help=say(
                "Learn: the run finds bounds and categories itself, with noise, for part of ε. "
                "Learned earlier: use what an earlier run learned. Declare: use those shown here; "
                "ε does not protect them. Make up: nothing of the column is learned."
            ),
        ),
    }


def render(table: TableRecord) -> None:
    """The editable grid, the target, and category lists."""
    names = [c.name for c in table.schema.columns if c.modelled]
    options = [None, *names]
    target = st.selectbox(
        say("Target column to predict (optional)"),
        options,
        index=options.index(table.schema.target) if table.schema.target in options else 0,
        format_func=lambda name: say("none") if name is None else name,
        help=say("The synthetic table preserves best how other columns predict this one."),
    )
    if target != table.schema.target:
        with shared.change():
            tables.change_target(store(), table, target)
    _holdout(table)
    found = tables.remarks(table)
    remarks.decisions(found)
    grid = grid_of(table.schema, tables.rare_words(table), said)
    beside = remarks.beside(found)
    if refused(table):
        edit: _Refused = st.session_state[_refused_key(table)]
        beside |= {name: f"⚠ “{written}”: {said(edit.error)}" for name, written in edit.cells}
    grid.insert(3, "remark", [beside.get(name, "") for name in grid["column"]])
    unused = {name: None for name in ("remark", "rare") if not grid[name].any()}
    whole = st.toggle(
        say("All settings of each column"),
        help=say("Bounds, categories, missing values and how values are written."),
        key=f"whole_grid_{table.id}",
    )
    shown = None if whole else FIRST
    edited = edited_grid(table, grid, "grid", {**_headings(list(grid["column"])), **unused}, shown)
    if edited is not None:
        _keep_grid(table, grid, edited)
    _show_refusal(table)
    remarks.checks_and_notes(found)
    listed = [c for c in table.schema.columns if c.kind.listed and c.modelled]
    if listed:
        with st.expander(say("Edit a category list"), icon=":material/list:"):
            category_lists.render(table, listed)
    made_up = [c for c in table.schema.columns if c.kind.surrogate]
    codes = [c for c in listed if c.kind is Kind.CATEGORY]
    if made_up or codes:
        with st.expander(say("Format of made-up values and codes"), icon=":material/badge:"):
            _patterns(table, [*made_up, *codes])


def _patterns(table: TableRecord, made_up: Sequence[Column]) -> None:
    name = st.selectbox(say("Column"), [c.name for c in made_up], key=f"pattern_of_{table.id}")
    column = table.schema[name]
    pattern = st.text_input(
        say(
            "Pattern: # stands for a digit, @ for a capital letter, a for a small letter, * for a "
            "digit or capital letter; anything else stands for itself. In a list of codes, | ends "
            "a part that means something by itself, as in @|##|.# for E11.9. If empty, made-up "
            "values are the column name and a number."
        ),
        column.pattern or "",
        placeholder=say("for example P-######"),
        key=f"pattern_{table.id}_{name}",
    )
    if st.button(say("Save pattern")):
        with shared.change():
            tables.change_pattern(store(), table, name, pattern)


def _holdout(table: TableRecord) -> None:
    """How many rows stay out of training, to judge the result by."""
    share = st.segmented_control(
        say("Rows kept out of training to evaluate the result"),
        SHARES,
        default=min(SHARES, key=lambda share: abs(share - table.schema.holdout)),
        format_func=lambda share: number(f"{share:.0%}") if share else say("none"),
        required=True,
        # an answer that another tab changed is not given again by this one
        key=keyed(f"holdout_{table.id}_{table.schema.holdout}"),
        help=say(
            "Chosen by their position in the file, not by their content. They let Review check "
            "whether the synthetic rows are closer to the people used for training than to "
            "strangers. A fifth is usual; small tables may need all their rows."
        ),
    )
    if share is not None and share != table.schema.holdout:
        with shared.change():
            tables.change_holdout(store(), table, share)


def schema_key(name: str, table: TableRecord) -> str:
    """A widget's key that is another for each schema, so that no answer outlives its question."""
    key = f"{name}_{table.id}_{abs(hash(table.schema.model_dump_json()))}"
    again = _refusals(table)  # a grid whose edit was refused begins anew
    return f"{key}_{again}" if again else key


def edited_grid(
    table: TableRecord,
    frame: pd.DataFrame,
    name: str,
    columns: Mapping[str, ColumnConfig | None],
    shown: Sequence[str] | None = None,
) -> pd.DataFrame | None:
    """A grid to edit, with a row for each column of the table.

    Args:
      name: of the grid, for its key.
      columns: how each column of the grid is edited; None hides one.
      shown: the columns in sight, in order; None for all.

    Returns:
      The frame as it was edited, None where nothing was changed.
    """
    edited = st.data_editor(
        frame,
        key=schema_key(name, table),
        hide_index=True,
        num_rows="fixed",
        placeholder="",
        column_config=columns,
        column_order=shown,
        height=min(38 + 35 * len(frame), 738),
    )
    return None if edited.equals(frame) else edited


# -- edits that were refused --------------------------------------------------------------------


@dataclass(frozen=True)
class _Refused:
    """An edit that was refused: its cells as (column, what was written), and why."""

    cells: tuple[tuple[str, str], ...]
    error: str
    schema: Schema


def _keep_grid(table: TableRecord, shown: pd.DataFrame, edited: pd.DataFrame) -> None:
    """Keep an edited grid, or what was refused of it; then the page anew.

    Args:
      edited: the grid as somebody left it.
    """
    earlier: dict[tuple[str, Kind], SchemaColumn]
    earlier = st.session_state.setdefault(f"earlier_{table.id}", {})
    with shared.change():
        try:
            tables.change_grid(store(), table, edited, earlier)
        except SchemaError as error:
            cells = tuple(_cells(shown, edited))
            st.session_state[_refused_key(table)] = _Refused(cells, str(error), table.schema)
            st.session_state[f"refusals_{table.id}"] = _refusals(table) + 1
        else:
            _discard(table)
            earlier |= {(column.name, column.kind): column for column in table.schema.columns}


def _show_refusal(table: TableRecord) -> None:
    """The edit that was refused last, until another one is kept or it is let go."""
    if not refused(table):
        return
    edit: _Refused = st.session_state[_refused_key(table)]
    cells = [f"**{plain(name)}**: “{plain(written)}”." for name, written in edit.cells]
    st.error(" ".join([*cells, plain(said(edit.error))]), icon=":material/error:")
    st.button(say("Discard the change"), key=f"leave_{table.id}", on_click=_discard, args=(table,))


def refused(table: TableRecord) -> bool:
    """Whether an edit of this table, as it is now, was refused and not dealt with."""
    edit: _Refused | None = st.session_state.get(_refused_key(table))
    return edit is not None and edit.schema == table.schema


def _refusals(table: TableRecord) -> int:
    """How many edits of this table were refused in this session."""
    return int(st.session_state.get(f"refusals_{table.id}", 0))


def _discard(table: TableRecord) -> None:
    """Let a refused edit go."""
    st.session_state.pop(_refused_key(table), None)


def _refused_key(table: TableRecord) -> str:
    return f"refused_{table.id}"


def _cells(shown: pd.DataFrame, edited: pd.DataFrame) -> Iterator[tuple[str, str]]:
    for name in (*FREE, *OURS):
        for row in shown.index[shown[name].ne(edited[name])]:
            written = str(edited.at[row, name])
            yield str(shown.at[row, "column"]), said(written) if name in OURS else written
