"""Tags (α-LMDP): which columns' distributions must not be revealed, in groups, with pictures."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.figures.marginal_shift import shift_figure
from core.runs.storage.records import TableRecord
from core.services import tables
from core.table.profile import ColumnProfile
from pages.parts import schema_editor, shared
from pages.parts.plain import plain

GROUPS = ("", "group 1", "group 2", "group 3", "group 4")
EXPLAINED = (
    "Tag columns whose **distribution** is a secret of the house: the ages of your customers, the "
    "markets you trade in. Records of the synthetic table stay believable one by one, and how the "
    "other columns depend on tagged ones is kept, but the tagged columns are spread another way "
    "than in your table, and tests must be able to tell."
)
NOT_PEOPLE = (
    "This does not protect people. It hides what is true of the whole table; who is in it is "
    "protected by ε alone."
)


def render(table: TableRecord) -> None:
    """The tab."""
    st.markdown(EXPLAINED)
    st.warning(NOT_PEOPLE, icon=":material/info:")
    left, right = st.columns([2, 3], gap="large")
    with left:
        _grid(table)
    with right:
        _pictures(table)


def _grid(table: TableRecord) -> None:
    groups = {name: group for group, names in table.schema.sensitive.items() for name in names}
    columns = [column.name for column in table.schema.columns if column.modelled]
    known = [*GROUPS, *sorted(set(groups.values()) - set(GROUPS))]
    frame = pd.DataFrame({"column": columns, "group": [groups.get(name, "") for name in columns]})
    config = {
        "column": st.column_config.TextColumn("Column", disabled=True),
        "group": st.column_config.SelectboxColumn(
            "Hide its distribution in",
            options=known,
            help="Columns of one group are hidden together: not even how they go together is "
            "kept. Groups are hidden, and certified, each by itself.",
        ),
    }
    edited = schema_editor.edited_grid(table, frame, "tags", config)
    if edited is not None:
        with shared.change():
            tags = {row["column"]: row["group"] or "" for row in edited.to_dict("records")}
            tables.change_groups(shared.store(), table, tags)


def _pictures(table: TableRecord) -> None:
    if not table.schema.sensitive:
        st.caption(
            "Nothing is tagged: the synthetic table will follow every column's distribution as "
            "closely as privacy allows."
        )
        return
    st.caption(
        "Blue: the real column, which a synthetic table would reveal without a tag. Orange, dashed "
        "or hatched: an example of a shift. The real one is random and kept secret on this machine."
    )
    profiles = {c["name"]: ColumnProfile.model_validate(c) for c in table.profile["columns"]}
    for group, names in table.schema.sensitive.items():
        st.markdown(f"**{plain(group)}** :gray[{len(names)} column{'s' if len(names) > 1 else ''}]")
        for place, name in shared.tiles(names, 2, border=True):
            with place:
                st.markdown(plain(name))
                shared.picture(
                    shift_figure(profiles[name].model_dump(mode="json")),
                    key=f"shift_{table.id}_{name}",
                    alt=f"What would be revealed of {name}, and an example of a shifted {name}.",
                )
