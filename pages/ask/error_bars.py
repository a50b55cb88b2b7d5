"""How far the error bars of a run are, and the button that has them made."""

from __future__ import annotations

import streamlit as st

from core.inference.replicas import no_replicas
from core.runs.records import RunRecord
from core.services import runs
from core.services.inference import replicas
from pages.server import guard
from pages.shared import visible
from pages.shared import widgets as shared
from pages.shared.language import said, say
from pages.shared.plain import plain
from pages.shared.workspace_store import store


def show(run: RunRecord) -> None:
    """How far the error bars are, and the button that has them made; nothing once all are there."""
    if replicas.under_way(store(), run.id):
        progress(run.id)
        return
    if replicas.complete(store(), run.id):
        return
    if (reason := no_replicas(run.plan)) is not None:
        st.info(plain(said(reason)), icon=":material/info:")
        return
    st.info(
        say(
            "How far figures may be off is not known yet. To find out, the run is repeated twenty "
            "times on rows of its own model. This reads no real row and spends nothing."
        ),
        icon=":material/error_med:",
    )
    if guard.steward() and st.button(say("Work out error bars"), type="primary"):
        with shared.change():
            replicas.start(store(), shared.launcher(), run.id)


@st.fragment(run_every=1.5)
@shared.plain_errors()
def progress(run_id: str) -> None:
    """How far fitting the model again is; the page is drawn again once it is done."""
    visible.still(run_id, "steward", "reviewer")
    shared.launcher().pump()
    if not replicas.under_way(store(), run_id):
        st.rerun()
    now = runs.progress(store(), run_id)
    title = said(now.title) if now.title else say("Starting")
    st.progress(now.fraction, f"{title}{shared.time_left(now.eta_seconds)}")
