"""Tags (α-LMDP): which columns' distributions must not be revealed, in groups, with pictures."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.figures.marginal_shift import shift_figure
from core.proposing.profile import ColumnProfile
from core.runs.records import TableRecord
from core.services import tables
from pages.shared import widgets as shared
from pages.shared.language import said, say, say_n, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store
from pages.tables import schema_editor

GROUPS = (to_say("group 1"), to_say("group 2"), to_say("group 3"), to_say("group 4"))
EXPLAINED = to_say(
    "Tag columns whose **distribution** is confidential, such as your customers' ages or the "
    "markets you trade in. Each synthetic record stays plausible, and the way other columns depend "
    "on tagged ones is preserved. But the tagged columns are distributed differently from your "
    "table, and statistical tests must be able to detect it."
)
NOT_PEOPLE = to_say(
    "This does not protect individuals. It hides a property of the whole table; only ε protects "
    "the people in it."
)


def group_name(group: str) -> str:
    """A group as it is shown; one from a schema's file has a name of its own."""
    return said(group) if group in GROUPS else group


def render(table: TableRecord) -> None:
    """The tab."""
    st.markdown(said(EXPLAINED))
    st.warning(said(NOT_PEOPLE), icon=":material/info:")
    left, right = st.columns([2, 3], gap="large")
    with left:
        _grid(table)
    with right:
        _pictures(table)


def _grid(table: TableRecord) -> None:
    groups = {name: group for group, names in table.schema.sensitive.items() for name in names}
    columns = [column.name for column in table.schema.columns if column.modelled]
    known = ["", *GROUPS, *sorted(set(groups.values()) - set(GROUPS))]
    frame = pd.DataFrame(
        {
            "column": columns,
            "hidden": [name in groups for name in columns],
            "group": [groups.get(name, "") for name in columns],
        }
    )
    config = {
        "column": st.column_config.TextColumn(say("Column"), disabled=True),
        "hidden": st.column_config.CheckboxColumn(say("Hide its distribution")),
        "group": st.column_config.SelectboxColumn(
            say("Together with"),
            options=known,
            format_func=lambda group: group_name(str(group)),
            help=say(
                "Columns in the same group are hidden together, including how they relate to each "
                "other. Each group is hidden and certified separately."
            ),
        ),
    }
    edited = schema_editor.edited_grid(table, frame, "tags", config)
    if edited is not None:
        with shared.change():
            tags = {
                name: group or GROUPS[0] if hidden or (group and name not in groups) else ""
                for name, hidden, group in edited.itertuples(index=False)
            }
            tables.change_groups(store(), table, tags)


def _pictures(table: TableRecord) -> None:
    if not table.schema.sensitive:
        st.caption(
            say(
                "No columns are tagged: the synthetic table will follow the distribution of every "
                "column as closely as privacy allows."
            )
        )
        return
    st.caption(
        say(
            "Blue: the real column, which a synthetic table would reveal without a tag. Orange, "
            "dashed or hatched: an example of a shift. The actual shift is random and never leaves "
            "this machine."
        )
    )
    profiles = {c["name"]: ColumnProfile.model_validate(c) for c in table.profile["columns"]}
    for group, names in table.schema.sensitive.items():
        columns = say_n(len(names), "{n:d} column", "{n:d} columns")
        st.markdown(f"**{plain(group_name(group))}** :gray[{columns}]")
        for tile, name in shared.tiles(names, 2, border=True):
            with tile:
                st.markdown(plain(name))
                shared.picture(
                    shift_figure(profiles[name].model_dump(mode="json")),
                    key=f"shift_{table.id}_{name}",
                    alt=say(
                        "What would be revealed of {column}, and an example of a shifted {column}.",
                        column=name,
                    ),
                )
