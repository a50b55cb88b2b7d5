"""Rows of chosen values on Download: what is asked of them, and the ZIP that says so."""

from __future__ import annotations

import io
from collections.abc import Sequence

import streamlit as st

from core.models.shaped_output import Shape
from core.runs.execution.launching.launcher import SampleRequest
from core.runs.records import RunRecord
from core.schema.column import DomainColumn
from core.services import export, reviews, shaping
from pages.shared import conditions, downloads
from pages.shared import widgets as shared
from pages.shared.language import said, say
from pages.shared.plain import plain
from pages.shared.workspace_store import store

MOST_SHARES = 12  # labels whose shares can be set here; the command line takes more
MOST_SEEDS = 20


def choose(run: RunRecord) -> tuple[Shape, tuple[int, ...]]:
    """What is asked of rows, and the seeds of several tables; nothing unless somebody asks."""
    with st.expander(say("Choose which rows to generate"), icon=":material/filter_alt:"):
        st.caption(
            say(
                "Rows are generated from the trained model and then selected. No real row is read, "
                "so this costs no privacy."
            )
        )
        columns = {column.name: column for column in run.schema.domain().modelled}
        kept = conditions.where(columns, key=run.id)
        share = _share(run, columns)
        fill = st.toggle(
            say("No missing values"),
            key=f"fill_{run.id}",
            help=say(
                "Each missing value is filled from the most similar synthetic row. If a person has "
                "several rows, rows with missing values are left out instead."
            ),
        )
        seeds = _seeds(
            st.text_input(
                say("Seeds, one table each (optional)"),
                key=f"seeds_{run.id}",
                placeholder="1, 2, 3",
                help=say(
                    "The same seed gives the same rows again. Several tables show how much your "
                    "results vary by chance."
                ),
            )
        )
    return Shape(where=kept, share=share, fill_missing=fill), seeds


def _share(run: RunRecord, columns: dict[str, DomainColumn]) -> str | None:
    """Shares of one column's values, those that were set; the rest is as the model draws it."""
    hidden = {name for names in run.schema.sensitive.values() for name in names}
    listed = [
        name
        for name, column in columns.items()
        if column.kind.listed and len(column.categories or ()) <= MOST_SHARES and name not in hidden
    ]
    name = st.selectbox(
        say("Set the shares of …"),
        listed,
        index=None,
        key=f"share_{run.id}",
        placeholder=say("Choose"),
        help=say("Values without a share stay as common as in the model."),
    )
    if name is None:
        return None
    labels = columns[name].categories or ()
    columns_shown = st.columns(min(4, len(labels)))
    set_shares = [
        (
            label,
            columns_shown[at % len(columns_shown)].number_input(
                f"{plain(label)}, %", 0.0, 100.0, value=None, key=f"share_{run.id}_{name}_{label}"
            ),
        )
        for at, label in enumerate(labels)
    ]
    texts = [f"{label}={share:.10g}%" for label, share in set_shares if share is not None]
    return f"{name}:{','.join(texts)}" if texts else None


def _seeds(text: str) -> tuple[int, ...]:
    """The seeds that were written, each once; a message and none where they are no numbers."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts):
        st.error(say("Seeds are whole numbers separated by commas, such as 1, 2, 3."))
        return ()
    seeds = tuple(dict.fromkeys(int(part) for part in parts))
    if len(seeds) > MOST_SEEDS:
        st.error(
            say("At most {n} tables at once: only the first {n} seeds are used.", n=MOST_SEEDS)
        )
    return seeds[:MOST_SEEDS]


def offer(run: RunRecord, request: SampleRequest, seeds: Sequence[int]) -> None:
    """Make such rows on request, say how common they were, and offer them with their papers."""
    key = f"shaped_{run.id}_{request!r}_{seeds}"
    label = say("Generate {n:,} rows", n=request.rows)
    if st.button(label, type="primary", icon=":material/refresh:"):
        with shared.plain_errors(), st.spinner(say("Generating rows from the saved model …")):
            st.session_state[key] = shaping.draw_tables(
                store(), shared.launcher(), run.id, request, seeds=seeds
            )
    tables: tuple[shaping.DrawnTable, ...] | None = st.session_state.get(key)
    if tables is None:
        return
    for one in tables:
        rows = say(
            "{rows:,} rows kept out of {drawn:,} generated.",
            rows=one.facts.rows,
            drawn=one.facts.drawn,
        )
        seed = "" if one.facts.seed is None else f"{say('Seed')} {one.facts.seed}: "
        st.caption(plain(seed + rows))
        for words in one.facts.words:
            st.markdown(f"- {plain(said(words))}")
    name = export.file_name(run, "zip")

    def packed() -> bytes:
        buffer = io.BytesIO()
        export.pack(
            buffer,
            tables,
            name=export.file_name(run, request.format),
            domain=run.schema.domain(),
            schema=run.schema,
            certificate=reviews.privacy_certificate(store(), run.id) or {},
            run=run.id,
            escaped=request.escape_formulas,
        )
        return buffer.getvalue()

    downloads.offer(
        say("Download {name}", name=name),
        packed,
        table_id=run.table_id,
        reviewed=run,
        file_name=name,
        mime="application/zip",
        icon=":material/download:",
        help=say(
            "The rows, a data dictionary and the privacy certificate. The last two state what was "
            "selected."
        ),
    )
