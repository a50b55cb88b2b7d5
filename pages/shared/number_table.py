"""A table of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import streamlit as st

from pages.shared.language import said

WHOLE = 12  # rows of a table that does not scroll


def number_table(rows: Sequence[dict[str, Any]], numeric: Sequence[str], format: str) -> None:
    """Rows as a table, some columns of it in one number format; its headings are said."""
    rows = [  # without what is said of no row
        {name: one[name] for name in one if any(row[name] not in (None, "") for row in rows)}
        for one in rows
    ]
    long = [name for name in (rows[0] if rows else ()) if any(len(str(r[name])) > 90 for r in rows)]
    config = {
        name: st.column_config.NumberColumn(
            said(name), format=format, width=90 if len(name) < 3 else None
        )
        if name in numeric
        else st.column_config.Column(said(name), width="large" if name in long else None)
        for name in (rows[0] if rows else ())
    }
    tall = 92 if long else None  # sentences break into lines and are not cut
    if rows:
        high: Literal["content", "auto"] = "content" if len(rows) <= WHOLE else "auto"
        st.dataframe(
            rows,
            hide_index=True,
            column_config=config,
            placeholder="—",
            row_height=tall,
            height=high,
        )
