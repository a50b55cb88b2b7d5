"""Fields for conditions on columns, as they are written: "age=40..60"."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import streamlit as st

from core.schema.column import DomainColumn, Kind
from core.schema.date_text import is_clock
from pages.shared.language import say
from pages.shared.plain import plain


def where(columns: dict[str, DomainColumn], *, key: str) -> tuple[str, ...]:
    """Conditions on columns that somebody picks, as they are written.

    Args:
      columns: by name.
      key: of the fields, which others on the page must not have.
    """
    picked = st.multiselect(
        say("Only rows with …"), list(columns), key=f"where_{key}", placeholder=say("Choose")
    )
    found = (condition(columns[name], key=f"where_{key}_{name}") for name in picked)
    return tuple(text for texts in found for text in texts)


def condition(column: DomainColumn, *, key: str) -> list[str]:
    """The condition on one column, once something is chosen of it; `key` as in `where`."""
    name = column.name
    if column.kind.listed:
        labels = st.multiselect(
            plain(name), list(column.categories or ()), key=key, placeholder=say("Choose")
        )
        return [f"{name}={'|'.join(labels)}"] if labels else []
    left, right = st.columns(2)
    bounds = (
        (left, "from", say("{column} from", column=plain(name))),
        (right, "to", say("{column} to", column=plain(name))),
    )
    if is_clock(column.date_format):
        ends: list[object] = [
            field.time_input(label, value=None, step=60, key=f"{key}_{word}")
            for field, word, label in bounds
        ]
    elif column.kind is Kind.DATETIME:
        days = [_day(end) for end in (column.low, column.high)]
        ends = [
            field.date_input(
                label,
                value=None,
                min_value=days[0],
                max_value=days[1],
                key=f"{key}_{word}",
            )
            for field, word, label in bounds
        ]
    else:
        ends = [
            field.number_input(label, value=None, key=f"{key}_{word}")
            for field, word, label in bounds
        ]
    if ends == [None, None]:
        return []
    low, high = ("" if end is None else _written(end, column) for end in ends)
    return [f"{name}={low}..{high}"]


def _written(end: object, column: DomainColumn) -> str:
    if isinstance(end, time):
        return end.strftime(column.date_format or "%H:%M:%S")
    return f"{end:.15g}" if isinstance(end, float) else str(end)


def _day(seconds: float | None) -> date:
    return datetime.fromtimestamp(seconds or 0.0, UTC).date()
