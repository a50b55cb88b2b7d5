"""What is declared public about columns, where it comes from and what it would publish."""

from __future__ import annotations

import streamlit as st

from core.runs.execution.privacy_certificate import declared, origin
from core.runs.records import TableRecord
from core.schema.schema import DomainColumn
from core.services import tables
from pages.shared.language import said, say
from pages.shared.plain import plain


def dangers(table: TableRecord) -> None:
    """A warning that names the lists whose declaration would publish values of few rows."""
    sentences = tables.dangers(table)
    if sentences:
        text = "\n".join(f"- {plain(said(sentence))}" for sentence in sentences)
        title = say("Before you declare anything public:")
        st.warning(f"{title}\n{text}", icon=":material/warning:")


def render(table: TableRecord) -> None:
    """Each column's declared domain with its origin, folded."""
    title = say("What is declared public, and where it comes from")
    with st.expander(title, icon=":material/public:"):
        st.caption(say("ε does not protect what stands here. The certificate repeats it."))
        for column in table.schema.columns:
            public = DomainColumn.of(column)
            if public.declared:
                where = f" — *{said(origin(public))}*" if origin(public) else ""
                st.markdown(f"- {plain(said(declared(public)))}{where}")
