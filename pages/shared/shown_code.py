"""Show me the code: what a page does, as a command and as Python, with the schema they need."""

from __future__ import annotations

import streamlit as st

from core.runs.records import RunRecord
from core.schema.schema import Schema
from core.services.recipe import Code, run_code
from pages.shared import downloads
from pages.shared.language import say


def show(codes: dict[str, Code], *, schema: Schema | None = None, table_id: str) -> None:
    """An expander with commands and Python, each under its title.

    Args:
      codes: by title, shown as it stands.
      schema: that they name, to be taken along; None where files leave the house.
    """
    with st.expander(say("Show the code"), icon=":material/code:"):
        for title, code in codes.items():
            st.markdown(f"**{title}**")
            st.code(code.command, language="bash")
            st.code(code.python, language="python")
        if schema is None:
            st.caption(say("Save `schema.json` on the Tables page. It is for internal use."))
            return
        downloads.offer(
            say("Schema (JSON), for internal use"),
            lambda: schema.model_dump_json(indent=1),
            table_id=table_id,
            file_name="schema.json",
            mime="application/json",
            icon=":material/schema:",
            help=say(
                "What you declared about the columns, with notes that only the steward should see."
            ),
        )


def of_run(run: RunRecord) -> Code:
    """The code that asks for a run like this one."""
    return run_code(run.table_name, run.request, account_id=run.account_id, schema=run.schema)
