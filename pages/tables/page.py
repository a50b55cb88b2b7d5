"""Tables: bring one in, confirm what its columns are, declare what may be known for free."""

from __future__ import annotations

import os
from collections.abc import Callable

import pandas as pd
import streamlit as st
from streamlit.elements.lib.mutable_status_container import StatusContainer
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.encoding.holdout import SHARES
from core.figures.column_profile import profile_figure
from core.message import plural
from core.proposing.profile import ColumnProfile
from core.runs.records import TableRecord
from core.schema.form import FileForm
from core.services import imports
from core.services import tables as table_service
from core.services.sample_tables import SAMPLE_NAME, SAMPLE_TARGET, fetch_adult, sample_table
from pages.server import guard, uploads
from pages.shared import visible
from pages.shared import widgets as shared
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store
from pages.tables import (
    account_choice,
    declared_rules,
    domain_source,
    file_format,
    hidden_columns,
    linking,
    open_address,
    person_settings,
    schema_editor,
    schema_exchange,
    table_access,
)

TABS = {
    "columns": to_say(":material/edit_note: Columns"),
    "people": to_say(":material/groups: People and rules"),
    "tags": to_say(":material/visibility_off: Hidden distributions"),
    "pictures": to_say(":material/bar_chart: Pictures"),
    "rows": to_say(":material/table_rows: Rows"),
}
BUILT_IN, UPLOAD = to_say("built-in sample"), "upload of "  # where tables come from, as stored
# where any of these is set, rows or what is counted of them lie on other machines too
ELSEWHERE = ("FACSIMILE_STORAGE", "FACSIMILE_DATABASE", "FACSIMILE_LAUNCHER")
REFUSED = "refused_upload"  # in the session: the uploaded file that could not be read
Take = Callable[[imports.Progress], TableRecord]
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
    if any(os.environ.get(name) for name in ELSEWHERE):
        kept = say("It stays in the storage and on the machines that this server is set up with.")
    else:
        kept = say("It stays on this machine.")
    bring = say(
        "Add a table with one or more rows per person, or two: one of people and one of their rows."
    )
    shared.header(say("Tables"), f"{bring} {kept}")
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.subheader(say("Try it now"), anchor=False)
        st.write(say("A fictitious table of 5,000 hospital stays with every type of column."))
        if st.button(
            say("Try the sample table"),
            type="primary",
            icon=":material/play_arrow:",
            width="stretch",
        ):
            _bring_in_made(SAMPLE_NAME, BUILT_IN, sample_table, SAMPLE_TARGET)
        if st.button(
            say("UCI Adult from OpenML"),
            icon=":material/cloud_download:",
            width="stretch",
            help=say(
                "Part of a census with 48,842 rows, downloaded from openml.org. Needs an internet "
                "connection."
            ),
        ):
            _bring_in_made("UCI Adult", "OpenML", fetch_adult, "income")
    with right:
        st.subheader(say("Upload your own table"), anchor=False)
        label = say("CSV, TSV, Parquet or Excel, also as .gz or as .zip with one file inside")
        file = st.file_uploader(label, key=uploads.upload_key())
        form = file_format.choose()
        if file is not None:
            _uploaded(file, form)
        asked = open_address.render()
        if asked is not None:
            _bring_in_address(asked, form)
    _stored()


def _bring_in(label: str, take: Take, target: str | None = None) -> None:
    """Keep a table and show it. A refusal leaves the page as it was.

    Args:
      take: keeps the table; what it is given hears how many rows were read.
      target: the column that others should predict.
    """
    with shared.plain_errors(), st.status(label) as status:

        def progress(rows: int) -> None:
            status.update(label=f"{label} · {say('{n:,} rows read', n=rows)}")

        try:
            record = take(progress)
        except Exception:
            status.update(label=say("Nothing was imported."))
            raise
        uploads.free_uploads()
        _welcome(record, target, status)


def _bring_in_made(name: str, source: str, make: Callable[[], pd.DataFrame], target: str) -> None:
    """Keep a table that is made or fetched here."""

    def take(progress: imports.Progress) -> TableRecord:
        frame = make()
        progress(len(frame))
        return imports.import_frame(store(), frame, name=name, source=source, owner=guard.address())

    _bring_in(say("Importing {name} …", name=plain(name)), take, target)


def _uploaded(file: UploadedFile, form: FileForm) -> None:
    """Keep what was uploaded; what was refused waits until it is tried again or removed."""
    if st.session_state.get(REFUSED) != file.file_id:
        _bring_in_file(file, form)  # leaves the page unless the file is refused
        st.session_state[REFUSED] = file.file_id
    words = say("Try {file} again", file=plain(file.name))
    again = st.session_state.pop
    st.button(words, icon=":material/refresh:", on_click=again, args=(REFUSED, None))


def _bring_in_file(file: UploadedFile, form: FileForm) -> None:
    """Read what was uploaded in a process of its own, and keep it."""
    name = file.name.rsplit("/", 1)[-1]
    _bring_in(
        say("Importing {name} …", name=plain(name)),
        lambda progress: imports.import_file(
            store(),
            file,
            name=name,
            source=f"{UPLOAD}{file.name}",
            form=form,
            owner=guard.address(),
            progress=progress,
        ),
    )


def _bring_in_address(asked: open_address.EnteredAddress, form: FileForm) -> None:
    """Keep what an address holds, read in a process of its own."""
    _bring_in(
        say("Opening the table …"),
        lambda progress: imports.import_address(
            store(),
            asked.address,
            query=asked.query,
            password=asked.password,
            signed_in=guard.configured(),
            form=form,
            owner=guard.address(),
            progress=progress,
        ),
    )


def _welcome(record: TableRecord, target: str | None, status: StatusContainer) -> None:
    """A table that was just brought in, with a target and records to spare."""
    if target is not None and target in record.columns:
        record = table_service.change_target(store(), record, target)
    if record.n >= ENOUGH_TO_SPARE:
        table_service.change_holdout(store(), record, SHARES[1])
    status.update(label=say("{name} was imported", name=plain(record.name)), state="complete")
    _open(record)


def _open(table: TableRecord) -> None:
    """Show a table by its address."""
    st.query_params["table"] = table.id
    st.rerun()


def _source(table: TableRecord) -> str:
    """Where a table came from; a file's name is somebody's own."""
    if table.source.startswith(UPLOAD):
        return say("upload of {file}", file=table.source.removeprefix(UPLOAD))
    return said(table.source) if table.source == BUILT_IN else table.source


def _size(table: TableRecord) -> str:
    """How many rows and columns a table has."""
    return said(
        plural(
            len(table.columns),
            "{rows:,} rows × 1 column",
            "{rows:,} rows × {n} columns",
            rows=table.n,
        )
    )


def _stored() -> None:
    tables = visible.tables()
    if not tables:
        return
    st.subheader(say("Your tables"), anchor=False)
    for table in tables:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(
                say(
                    "**{name}**  \n{size} · {source} · {when}",
                    name=plain(table.name),
                    size=_size(table),
                    source=plain(_source(table)),
                    when=shared.clock(table.created),
                )
            )
            st.space("stretch")
            if st.button(say("Open"), key=f"open_{table.id}", icon=":material/arrow_forward:"):
                _open(table)
            if st.button(say("Delete …"), key=f"ask_{table.id}", icon=":material/delete:"):
                st.dialog(say("Delete a table"))(_ask_deletion)(table.id)


@shared.plain_errors()
def _ask_deletion(table_id: str) -> None:
    """Ask about one table, by name; its answer deletes that table and no other."""
    table = visible.current_table(table_id, "steward")
    st.markdown(say("Delete **{table}** permanently?", table=plain(table.name)))
    st.write(
        say(
            "This deletes the rows and all runs made from them. Ledger entries remain, because "
            "what was released cannot be taken back; so does the information that recognises these "
            "people in other tables."
        )
    )
    if st.button(say("Delete permanently"), key=f"delete_{table_id}", type="primary"):
        with shared.change():
            store().delete_table(table_id)


# -- confirming its schema ----------------------------------------------------------------------


def _confirm(table: TableRecord) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width="stretch"):
            shared.header(
                table.name,
                say(
                    "{size} · {source}. Viewing this page releases nothing.",
                    size=_size(table),
                    source=_source(table),
                ),
            )
            st.caption(f":material/receipt_long: {shared.spending_sentences(table.account_id)}")
            file_format.show(table)
            linking.unit(table)
        if st.button(say("All tables"), icon=":material/arrow_back:"):
            del st.query_params["table"]
            st.rerun()
        table_access.render(table)
    schema_exchange.last_time(table)
    linking.propose(table, _bring_in)
    columns, people, tags, pictures, rows = st.tabs(
        [said(label) for label in TABS.values()],
        key="tab",
        bind="query-params",  # a refresh keeps it; pictures are drawn once their tab is open
    )
    with columns:
        schema_editor.render(table)
        schema_exchange.files(table)
    with people:
        person_settings.render(table, _bring_in)
        st.divider()
        declared_rules.render(table)
    with tags:
        if tags.open:
            hidden_columns.render(table)
    with pictures:
        if pictures.open:
            _pictures(table)
    with rows:
        st.caption(say("The first rows as they were read. Only you see them."))
        st.dataframe(pd.DataFrame(table.profile["preview"]), height=420, placeholder="")
    account_choice.render(table)
    choice = st.container()
    bar = shared.action_bar()  # after the choice that it depends on, for Tab too
    with choice:
        domain_source.render(table, bar)


def _pictures(table: TableRecord) -> None:
    st.caption(say("Each column as it is in the real table. Only you see these figures."))
    profiles = [ColumnProfile.model_validate(c) for c in table.profile["columns"]]
    shown = shared.paged(profiles)  # its buttons stand above the pictures
    for tile, profile in shared.tiles(shown, border=True):
        with tile:
            kind = said(profile.kind.value)
            if profile.missing:
                kind = say("{kind} · {share:.0%} missing", kind=kind, share=profile.missing)
            st.markdown(f"**{plain(profile.name)}** :gray[{kind}]")
            shared.picture(
                profile_figure(profile.model_dump(mode="json")),
                key=f"profile_{table.id}_{profile.name}",
                alt=say("Distribution of {column} in the real table.", column=profile.name),
            )
