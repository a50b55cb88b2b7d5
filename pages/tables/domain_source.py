"""How bounds and lists become known: bought with noise, or declared public by the steward."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.privacy.discovery.unbought import unbought
from core.privacy.plan import Plan
from core.proposing.misfits import MISSING, OTHER
from core.runs.execution.privacy_certificate import declared, origin
from core.runs.records import TableRecord
from core.schema.column import DomainColumn, SchemaError
from core.schema.schema import Schema
from core.services import purchases, tables
from pages.ledger import account_view
from pages.server import routes
from pages.shared import widgets as shared
from pages.shared.language import said, say, say_n, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store
from pages.tables import person_settings, schema_editor

WAYS = {
    "buy": to_say("Buy them: estimate them again with noise, for a small part of the budget"),
    "declare": to_say("Declare them public: free, but not protected"),
}
EXPLAINED = to_say(
    "Models need bounds and categories for every column. Those that nobody has set were read from "
    "the rows, so they reveal something about people in the table, such as the highest income or a "
    "rare diagnosis."
)


def render(table: TableRecord, bar: DeltaGenerator) -> None:
    """The choice, and the way to the plan in the bar of the page's main button."""
    with st.container(border=True), shared.plain_errors():
        _misfits(table)
        if schema_editor.refused(table):
            st.caption(
                say(
                    "One of your changes above was not accepted. Correct or discard it to continue."
                )
            )
            bar.button(say("Plan a synthetic table"), type="primary", disabled=True)
            return
        if not person_settings.answered(table):
            st.warning(said(person_settings.UNANSWERED), icon=":material/group:")
            bar.button(say("Plan a synthetic table"), type="primary", disabled=True)
            return
        schema = purchases.to_buy(store(), table)
        names = unbought(schema).names
        if not names:
            _settled(table, schema, bar)
            return
        uploaded = table.source.startswith("upload") and not store().attested(table.id)
        way = st.radio(
            say_n(
                len(names),
                "**The bounds or categories of {n} column were read from the rows. "
                "How should they be released?**",
                "**The bounds or categories of {n} columns were read from the rows. "
                "How should they be released?**",
            ),
            list(WAYS),
            index=0 if uploaded else 1,
            format_func=lambda way: said(WAYS[way]),
            help=said(EXPLAINED),
            key=f"way_{table.id}",
        )
        if way == "buy":
            _buy(table, schema, bar)
        else:
            _declare(table, bar)


def _misfits(table: TableRecord) -> None:
    """How many cells do not read as declared, and what becomes of them."""
    fates = tables.misfit_fates(table)
    parts = [_fate(fate, cells) for fate, cells in fates.items()]
    if parts:
        changed = say_n(
            sum(fates.values()),
            "**{n:,} value does not fit your declarations.** For training, {changes}. See the "
            "Columns tab.",
            "**{n:,} values do not fit your declarations.** For training, {changes}. See the "
            "Columns tab.",
            changes=", ".join(parts),
        )
        st.markdown(f":material/rule: {changed}")
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


def _fate(fate: str, n: int) -> str:
    """What becomes of n cells."""
    if fate == OTHER:
        return say_n(n, "{n:,} becomes OTHER", "{n:,} become OTHER")
    if fate == MISSING:
        return say_n(n, "{n:,} becomes missing", "{n:,} become missing")
    return say_n(n, "{n:,} is moved to a declared value", "{n:,} are moved to a declared value")


def _settled(table: TableRecord, schema: Schema, bar: DeltaGenerator) -> None:
    """Nothing is left to buy: everything was bought or set by hand."""
    st.markdown(
        say(
            "Bounds and categories were bought, or you set them yourself. Nothing is left to "
            "declare."
        )
    )
    if schema.lost:
        names = plain(", ".join(schema.lost))
        st.info(say("Nothing was found for: {names}. These columns are left out.", names=names))
    for sentence in schema.fallen.values():
        st.info(plain(said(sentence)), icon=":material/rule:")
    if bar.button(
        say("Plan a synthetic table"),
        type="primary",
        icon=":material/arrow_forward:",
        key=schema_editor.schema_key("settled", table),  # see `_declare`
    ):
        if schema != table.schema:  # bought before, about the same people
            table = store().save_schema(table.id, schema)
        _plan(table)


def _buy(table: TableRecord, schema: Schema, bar: DeltaGenerator) -> None:
    """What a purchase costs and finds, before anything is spent; and the button that spends it."""
    epsilon = st.number_input(
        say("ε to spend on bounds and categories (once)"),
        min_value=0.005,
        max_value=5.0,
        value=purchases.usual_epsilon(schema, table.training_n),
        step=0.05,
        format="%.3f",
        key=f"buy_epsilon_{table.id}_{table.training_n}",
        help=say(
            "Usually about a twentieth of what the synthetic table will cost; small tables need "
            "more. Later runs about these people use the result at no extra cost."
        ),
    )
    try:
        plan = purchases.plan_purchase(schema, table.training_n, epsilon)
    except ValueError as error:
        st.warning(plain(said(error)), icon=":material/info:")
        return
    _forecast(plan, schema)
    again = purchases.lost(store(), table) and st.checkbox(
        say("An earlier purchase was paid for, but its result was lost. Pay again."),
        key=f"again_{table.id}",
    )
    same, unit_words = account_view.confirm_unit(table, plan)
    if bar.button(
        say("Buy bounds and categories: spends ε = {epsilon:g}", epsilon=epsilon),
        type="primary",
        icon=":material/shopping_cart:",
        disabled=not same,
        # what was typed or changed since this button stood there is not bought by pressing it
        key=schema_editor.schema_key(f"buy_{plan.digest}", table),
    ):
        with shared.change(), st.spinner(say("Paying, then reading the table once")):
            purchases.buy(store(), table, plan, schema, again=bool(again), unit_words=unit_words)


def _forecast(plan: Plan, schema: Schema) -> None:
    lines = purchases.forecast(plan, schema)
    with st.expander(say("What to expect, column by column"), icon=":material/list:"):
        share = say("share of ε")
        frame = pd.DataFrame(
            {
                say("column or rule"): [line.name for line in lines],
                share: [line.share for line in lines],
                say("what to expect"): [said(line.words) for line in lines],
            }
        )
        percent = st.column_config.NumberColumn(format="percent")
        st.dataframe(frame, hide_index=True, column_config={share: percent})
    for sentence in purchases.at_stake(schema):
        st.caption(f":material/info: {plain(said(sentence))}")
    st.caption(
        say(
            "Calculated from public numbers; no row was read. Values that only few people have are "
            "left out: rare categories become OTHER, and values outside the bounds move to the "
            "nearest bound."
        )
    )


def _declare(table: TableRecord, bar: DeltaGenerator) -> None:
    """The declaration that ε rests on."""
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
    if bar.button(
        say("Plan a synthetic table"),
        type="primary",
        icon=":material/arrow_forward:",
        disabled=not confirmed or _undeclared(table),
        key=schema_editor.schema_key("declared", table),  # no press declares what came after it
    ):
        _plan(table)
    if not confirmed:
        bar.caption(say("Tick the box to continue."), width="content")


def _undeclared(table: TableRecord) -> bool:
    """Whether no plan can be made of the schema as it is; the page then says why."""
    try:
        table.schema.domain()
    except SchemaError as error:
        st.error(plain(said(error)), icon=":material/error:")
        return True
    return False


def _plan(table: TableRecord) -> None:
    table.schema.domain()
    store().attest(table.id, table.schema)
    routes.go("plan", table=table.id)


def declared_public(table: TableRecord) -> None:
    """Each column's declared domain with its origin, folded."""
    title = say("What is declared public, and where it comes from")
    with st.expander(title, icon=":material/public:"):
        st.caption(say("ε does not protect the following. The certificate lists it."))
        for column in table.schema.columns:
            public = DomainColumn.of(column)
            if public.declared:
                where = f" — *{said(origin(public))}*" if origin(public) else ""
                st.markdown(f"- {plain(said(declared(public)))}{where}")
