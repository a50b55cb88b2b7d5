"""Lists of categories, however long: counts, search, merging the rare, what single people hold."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from core.proposing.rare import FEW_ROWS, falling, labels_from
from core.runs.records import TableRecord
from core.schema.column import Column, Kind
from core.services import tables
from pages.shared import widgets as shared
from pages.shared.language import say
from pages.shared.plain import plain
from pages.shared.workspace_store import store


def render(table: TableRecord, listed: Sequence[Column]) -> None:
    """Choose one of the columns that have a list, at least one, then see and change it."""
    name = st.selectbox(say("Column"), [c.name for c in listed], key=f"categories_of_{table.id}")
    column = table.schema[name]
    with shared.plain_errors():
        counts = _counts(table, name)
        st.caption(_summary(column, counts))
        _merge(table, column, counts)
        _labels(table, column, counts)
        _paste(table, column)


def _counts(table: TableRecord, name: str) -> pd.DataFrame:
    """The labels' counts, read from the rows once a session for each column that is looked at."""
    key = f"labels_{table.id}_{name}_{table.schema.person}"
    if key not in st.session_state:
        st.session_state[key] = tables.label_counts(store(), table, name)
    counts: pd.DataFrame = st.session_state[key]
    return counts


def _summary(column: Column, counts: pd.DataFrame) -> str:
    single = int((counts["people"] == 1).sum())
    named = set(column.categories or ()) - {column.other}
    merged = counts[~counts["label"].isin(named)]
    words = say(
        "The rows contain {n:,} categories; {listed:,} are listed.",
        n=len(counts),
        listed=len(named),
    )
    if len(merged) and column.other:
        rest = say(
            "{labels:,} categories in {rows:,} rows become {other}.",
            labels=len(merged),
            rows=int(merged["rows"].sum()),
            other=column.other,
        )
        words += f" {rest}"
    if single:
        words += " " + say("{n:,} categories occur for one person only.", n=single)
    return f"{plain(words)} " + say("Only you see these counts.")


def _merge(table: TableRecord, column: Column, counts: pd.DataFrame) -> None:
    """Merging below a number of rows, and what that would do."""
    most = int(counts["rows"].max()) if len(counts) else 1
    with st.container(horizontal=True, vertical_alignment="bottom"):
        fewer = st.number_input(
            say("Merge categories with fewer rows than"),
            1,
            most,
            min(FEW_ROWS, most),
            key=f"fewer_{table.id}_{column.name}",
            width=240,
            help=say(
                "Models learn rare categories poorly, and listing a category that only one person "
                "has makes it public."
            ),
        )
        key = f"merge_{table.id}_{column.name}"
        if st.button(say("Merge"), icon=":material/merge:", key=key):
            with shared.change():
                tables.merge_rare(store(), table, column.name, fewer)
        labels, rows = falling(counts, fewer)
        share = rows / table.n if table.n else 0.0
        st.markdown(
            say(
                "{labels:,} of {n:,} categories would become OTHER: {rows:,} rows ({share:.1%}).",
                labels=labels,
                n=len(counts),
                rows=rows,
                share=share,
            )
        )


def _labels(table: TableRecord, column: Column, counts: pd.DataFrame) -> None:
    """The labels with a tick each; a tick that is changed counts at once."""
    search = st.text_input(
        say("Search categories"),
        key=f"search_{table.id}_{column.name}",
        icon=":material/search:",
        placeholder=say("part of a category"),
    )
    shown = _grid(column, counts)
    if search:
        shown = shown[shown["label"].str.contains(search, case=False, regex=False)]
    if shown.empty:
        st.caption(say("No category contains this text."))
        return
    edited = st.data_editor(
        shown,
        key=f"labels_{table.id}_{column.name}_{search}_{abs(hash(column.model_dump_json()))}",
        hide_index=True,
        num_rows="fixed",
        height=min(38 + 35 * len(shown), 400),
        column_config=_headings(),
    )
    changed = edited["listed"] != shown["listed"]
    if changed.any():
        ticks = edited[changed]
        labels = labels_from(
            column,
            [str(label) for label in ticks.loc[ticks["listed"], "label"]],
            [str(label) for label in ticks.loc[~ticks["listed"], "label"]],
        )
        with shared.change():
            tables.change_list(store(), table, column.name, labels)


def _headings() -> dict[str, ColumnConfig]:
    return {
        "listed": st.column_config.CheckboxColumn(
            say("Listed"),
            width=70,
            help=say(
                "Listed categories are public and can appear in the synthetic table. All others "
                "become OTHER."
            ),
        ),
        "warning": st.column_config.TextColumn(say("Warning"), disabled=True, width=170),
        "label": st.column_config.TextColumn(say("Category"), disabled=True),
        "rows": st.column_config.NumberColumn(say("Rows"), disabled=True, width=90),
        "people": st.column_config.NumberColumn(say("People"), disabled=True, width=90),
    }


def _grid(column: Column, counts: pd.DataFrame) -> pd.DataFrame:
    """A row a label: those of the rows, then those that are listed and no row holds."""
    named = [label for label in column.categories or () if label != column.other]
    absent = [label for label in named if label not in set(counts["label"])]
    none = pd.DataFrame({"label": absent, "rows": 0, "people": 0})
    every = pd.concat([counts[counts["label"] != column.other], none], ignore_index=True)
    if column.kind is Kind.ORDERED:
        position = {label: at for at, label in enumerate(named)}
        every = every.iloc[
            every["label"].map(position).fillna(len(position)).argsort(kind="stable")
        ]
    warning = every["rows"].between(1, FEW_ROWS - 1).map({True: say("few rows"), False: ""})
    every.insert(0, "listed", every["label"].isin(named))
    every.insert(1, "warning", warning.mask(every["people"] == 1, say("one person only")))
    return every if (every["people"] != every["rows"]).any() else every.drop(columns="people")


def _paste(table: TableRecord, column: Column) -> None:
    with st.popover(say("Paste a list"), icon=":material/content_paste:"):
        text = st.text_area(
            say(
                "One category per line: for a list that is known without looking at the rows, or "
                "to change the order of an ordered list. Categories that you remove become OTHER."
            ),
            "\n".join(column.categories or ()),
            height=220,
            key=f"text_{table.id}_{column.name}",
        )
        if st.button(say("Save list")):
            with shared.change():
                tables.change_categories(store(), table, column.name, text)
