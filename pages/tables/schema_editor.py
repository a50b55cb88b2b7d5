"""What a table's columns are declared to be: target, rows kept out, the grid, category lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from core.encoding.holdout import SHARES
from core.runs.records import TableRecord
from core.schema.schema import Column, Kind
from core.services import tables
from core.services.schema_grid import grid_of
from pages.shared import widgets as shared
from pages.shared.language import number, said, say
from pages.shared.plain import plain
from pages.tables import category_lists, declared_domains, grid_refusals


def _headings() -> dict[str, ColumnConfig]:
    """How each column of the grid is called, explained and edited."""
    config = st.column_config
    return _declared_headings() | {
        "column": config.TextColumn(say("Column"), disabled=True, pinned=True),
        "values": config.TextColumn(say("Categories"), disabled=True),
        "rare": config.TextColumn(
            say("Of few rows"),
            disabled=True,
            help=say(
                "Listed values that fewer than ten rows hold. Keeping the column would publish "
                "that somebody in the table has each of them. Only you see these counts."
            ),
        ),
        "origin": config.TextColumn(
            say("Known how"),
            disabled=True,
            help=say(
                "Proposals are read from the rows and rounded outward; change one and it is set "
                "by you. The certificate says which."
            ),
        ),
        "absent": config.TextColumn(
            say("Written as"),
            width=130,
            help=say(
                "What the file has where there is no value, such as ? or N/A; nothing means an "
                "empty cell. The synthetic file writes the same."
            ),
        ),
        "codes": config.TextColumn(
            say("Also missing"),
            width=125,
            help=say(
                "Other values that mean 'missing' in numbers and dates, with commas between them, "
                "such as -99, n/a. Each is learned by itself and comes back as it is, in its share."
            ),
        ),
        "written": config.TextColumn(
            say("Values look like"),
            disabled=True,
            help=say(
                "A made-up value in the way the file writes this column. The synthetic file does "
                "too."
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
            help=say("Identifiers and text are replaced by made-up values and never learned."),
        ),
        "missing": config.CheckboxColumn(say("May be missing")),
        "from": config.TextColumn(
            say("From"), help=say("Lowest value that may be known."), width=96
        ),
        "to": config.TextColumn(say("To"), help=say("Highest value that may be known."), width=96),
        "scale": config.SelectboxColumn(
            say("Scale"),
            options=["even", "heavy tail", "—"],
            format_func=said,
            width=105,
            help=say("Heavy tail: most values are small and a few are huge, as with money."),
        ),
        "keep": config.SelectboxColumn(
            say("In the synthetic table"),
            options=["keep", "leave out", "buy"],
            format_func=said,
            required=True,
            help=say(
                "Keep: with bounds and labels as they stand here, declared by you or bought. Buy: "
                "they are read again with noise, for a part of the budget."
            ),
        ),
    }


def render(table: TableRecord) -> None:
    """The editable grid, the target, and category lists."""
    names = [c.name for c in table.schema.columns if c.modelled]
    options = [None, *names]
    target = st.selectbox(
        say("Target: the column others should predict (optional)"),
        options,
        index=options.index(table.schema.target) if table.schema.target in options else 0,
        format_func=lambda name: say("none") if name is None else name,
        help=say(
            "The synthetic table keeps what the other columns say about the target best of all."
        ),
    )
    if target != table.schema.target:
        with shared.change():
            tables.change_target(shared.store(), table, target)
    _holdout(table)
    grid = grid_of(table.schema, tables.rare_words(table))
    for name in ("values", "rare", "origin"):
        grid[name] = [said(words) for words in grid[name]]
    edited = edited_grid(table, grid, "grid", _headings())
    if edited is not None:
        grid_refusals.keep(table, grid, edited)
    grid_refusals.show(table)
    _doubts(table)
    listed = [c for c in table.schema.columns if c.kind.listed and c.modelled]
    if listed:
        with st.expander(say("Edit a list of categories"), icon=":material/list:"):
            category_lists.render(table, listed)
    made_up = [c for c in table.schema.columns if c.kind.surrogate]
    if made_up:
        with st.expander(say("What made-up values look like"), icon=":material/badge:"):
            _patterns(table, made_up)


def _patterns(table: TableRecord, made_up: Sequence[Column]) -> None:
    name = st.selectbox(say("Column"), [c.name for c in made_up], key=f"pattern_of_{table.id}")
    column = table.schema[name]
    pattern = st.text_input(
        say(
            "Pattern: # is a digit, @ a capital, a a small letter, * a digit or capital; anything "
            "else stands for itself. Empty: the column's name and a number."
        ),
        column.pattern or "",
        placeholder=say("for example P-######"),
        key=f"pattern_{table.id}_{name}",
    )
    if st.button(say("Keep this pattern")):
        with shared.change():
            tables.change_pattern(shared.store(), table, name, pattern)


def _holdout(table: TableRecord) -> None:
    """How many rows stay out of training, to judge the result by."""
    share = st.segmented_control(
        say("Rows kept out of training, to judge the result by"),
        SHARES,
        default=min(SHARES, key=lambda share: abs(share - table.schema.holdout)),
        format_func=lambda share: number(f"{share:.0%}") if share else say("none"),
        required=True,
        # an answer that another tab changed is not given again by this one
        key=f"holdout_{table.id}_{table.schema.holdout}",
        help=say(
            "Chosen by their place in the file, never by what they hold. With them Review can "
            "say whether the synthetic rows are closer to the people learnt from than to "
            "strangers. A fifth is usual; small tables can spare less."
        ),
    )
    if share is not None and share != table.schema.holdout:
        with shared.change():
            tables.change_holdout(shared.store(), table, share)


def _doubts(table: TableRecord) -> None:
    declared_domains.dangers(table)
    about = [*tables.misfit_doubts(table).items()]
    about += [(c.name, c.note) for c in table.schema.columns if c.note]
    lines = [f"- {plain(said(sentence))}" for sentence in tables.reading_doubts(table)]
    lines += [f"- **{plain(name)}**: {plain(said(note))}" for name, note in about]
    if lines:
        text = "\n".join([say("Worth a look:"), *lines])
        st.info(text, icon=":material/help:")


def schema_key(name: str, table: TableRecord) -> str:
    """A widget's key that is another for each schema, so that no answer outlives its question."""
    key = f"{name}_{table.id}_{abs(hash(table.schema.model_dump_json()))}"
    again = grid_refusals.count(table)  # a grid whose edit was refused begins anew
    return f"{key}_{again}" if again else key


def edited_grid(
    table: TableRecord, frame: pd.DataFrame, name: str, columns: Mapping[str, ColumnConfig]
) -> pd.DataFrame | None:
    """A grid to edit, with a row for each column of the table.

    Args:
      name: of the grid, for its key.
      columns: how each column of the grid is edited.

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
        height=min(38 + 35 * len(frame), 600),
    )
    return None if edited.equals(frame) else edited
