"""Tables: bring one in, confirm what its columns are, declare what may be known for free."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st

from core.figures.column_profile import profile_figure
from core.runs.storage.records import TableRecord
from core.services import tables as table_service
from core.table.grid import grid_of
from core.table.holdout import SHARES
from core.table.io.read import read_table
from core.table.profile import ColumnProfile
from core.table.sample import SAMPLE_NAME, SAMPLE_TARGET, fetch_adult, sample_table
from core.table.schema import Column, Kind
from pages.parts import domains, guard, routes, shared, tagging, uploads, whose

ENOUGH_TO_SPARE = 2_000  # rows from which a tenth is kept out unless the steward says otherwise


def render() -> None:
    """The page."""
    guard.require("steward")
    table = shared.chosen_table()
    if table is None:
        _choose()
    else:
        _confirm(table)


# -- bringing a table in ------------------------------------------------------------------------


def _choose() -> None:
    shared.header(
        "Tables",
        "Bring in a table with one row per person. It stays on this machine.",
    )
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.subheader("Try it now", anchor=False)
        st.write("A made-up table of 5,000 hospital stays with every kind of column.")
        if st.button(
            "Try the sample table", type="primary", icon=":material/play_arrow:", width="stretch"
        ):
            _bring_in(SAMPLE_NAME, "built-in sample", sample_table, SAMPLE_TARGET)
        if st.button(
            "UCI Adult from OpenML",
            icon=":material/cloud_download:",
            width="stretch",
            help="A census extract of 48,842 rows, downloaded from openml.org. Needs a network.",
        ):
            _bring_in("UCI Adult", "OpenML", fetch_adult, "income")
    with right:
        st.subheader("Upload your own", anchor=False)
        file = st.file_uploader(
            "CSV, TSV, Parquet or Excel; also as .gz, or .zip with one file inside",
            key=uploads.upload_key(),
        )
        if file is not None:
            _bring_in(
                file.name.rsplit("/", 1)[-1],
                f"upload of {file.name}",
                lambda: read_table(file, file.name).frame,
                None,
            )
    _stored()


def _bring_in(name: str, source: str, read: Callable[[], pd.DataFrame], target: str | None) -> None:
    """Read, infer, keep; then show the table. A refusal leaves the page as it was."""
    record = None
    with shared.plain_errors(), st.status(f"Bringing in {name} …") as status:
        status.write("Reading the file")
        try:
            frame = read()
        finally:
            uploads.free_uploads()
        status.write(f"{len(frame):,} rows, {frame.shape[1]} columns. Looking at each column")
        record = table_service.import_frame(shared.store(), frame, name=name, source=source)
        if target is not None and target in record.columns:
            record = table_service.change_target(shared.store(), record, target)
        if record.n >= ENOUGH_TO_SPARE:
            record = table_service.change_holdout(shared.store(), record, SHARES[1])
        status.update(label=f"{name} is in", state="complete")
    if record is not None:
        st.query_params["table"] = record.id
        st.rerun()


def _stored() -> None:
    tables = shared.store().tables()
    if not tables:
        return
    st.subheader("Your tables", anchor=False)
    for table in tables:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"**{table.name}**  \n{table.n:,} rows × {len(table.columns)} columns · "
                f"{table.source} · {table.created.astimezone():%d %b %Y %H:%M}"
            )
            if st.button("Open", key=f"open_{table.id}", icon=":material/arrow_forward:"):
                st.query_params["table"] = table.id
                st.rerun()
            with st.popover("Delete", icon=":material/delete:"):
                st.write(
                    "Deletes the rows and all runs made from them. Ledger entries stay, because "
                    "what was released cannot be taken back, and so does what these people are "
                    "recognised by."
                )
                if st.button("Delete for good", key=f"delete_{table.id}", type="primary"):
                    with shared.plain_errors():
                        shared.store().delete_table(table.id)
                        st.rerun()


# -- confirming its schema ----------------------------------------------------------------------


def _confirm(table: TableRecord) -> None:
    top = st.container(horizontal=True, vertical_alignment="bottom")
    with top:
        shared.header(
            table.name,
            f"{table.n:,} rows × {len(table.columns)} columns · {table.source}. "
            "Nothing has been trained or released by looking at this page.",
        )
        if st.button("All tables", icon=":material/arrow_back:"):
            st.query_params.clear()
            st.rerun()
    columns, tags, pictures, rows = st.tabs(
        [
            ":material/edit_note: Columns",
            ":material/visibility_off: Hidden distributions",
            ":material/bar_chart: Pictures",
            ":material/table_rows: Rows",
        ]
    )
    with columns:
        _columns(table)
    with tags:
        tagging.render(table)
    with pictures:
        _pictures(table)
    with rows:
        st.caption("The first rows, as they were read. Only you see them.")
        st.dataframe(pd.DataFrame(table.profile["preview"]), height=420)
    whose.render(table)
    _attest(table)


def _columns(table: TableRecord) -> None:
    """The editable grid, the target, and category lists."""
    names = [c.name for c in table.schema.columns if c.modelled]
    options = [None, *names]
    target = st.selectbox(
        "Target: the column others should predict (optional)",
        options,
        index=options.index(table.schema.target) if table.schema.target in options else 0,
        format_func=lambda name: "none" if name is None else name,
        help="The synthetic table keeps what the other columns say about the target best of all.",
    )
    if target != table.schema.target:
        with shared.plain_errors():
            table_service.change_target(shared.store(), table, target)
            st.rerun()
    _holdout(table)
    with shared.plain_errors():
        table = table_service.count_rare(shared.store(), table)
    grid = grid_of(table.schema, table_service.rare_words(table))
    edited = st.data_editor(
        grid,
        key=f"grid_{table.id}_{abs(hash(table.schema.model_dump_json()))}",
        hide_index=True,
        num_rows="fixed",
        column_config=_grid_config(),
        height=min(38 + 35 * len(grid), 600),
    )
    if not edited.equals(grid):
        with shared.plain_errors():
            table_service.change_grid(shared.store(), table, edited)
            st.rerun()
    _doubts(table)
    listed = [c for c in table.schema.columns if c.kind.listed and c.modelled]
    if listed:
        with st.expander("Edit a list of categories", icon=":material/list:"):
            _categories(table, listed)


def _holdout(table: TableRecord) -> None:
    """How many rows stay out of training, to judge the result by."""
    share = st.segmented_control(
        "Rows kept out of training, to judge the result by",
        SHARES,
        default=min(SHARES, key=lambda one: abs(one - table.schema.holdout)),
        format_func=lambda one: f"{one:.0%}" if one else "none",
        required=True,
        key=f"holdout_{table.id}",
        help="Chosen by their place in the file, never by what they hold. With them Review can "
        "say whether the synthetic rows are closer to the people learnt from than to strangers. "
        "A fifth is usual; small tables can spare less.",
    )
    if share is not None and share != table.schema.holdout:
        with shared.plain_errors():
            table_service.change_holdout(shared.store(), table, share)
            st.rerun()


def _grid_config() -> dict[str, object]:
    return {
        "column": st.column_config.TextColumn("Column", disabled=True, pinned=True),
        "kind": st.column_config.SelectboxColumn(
            "Kind",
            options=[kind.value for kind in Kind],
            required=True,
            help="Identifiers and text are replaced by made-up values and never learned.",
        ),
        "missing": st.column_config.CheckboxColumn("May be missing"),
        "from": st.column_config.TextColumn(
            "From", help="Lowest value that may be known.", width=110
        ),
        "to": st.column_config.TextColumn("To", help="Highest value that may be known.", width=110),
        "scale": st.column_config.SelectboxColumn(
            "Scale",
            options=["even", "heavy tail", "—"],
            width=105,
            help="Heavy tail: most values are small and a few are huge, as with money.",
        ),
        "values": st.column_config.TextColumn("Categories", disabled=True),
        "rare": st.column_config.TextColumn(
            "Of few rows",
            disabled=True,
            help="Listed values that fewer than ten rows hold. Keeping the column would publish "
            "that somebody in the table has each of them. Only you see these counts.",
        ),
        "keep": st.column_config.SelectboxColumn(
            "In the synthetic table",
            options=["keep", "leave out"],
            required=True,
            help="Keeping a column declares its bounds and category names public.",
        ),
        "origin": st.column_config.TextColumn(
            "Known how",
            disabled=True,
            help="Proposals are read from the rows and rounded outward; change one and it is set "
            "by you. The certificate says which.",
        ),
    }


def _doubts(table: TableRecord) -> None:
    domains.dangers(table)
    doubts = [(c.name, c.note) for c in table.schema.columns if c.note]
    if doubts:
        text = "\n".join(f"- **{name}**: {note}" for name, note in doubts)
        st.info(f"Worth a look:\n{text}", icon=":material/help:")


def _categories(table: TableRecord, listed: list[Column]) -> None:
    name = st.selectbox("Column", [c.name for c in listed], key=f"categories_of_{table.id}")
    column = table.schema[name]
    text = st.text_area(
        "One category a line. What you remove is merged into OTHER.",
        "\n".join(column.categories or ()),
        height=220,
        key=f"text_{table.id}_{name}",
    )
    if st.button("Keep this list"):
        with shared.plain_errors():
            table_service.change_categories(shared.store(), table, name, text)
            st.rerun()


def _pictures(table: TableRecord) -> None:
    st.caption("Each column as it is in the real table. Only you see these.")
    profiles = [ColumnProfile.model_validate(c) for c in table.profile["columns"]]
    shown = shared.paged(profiles)  # its buttons stand above the pictures
    places = st.columns(3)
    for place, profile in enumerate(shown):
        with places[place % 3], st.container(border=True):
            missing = f" · {profile.missing:.0%} missing" if profile.missing else ""
            st.markdown(f"**{profile.name}** :gray[{profile.kind.value}{missing}]")
            st.plotly_chart(
                profile_figure(profile.model_dump(mode="json")),
                key=f"profile_{table.id}_{profile.name}",
                alt=f"How the values of {profile.name} are spread in the real table.",
                config={"displayModeBar": False},
            )


def _attest(table: TableRecord) -> None:
    """The declaration that ε rests on, and the way to the plan."""
    with st.container(border=True):
        sure = st.checkbox(
            "I confirm that the bounds, category names and “may be missing” marks above may be "
            "public knowledge.",
            # what is declared later was not confirmed: each schema asks for a tick of its own
            key=f"attest_{table.id}_{abs(hash(table.schema.model_dump_json()))}",
            value=shared.store().attested(table.id),
            help="They are not protected by ε. The certificate lists them as its conditions.",
        )
        if st.button(
            "Plan a synthetic table",
            type="primary",
            icon=":material/arrow_forward:",
            disabled=not sure,
        ):
            with shared.plain_errors():
                table.schema.domain()
                shared.store().attest(table.id)
                routes.go("plan", table=table.id)
        if not sure:
            st.caption("Tick the box to go on.")


if __name__ == "__main__":
    routes.front_door()  # a server that has run no page yet runs this file by itself
