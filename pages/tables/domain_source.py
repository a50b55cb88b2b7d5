"""How bounds and lists become known: learned with noise by each run, or declared public."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.privacy.discovery.open_domain import open_domain
from core.runs.accounts.learned_earlier import noted_earlier, taken_columns
from core.runs.execution.privacy_certificate import declared, origin
from core.runs.records import TableRecord
from core.schema.column import DomainColumn, SchemaError
from core.schema.rounding_up import round_up
from core.schema.schema import Schema
from core.services import public_domains, tables
from core.services.runs import RunStore
from pages.server import routes
from pages.shared import visible
from pages.shared import widgets as shared
from pages.shared.language import number, said, say, say_n
from pages.shared.plain import plain
from pages.shared.workspace_store import store
from pages.tables import person_settings, schema_editor


def render(table: TableRecord, bar: DeltaGenerator) -> None:
    """What is learned and what is declared, and the way to the plan in the main button's bar."""
    with st.container(border=True), shared.plain_errors():
        _misfits(table)
        if _unanswered(table):
            bar.button(say("Plan a synthetic table"), type="primary", disabled=True)
            return
        _learned(table)
        _references(table)
        _learned_before(table)
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


def _offer(
    table: TableRecord,
    icon: str,
    words: str,
    label: str,
    change: Callable[[RunStore, TableRecord], object],
    about: str | None = None,
) -> None:
    """A sentence on some columns, and the button that changes it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f":material/{icon}: {words}", width="stretch")
        if st.button(label, key=schema_editor.schema_key(icon, table), help=about):
            with shared.change():
                change(store(), table)


def _learned(table: TableRecord) -> None:
    """Which columns the run learns, and the way to declare them instead."""
    wanted = open_domain(table.schema)
    names = [column.name for column in (*wanted.numeric, *wanted.listed)]
    if not names:
        return
    words = say_n(
        len(names),
        "**The bounds or categories of {n} column are learned with noise when the run starts**, "
        "which takes part of its ε. You do not have to declare anything.",
        "**The bounds and categories of {n} columns are learned with noise when the run starts**, "
        "which takes part of its ε. You do not have to declare anything.",
    )
    about = say(
        "Uses the bounds and categories shown above, which were read from the rows and reveal "
        "something about people in the table, such as a rare diagnosis. ε does not protect them."
    )
    _offer(table, "blur_on", words, say("Declare all public"), tables.declare_all, about)


def _references(table: TableRecord) -> None:
    """Domains that anybody could name without the rows, to be taken with one press."""
    known = public_domains.references(table.schema)
    if not known:
        return
    listed = [f"{plain(name)} ({plain(said(one.source))})" for name, one in known.items()]
    words = say_n(
        len(known),
        "**The possible values of {n} column are known without its rows:** {columns}.",
        "**The possible values of {n} columns are known without their rows:** {columns}.",
        columns=", ".join(listed),
    )
    about = say(
        "They cost nothing, so more of ε is left for the rest. Afterwards you see here how many of "
        "your values do not fit."
    )
    use = say("Use public references")
    _offer(table, "menu_book", words, use, public_domains.use_references, about)


def _learned_before(table: TableRecord) -> None:
    """What an earlier run learned of these people: what of it is used, and what could be."""
    taken = taken_columns(table.schema)
    if taken:
        words = say(
            "**Columns taken from an earlier run: {n}.** The claim for this table also counts the "
            "ε = {epsilon} that was spent on learning them.",
            n=len(taken),
            epsilon=_spent(table.schema),
        )
        _offer(table, "history", words, say("Learn anew"), public_domains.learn_anew)
    run, schema = public_domains.learned_before(table, visible.runs()) or (None, table.schema)
    if run is not None:
        words = say(
            "**Columns that an earlier run already learned: {n}** ({run}, {when}). Using this "
            "costs nothing more, but the claim for this table includes the ε = {epsilon} that was "
            "spent on it.",
            n=len(taken_columns(schema)) - len(taken),
            run=plain(shared.run_title(run)),
            when=shared.clock(run.created),
            epsilon=_spent(schema),
        )
        use = partial(public_domains.use_learned, schema=schema)
        _offer(table, "update", words, say("Use what an earlier run learned"), use)


def _spent(schema: Schema) -> str:
    """What a claim adds for what earlier runs learned of a schema."""
    epsilon = math.fsum(one.epsilon for one in noted_earlier(schema))
    return number(f"{round_up(epsilon, '.3g'):.3g}")


def _declared(table: TableRecord, bar: DeltaGenerator) -> bool:
    """Whether what was read from the rows and declared is confirmed; often nothing was."""
    names = tables.declared_from_rows(table)
    if not names:
        return True
    words = say_n(
        len(names),
        "**The bounds or categories of {n} column were read from the rows and are declared "
        "public.**",
        "**The bounds and categories of {n} columns were read from the rows and are declared "
        "public.**",
    )
    _offer(table, "public", words, say("Learn them instead"), tables.learn_all)
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
    settled = tuple(rule for rule in table.schema.rules if rule.settled)  # the run learns others
    try:
        table.schema.as_proposed().model_copy(update={"rules": settled}).domain()
    except SchemaError as error:
        st.error(plain(said(error)), icon=":material/error:")
        return True
    return False


def _plan(table: TableRecord) -> None:
    store().attest(table.id, table.schema)
    routes.go("plan", table=table.id)


def declared_public(table: TableRecord) -> None:
    """Each column's declared domain with its origin, folded; nothing where all is learned."""
    taken = taken_columns(table.schema)
    public = [DomainColumn.of(column) for column in table.schema.columns if column not in taken]
    known = [column for column in public if column.modelled and column.declared]
    if not known:
        return
    title = say("What is declared public, and where it comes from")
    with st.expander(title, icon=":material/public:"):
        st.caption(say("ε does not protect the following. The certificate lists it."))
        for column in known:
            where = f" — *{said(origin(column))}*" if origin(column) else ""
            st.markdown(f"- {plain(said(declared(column)))}{where}")
