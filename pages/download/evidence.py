"""Evidence on Download: what only people can say of a release, and the pack in one press."""

from __future__ import annotations

from datetime import date
from functools import partial

import streamlit as st

from core.export.evidence_pack import packed
from core.quality.report.types import View
from core.runs.records import RunRecord
from core.services import discussion as notes
from core.services import export
from core.services.evidence.documents import documents
from pages.review import discussion
from pages.shared import downloads
from pages.shared import widgets as shared
from pages.shared.language import say, spoken
from pages.shared.workspace_store import store


def section(run: RunRecord) -> None:
    """The pack for outside, the one for inside, and what is asked of people for both."""
    st.subheader(say("Evidence"), anchor=False)
    st.caption(
        say(
            "For your data protection officer and for whoever receives the table: certificate, "
            "answers to four guides, outside report, record for the public registry, hashes."
        )
    )
    language, author = spoken(), discussion.signed_name()
    packs: dict[View, str] = {
        "outside": say("Evidence to share (ZIP)"),
        "inside": say("Evidence with attacks, inside only (ZIP)"),
    }

    def made(view: View) -> bytes:
        if view == "inside":
            notes.look(store(), run, author=author)
        found = documents(store(), run, view)
        files = {"dictionary.csv": export.dictionary_text(store(), run)}
        return packed(found, files, view=view, language=language)

    with st.container(horizontal=True):
        for view, label in packs.items():
            downloads.offer(
                label,
                partial(made, view),
                table_id=run.table_id,
                inside=view == "inside",
                reviewed=run,
                file_name=export.file_name(run, f"evidence-{view}.zip"),
                icon=":material/lock:" if view == "inside" else ":material/folder_zip:",
            )
    _questions(run)


def _questions(run: RunRecord) -> None:
    kept = notes.release_terms(store(), run.id) or {}
    asked = {
        "organisation": say("Responsible organisation"),
        "purpose": say("Purpose of the release"),
        "recipient": say("Recipient"),
        "legal_basis": say("Legal basis"),
    }
    lacking = sum(not kept.get(name) for name in (*asked, "review_date"))
    title = say("For the file: {n} of 5 answers are missing", n=lacking)
    with (
        st.expander(title if lacking else say("For the file"), icon=":material/edit_note:"),
        st.form(f"release_{run.id}", border=False),
    ):
        said = {
            name: st.text_input(label, kept.get(name, ""), max_chars=500)
            for name, label in asked.items()
        }
        day = date.fromisoformat(kept["review_date"]) if kept.get("review_date") else None
        chosen = st.date_input(say("Next review of this assessment"), day, format=say("YYYY-MM-DD"))
        said["review_date"] = chosen.isoformat() if chosen else ""
        if st.form_submit_button(say("Keep these answers"), icon=":material/save:"):
            author = discussion.signed_name()
            about = {"table_id": run.table_id, "run_id": run.id, "author": author}
            with shared.change():
                notes.set_release_terms(store(), **about, terms=said)
