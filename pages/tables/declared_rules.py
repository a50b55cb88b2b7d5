"""Rules that hold in every row: declared by the steward, kept exactly in the synthetic table.

On Tables from what is known, and on Review from what synthetic rows break.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.runs.records import RunRecord, TableRecord
from core.schema.rules.rules import AnyRule, parse_rule
from core.services import declarations
from pages.server import guard, routes
from pages.shared import visible
from pages.shared import widgets as shared
from pages.shared.language import said, say, to_say
from pages.shared.plain import in_code, plain
from pages.shared.workspace_store import store

EXPLAINED = to_say(
    "Facts that are true of every row because of what the columns mean. The synthetic table "
    "follows them in every row, and models do not have to learn them. Do not declare anything that "
    "is specific to your data."
)
FORMS = to_say(
    "label <- code (code determines label) · start <= end · booked = paid · total = net + tax · "
    "stay = end - start (dates count in days) · `start[t+1] >= end[t]` (a person's next row) · "
    "`if age < 15 then income is missing` · `if ward in (3, 4) then sex = f` · combinations ward, "
    "floor · missing together a, b"
)
FOUND = to_say(
    "No row breaks these rules. Only you see them: they come from the rows. Add a rule only if it "
    "is true by definition, whoever is in the table."
)
SHOWN = 8  # rules that a review lists


def render(table: TableRecord) -> None:
    """The rules that stand, those that the rows suggest, and a line for more."""
    st.markdown(say("**Rules that hold in every row**"), help=said(EXPLAINED))
    rules, broken = table.schema.rules, declarations.broken_rules(table)
    for rule in rules:  # keys by text: the next rule must not take over the place of one removed
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"`{in_code(rule.text)}` {_state(table, rule, broken.get(rule.text, 0))}")
            if not rule.settled:
                _settle(table, rule)
            key = f"unrule_{table.id}_{rule.text}"
            if st.button(say("Remove"), key=key, icon=":material/close:"):
                _keep(table, [one for one in rules if one is not rule])
    _suggest(table, rules)
    with st.form(f"rule_{table.id}", border=False, clear_on_submit=True):
        text = st.text_input(
            say("New rule"), placeholder=say("stay = discharged - admitted"), help=said(FORMS)
        )
        if st.form_submit_button(say("Add rule")) and text.strip():
            with shared.plain_errors():
                _keep(table, [*rules, parse_rule(text)])


def _suggest(table: TableRecord, rules: Sequence[AnyRule]) -> None:
    """Rules that the rows keep, once they were looked for."""
    suggested = declarations.suggestions(table)
    if suggested is not None:
        st.caption(said(FOUND) if suggested else say("No other rule was found."))
    with st.container(horizontal=True):
        for rule in suggested or ():
            key = f"suggest_{table.id}_{rule.text}"
            if st.button(plain(rule.text), key=key, icon=":material/add:"):
                _keep(table, [*rules, rule])
        if suggested and len(suggested) > 1:
            words, key = say("Add all {n}", n=len(suggested)), f"suggest_all_{table.id}"
            if st.button(words, key=key, icon=":material/done_all:", type="tertiary"):
                _keep(table, [*rules, *suggested])
        words = say("Look for rules in the rows")
        if st.button(words, key=f"look_{table.id}", icon=":material/search:", type="tertiary"):
            with shared.change():
                declarations.look_for_rules(store(), table)


def _settle(table: TableRecord, rule: AnyRule) -> None:
    """Which label each code has is learned with the other lists, or declared from the rows."""
    if st.button(
        say("Declare the combinations in the rows"),
        key=f"settle_{table.id}_{rule.text}",
        icon=":material/public:",
        help=say(
            "Reads from the rows, without noise, which values occur together, and declares them "
            "public. Otherwise the run learns them together with the bounds and categories."
        ),
    ):
        with shared.change():
            declarations.declare_values(store(), table, rule)


def _keep(table: TableRecord, rules: list[AnyRule]) -> None:
    with shared.change():
        declarations.change_rules(store(), table, rules)


def _state(table: TableRecord, rule: AnyRule, broken: int) -> str:
    """Whether a rule is kept, and how many real rows break it; for the steward's eyes."""
    if not rule.settled:
        return say(":orange[the allowed combinations are not known yet]")
    if not broken:
        return say(":green[holds in all real rows]")
    return plain(
        say(
            "{broken:,} of {n:,} real rows break it. Only you see this count.",
            broken=broken,
            n=table.n,
        )
    )


def render_broken(run: RunRecord, report: dict[str, Any]) -> None:
    """Rules of the real table that synthetic rows break most; inside only, for the steward."""
    broken = report["broken_rules"]
    if not broken or report["view"] != "inside" or not guard.steward():
        return
    table = visible.table(run.table_id)
    declared = {rule.text for rule in table.schema.rules}
    title = say("Rules that all real rows follow but some synthetic rows break")
    with st.expander(title, expanded=True):
        st.caption(
            say(
                "Declare rules that are true because of what the columns mean; later runs follow "
                "them in every row. Do not declare anything that is specific to your data."
            )
        )
        for one in broken[:SHOWN]:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(
                    say(
                        "`{rule}` is broken by {rows:,} synthetic rows",
                        rule=in_code(one["text"]),
                        rows=one["rows"],
                    )
                )
                key = f"declare_{run.id}_{one['text']}"
                if one["text"] in declared:
                    st.caption(say("Declared since then; later runs will follow it."))
                elif st.button(say("Declare"), key=key, icon=":material/add:"):
                    with shared.plain_errors():
                        _keep(table, [*table.schema.rules, parse_rule(one["text"])])
        if len(broken) > SHOWN:
            st.caption(plain(say("And {n} more.", n=len(broken) - SHOWN)))
        routes.button(say("Show the rules on the Tables page"), "tables", table=run.table_id)
