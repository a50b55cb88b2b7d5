"""Freeing uploaded bytes: they would otherwise stay in the server's memory after the session."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

_GENERATION = "upload_generation"


def upload_key() -> str:
    """A key for the uploader that changes when its bytes were freed, so that it shows empty."""
    return f"upload_{st.session_state.get(_GENERATION, 0)}"


def free_uploads() -> None:
    """Drop all uploaded bytes of this session from the server's memory.

    Uses the session's upload manager, which has no public door; a test watches that it is there.
    """
    context = get_script_run_ctx()
    if context is not None:
        context.uploaded_file_mgr.remove_session_files(context.session_id)
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
