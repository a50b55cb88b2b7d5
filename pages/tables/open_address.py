"""Opening a table from a path, a database or object storage; a password is kept for one request."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from pages.shared.language import say

_GENERATION = "source_generation"


@dataclass(frozen=True)
class EnteredAddress:
    """What somebody wants to open.

    Attributes:
      address: a path, or the address of a database or an object store.
      query: of a database.
      password: for this request alone.
    """

    address: str = field(repr=False)
    query: str = field(repr=False)
    password: str = field(repr=False)


def render() -> EnteredAddress | None:
    """The fields; what was asked for, once, when it is sent."""
    with st.expander(
        say("Open from a path, a database or object storage"), icon=":material/database:"
    ):
        st.caption(
            say(
                "For tables that are too large to upload or stored elsewhere. Rows are read in "
                "batches."
            )
        )
        with st.form("open_address", border=False):
            address = st.text_input(
                say("Address"),
                placeholder="/data/visits.parquet",
                help=say(
                    "A file or a folder of Parquet files that this server can read; "
                    "`postgresql://user@host/database` or `sqlite:////path/to/file.db`; "
                    "`s3://bucket/folder`."
                ),
                key="source_address",
            )
            query = st.text_area(
                say("SQL query (for a database)"),
                placeholder="SELECT * FROM visits",
                height=80,
                key="source_query",
            )
            key = f"source_password_{st.session_state.get(_GENERATION, 0)}"
            password = st.text_input(
                say("Password (if needed)"),
                type="password",
                help=say("Used once to read the rows and not stored."),
                key=key,
            )
            sent = st.form_submit_button(say("Open table"), icon=":material/login:")
    if not sent or not address.strip():
        return None
    # the field is empty from now on, and so is the session
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    st.session_state.pop(key, None)
    return EnteredAddress(address, query, password)
