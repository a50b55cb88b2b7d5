"""Figures on pages: in the reader's language, and readable in a narrow window."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import streamlit as st

from core.figures.elements import Figure
from core.language.catalogue import say_figure
from pages.shared import language

NARROW = 360  # pixels of a figure on a telephone
PANEL, LABEL, BESIDE = 240, 15, 150  # pixels of a panel, of a slanted label, of what stands beside


def picture(figure: Figure, *, key: str, alt: str) -> None:
    """A figure without a tool bar, and its sentence for screen readers.

    In a narrower window than it can be read in, it scrolls in a box of its own.
    """
    shown, least = drawn(figure), least_width(figure)
    box = st.container(key=f"wide_{key}") if least > NARROW else None
    if box is not None:
        box.html(f"<style>.st-key-wide_{key} > * {{min-width: {least}px;}}</style>")
    with box or nullcontext():
        st.plotly_chart(shown, key=key, alt=alt, config={"displayModeBar": False})


def least_width(figure: Figure) -> int:
    """Pixels that a figure's panels and the labels below them need beside one another.

    >>> least_width({"layout": {"xaxis": {"tickvals": [0, 1]}}})
    180
    >>> least_width({"layout": {"xaxis": {"domain": [0, 0.4]}, "xaxis2": {"domain": [0.6, 1]}}})
    630
    """
    axes = [axis for name, axis in figure["layout"].items() if name.startswith("xaxis")]
    beside = sum("domain" in axis for axis in axes) > 1
    panels = axes if beside else axes[:1]
    return BESIDE + sum(
        max(PANEL * beside, LABEL * len(axis.get("tickvals", ()))) for axis in panels
    )


def drawn(figure: Figure) -> dict[str, Any]:
    """The figure in the language of whoever is here, and without links, as Streamlit takes it.

    On a telephone, a finger on it moves the page, where a mouse chooses what to enlarge.
    """
    said = say_figure(figure, language.spoken())
    if "Mobi" in st.context.headers.get("User-Agent", ""):
        said["layout"]["dragmode"] = False
    return said
