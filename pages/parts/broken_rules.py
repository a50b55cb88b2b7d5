"""Rules of the real table that synthetic rows break: the steward may declare them; inside only."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.runs.storage.records import RunRecord
from core.services import declarations
from core.table.rules import parse_rule
from pages.parts import guard, routes, shared, visible
from pages.parts.language import say
from pages.parts.plain import plain

SHOWN = 8


def render(run: RunRecord, report: dict[str, Any]) -> None:
    """The rules that are broken most, each with a button for whoever may declare it."""
    broken = report.get("broken_rules", [])  # reports of earlier versions lack it
    if not broken or report["view"] != "inside" or not guard.steward():
        return
    table = visible.table(shared.store(), run.table_id)
    declared = {rule.text for rule in table.schema.rules}
    title = say("Rules that every real row keeps and synthetic rows break")
    with st.expander(title, expanded=True):
        st.caption(
            say(
                "Declare what is true by what the columns mean, and later runs keep it in every "
                "row. Declare nothing that would be news about your table."
            )
        )
        for place, one in enumerate(broken[:SHOWN]):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(
                    say(
                        "`{rule}` broken by {rows:,} synthetic rows",
                        rule=one["text"],
                        rows=one["rows"],
                    )
                )
                key = f"declare_{run.id}_{place}"
                if one["text"] in declared:
                    st.caption(say("Declared since; later runs keep it."))
                elif st.button(say("Declare"), key=key, icon=":material/add:"):
                    with shared.change():
                        rules = [*table.schema.rules, parse_rule(one["text"])]
                        declarations.change_rules(shared.store(), table, rules)
        if len(broken) > SHOWN:
            st.caption(plain(say("And {n} more.", n=len(broken) - SHOWN)))
        routes.button(say("Look at the rules on Tables"), "tables", table=run.table_id)
