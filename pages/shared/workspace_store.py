"""The workspace's run store, one for all sessions of the server."""

from __future__ import annotations

import streamlit as st

from core.runs.workspace import Workspace
from core.services.runs import RunStore, open_store


@st.cache_resource(show_spinner=False)
def _store(home: str) -> RunStore:
    return open_store()


def store() -> RunStore:
    """The workspace's run store; holds no rows, so it may be shared by sessions."""
    return _store(str(Workspace.default().home))
