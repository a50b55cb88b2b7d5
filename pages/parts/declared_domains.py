"""What is declared public about columns, where it comes from and what it would publish."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from core.runs.execution.privacy_certificate import origin
from core.runs.storage.records import TableRecord
from core.services import tables
from core.table.schema import Column, DomainColumn, DomainSource, Kind
from pages.parts.language import said, say
from pages.parts.plain import plain


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
                st.markdown(f"- {plain(declared(public))}{where}")


def declared(column: Column) -> str:
    """What was declared public about a column, in the words of the certificate."""
    kind = said(column.kind.value)
    if column.source is DomainSource.DROP:
        return say("{name}: left out of the synthetic table", name=column.name)
    if column.kind.surrogate:
        return say("{name}: {kind}, replaced by made-up values", name=column.name, kind=kind)
    words = f"{column.name}: {kind}{_listed(column) if column.kind.listed else _line(column)}"
    missing = column.missing or column.codes
    words += say(", may be missing") if missing else say(", never missing")
    if column.codes:
        words += say(" (also written as {codes})", codes=", ".join(column.codes))
    return words


def _listed(column: Column) -> str:
    categories = column.categories or ()
    words = say(", one of {n}: {categories}", n=len(categories), categories=", ".join(categories))
    if column.other:
        words += say(" ({other} stands for all others)", other=column.other)
    return words


def _line(column: Column) -> str:
    if column.kind is Kind.DATETIME:
        words = say(" from {low} to {high}", low=_day(column.low), high=_day(column.high))
        words += say(" in steps of {step:.15g} s", step=column.step) if column.step else ""
    else:
        words = say(" from {low:.15g} to {high:.15g}", low=column.low, high=column.high)
        words += say(" in steps of {step:.15g}", step=column.step) if column.step else ""
    if column.scale == "log":
        words += say(", on a heavy-tail scale")
    if column.spikes:
        spikes = ", ".join(f"{spike:.15g}" for spike in column.spikes)
        words += say(", often exactly {spikes}", spikes=spikes)
    return words


def _day(seconds: float | None) -> str:
    moment = datetime.fromtimestamp(seconds or 0.0, UTC)
    return moment.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
