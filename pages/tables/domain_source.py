"""How bounds and lists become known: bought with noise, or declared public by the steward."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.privacy.discovery.unbought import unbought
from core.privacy.plan import Plan
from core.proposing.misfits import MISSING, OTHER
from core.runs.records import TableRecord
from core.schema.schema import Schema, SchemaError
from core.services import purchases, tables
from pages.ledger import account_view
from pages.server import routes
from pages.shared import widgets as shared
from pages.shared.language import said, say, say_n, to_say
from pages.shared.plain import plain
from pages.tables import grid_refusals, schema_editor, whose_rows

WAYS = {
    "buy": to_say("Buy them: read again with noise, for a small part of the budget"),
    "declare": to_say("Declare them public: they cost nothing and are not protected"),
}
EXPLAINED = to_say(
    "Models must know each column’s bounds and labels. Those that nobody has set were read from "
    "the rows, so they show something of the people in it: the highest income, a rare diagnosis."
)


def render(table: TableRecord, bar: DeltaGenerator) -> None:
    """The choice, and the way to the plan in the bar of the page's main button."""
    with st.container(border=True), shared.plain_errors():
        _misfits(table)
        if grid_refusals.standing(table):
            st.caption(
                say("An edit above was refused. Correct it, or leave it as it was, to go on.")
            )
            bar.button(say("Plan a synthetic table"), type="primary", disabled=True)
            return
        if not whose_rows.answered(table):
            st.warning(said(whose_rows.UNANSWERED), icon=":material/group:")
            bar.button(say("Plan a synthetic table"), type="primary", disabled=True)
            return
        schema = purchases.to_buy(shared.store(), table)
        names = unbought(schema).names
        if not names:
            _settled(table, schema, bar)
            return
        uploaded = table.source.startswith("upload") and not shared.store().attested(table.id)
        way = st.radio(
            say_n(
                len(names),
                "**Bounds and lists of {n} column were read from the rows. "
                "How may they be known?**",
                "**Bounds and lists of {n} columns were read from the rows. "
                "How may they be known?**",
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
            "**{n:,} cell does not fit what is declared.** For training, {changes}. The tab "
            "Columns says where.",
            "**{n:,} cells do not fit what is declared.** For training, {changes}. The tab "
            "Columns says where.",
            changes=", ".join(parts),
        )
        st.markdown(f":material/rule: {changed}")
    for name, rows in tables.rows_without_key(table).items():
        st.markdown(
            say_n(
                rows,
                ":material/person_off: **{n:,} row has no {column}.**",
                ":material/person_off: **{n:,} rows have no {column}.** They count together as one "
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
    return say_n(n, "{n:,} moves to a declared value", "{n:,} move to a declared value")


def _settled(table: TableRecord, schema: Schema, bar: DeltaGenerator) -> None:
    """Nothing is left to buy: everything was bought or set by hand."""
    st.markdown(say("Bounds and lists were bought, or set by you. Nothing is left to declare."))
    if schema.lost:
        names = plain(", ".join(schema.lost))
        st.info(say("Nothing was found in: {names}. These are left out.", names=names))
    for sentence in schema.fallen.values():
        st.info(plain(said(sentence)), icon=":material/rule:")
    if bar.button(
        say("Plan a synthetic table"),
        type="primary",
        icon=":material/arrow_forward:",
        key=schema_editor.schema_key("settled", table),  # see `_declare`
    ):
        if schema != table.schema:  # bought before, about the same people
            table = shared.store().save_schema(table.id, schema)
        _plan(table)


def _buy(table: TableRecord, schema: Schema, bar: DeltaGenerator) -> None:
    """What a purchase costs and finds, before anything is spent; and the button that spends it."""
    epsilon = st.number_input(
        say("ε to spend on bounds and lists, once"),
        min_value=0.005,
        max_value=5.0,
        value=purchases.usual_epsilon(schema, table.training_n),
        step=0.05,
        format="%.3f",
        key=f"buy_epsilon_{table.id}_{table.training_n}",
        help=say(
            "About a twentieth of what a synthetic table will cost is usual; small tables need "
            "more. Later runs about these people use the result at no further cost."
        ),
    )
    try:
        plan = purchases.plan_purchase(schema, table.training_n, epsilon)
    except ValueError as error:
        st.warning(plain(said(error)), icon=":material/info:")
        return
    _forecast(plan, schema)
    again = purchases.lost(shared.store(), table) and st.checkbox(
        say("An earlier purchase was paid for and lost. Pay once more."), key=f"again_{table.id}"
    )
    same, unit_words = account_view.confirm_unit(table, plan)
    if bar.button(
        say("Buy bounds and lists — spends ε = {epsilon:g}", epsilon=epsilon),
        type="primary",
        icon=":material/shopping_cart:",
        disabled=not same,
        # what was typed or changed since this button stood there is not bought by pressing it
        key=schema_editor.schema_key(f"buy_{plan.digest}", table),
    ):
        with shared.change(), st.spinner(say("Paying, then reading the table once")):
            purchases.buy(
                shared.store(), table, plan, schema, again=bool(again), unit_words=unit_words
            )


def _forecast(plan: Plan, schema: Schema) -> None:
    lines = purchases.forecast(plan, schema)
    with st.expander(say("What will be found, column by column"), icon=":material/list:"):
        share = say("share of this ε")
        frame = pd.DataFrame(
            {
                say("column or rule"): [line.name for line in lines],
                share: [line.share for line in lines],
                say("what will be found"): [said(line.words) for line in lines],
            }
        )
        percent = st.column_config.NumberColumn(format="percent")
        st.dataframe(frame, hide_index=True, column_config={share: percent})
    for sentence in purchases.at_stake(schema):
        st.caption(f":material/info: {plain(said(sentence))}")
    st.caption(
        say(
            "From public numbers alone; no row has been read for this. What few people hold is "
            "left out: rare labels become OTHER, values beyond the bounds move to them."
        )
    )


def _declare(table: TableRecord, bar: DeltaGenerator) -> None:
    """The declaration that ε rests on."""
    confirmed = bar.checkbox(
        say(
            "I confirm that the bounds, category names and “may be missing” marks above may be "
            "public knowledge."
        ),
        # what is declared later was not confirmed: each schema asks for a tick of its own
        key=schema_editor.schema_key("attest", table),
        value=shared.store().attested(table.id),
        help=say("They are not protected by ε. The certificate lists them as its conditions."),
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
        bar.caption(say("Tick the box to go on."), width="content")


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
    shared.store().attest(table.id, table.schema)
    routes.go("plan", table=table.id)
