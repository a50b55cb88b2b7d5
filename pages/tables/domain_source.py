"""How bounds and lists become known: learned with noise by each run, or declared public."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.privacy.discovery.open_domain import open_domain
from core.runs.execution.privacy_certificate import declared, origin
from core.runs.records import TableRecord
from core.schema.column import DomainColumn, SchemaError
from core.services import public_domains, tables
from pages.server import routes
from pages.shared import widgets as shared
from pages.shared.language import said, say, say_n
from pages.shared.plain import plain
from pages.shared.workspace_store import store
from pages.tables import person_settings, schema_editor


def render(table: TableRecord, bar: DeltaGenerator) -> None:
    """What is learned and what is declared, and the way to the plan in the main button's bar."""
    with st.container(border=True), shared.plain_errors():
        _misfits(table)
        problem = _unanswered(table)
        if problem:
            bar.button(say("Plan a synthetic table"), type="primary", disabled=True)
            return
        _learned(table)
        _references(table)
        confirmed = _declared(table, bar)
        if bar.button(
            say("Plan a synthetic table"),
            type="primary",
            icon=":material/arrow_forward:",
            disabled=not confirmed or _refused(table),
            key=schema_editor.schema_key("planned", table),  # no press declares what came after it
        ):
            _plan(table)


def _unanswered(table: TableRecord) -> bool:
    """Whether something has to be settled first; the page then says what."""
    if schema_editor.refused(table):
        st.caption(
            say("One of your changes above was not accepted. Correct or discard it to continue.")
        )
        return True
    if not person_settings.answered(table):
        st.warning(said(person_settings.UNANSWERED), icon=":material/group:")
        return True
    return False


def _misfits(table: TableRecord) -> None:
    """How many cells do not fit what is declared, and how many rows are nobody's."""
    if cells := tables.misfit_cells(table):
        words = say_n(
            cells,
            "**{n:,} value does not fit your declarations.** See the remarks on the Columns tab.",
            "**{n:,} values do not fit your declarations.** See the remarks on the Columns tab.",
        )
        st.markdown(f":material/rule: {words}")
    for name, rows in tables.rows_without_key(table).items():
        st.markdown(
            say_n(
                rows,
                ":material/person_off: **{n:,} row has no {column}.**",
                ":material/person_off: **{n:,} rows have no {column}.** Together they count as one "
                "person.",
                column=plain(name),
            )
        )


def _learned(table: TableRecord) -> None:
    """Which columns the run learns, and the way to declare them instead."""
    wanted = open_domain(table.schema)
    names = [column.name for column in (*wanted.numeric, *wanted.listed)]
    if not names:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            ":material/blur_on: "
            + say_n(
                len(names),
                "**The bounds or categories of {n} column are learned with noise when the run "
                "starts**, for part of its ε. You do not have to declare anything.",
                "**The bounds and categories of {n} columns are learned with noise when the run "
                "starts**, for part of its ε. You do not have to declare anything.",
            ),
            width="stretch",
        )
        if st.button(
            say("Declare all public"),
            key=schema_editor.schema_key("declare_all", table),
            help=say(
                "Uses the bounds and categories shown above, which were read from the rows and "
                "reveal something about people in the table, such as a rare diagnosis. ε does not "
                "protect them."
            ),
        ):
            with shared.change():
                tables.declare_all(store(), table)


def _references(table: TableRecord) -> None:
    """Domains that anybody could name without the rows, to be taken with one press."""
    known = public_domains.references(table.schema)
    if not known:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        listed = [f"{plain(name)} ({plain(said(one.source))})" for name, one in known.items()]
        st.markdown(
            ":material/menu_book: "
            + say_n(
                len(known),
                "**{n} column has a domain that is known without the rows:** {columns}.",
                "**{n} columns have a domain that is known without the rows:** {columns}.",
                columns=", ".join(listed),
            ),
            width="stretch",
        )
        if st.button(
            say("Use public references"),
            key=schema_editor.schema_key("references", table),
            help=say(
                "They cost nothing, so more of ε is left for the rest. Afterwards you see here how "
                "many of your values do not fit."
            ),
        ):
            with shared.change():
                public_domains.use_references(store(), table)


def _declared(table: TableRecord, bar: DeltaGenerator) -> bool:
    """Whether what was read from the rows and declared is confirmed; often nothing was."""
    names = tables.declared_from_rows(table)
    if not names:
        return True
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            ":material/public: "
            + say_n(
                len(names),
                "**The bounds or categories of {n} column were read from the rows and are declared "
                "public.**",
                "**The bounds and categories of {n} columns were read from the rows and are "
                "declared public.**",
            ),
            width="stretch",
        )
        if st.button(say("Learn them instead"), key=schema_editor.schema_key("learn_all", table)):
            with shared.change():
                tables.learn_all(store(), table)
    confirmed = bar.checkbox(
        say(
            "I confirm that the bounds, category names and “may be missing” marks above may be "
            "public."
        ),
        # what is declared later was not confirmed: each schema asks for a tick of its own
        key=schema_editor.schema_key("attest", table),
        value=store().attested(table.id),
        help=say("ε does not protect them. The certificate lists them as conditions."),
    )
    if not confirmed:
        bar.caption(say("Tick the box to continue."), width="content")
    return confirmed


def _refused(table: TableRecord) -> bool:
    """Whether no plan can be made of the schema as it is; the page then says why."""
    try:
        table.schema.as_proposed().domain()
    except SchemaError as error:
        st.error(plain(said(error)), icon=":material/error:")
        return True
    return False


def _plan(table: TableRecord) -> None:
    store().attest(table.id, table.schema)
    routes.go("plan", table=table.id)


def declared_public(table: TableRecord) -> None:
    """Each column's declared domain with its origin, folded; nothing where all is learned."""
    public = [DomainColumn.of(column) for column in table.schema.columns]
    known = [column for column in public if column.modelled and column.declared]
    if not known:
        return
    title = say("What is declared public, and where it comes from")
    with st.expander(title, icon=":material/public:"):
        st.caption(say("ε does not protect the following. The certificate lists it."))
        for column in known:
            where = f" — *{said(origin(column))}*" if origin(column) else ""
            st.markdown(f"- {plain(said(declared(column)))}{where}")
