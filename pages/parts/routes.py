"""Addresses: one entry a page, and how to go from one to another with a table or a run in hand."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path
from typing import NoReturn

import streamlit as st

ROUTES = {
    "tables": ("Tables", ":material/table:"),
    "plan": ("Plan", ":material/tune:"),
    "training": ("Training", ":material/monitoring:"),
    "review": ("Review", ":material/visibility:"),
    "download": ("Download", ":material/download:"),
    "ledger": ("Ledger", ":material/receipt_long:"),
}


def page(name: str) -> st.Page:
    """The page called `name`, rendering on demand."""
    title, icon = ROUTES[name]

    def render() -> None:
        importlib.import_module(f"pages.{name}").render()

    render.__name__ = name
    return st.Page(render, title=title, icon=icon, url_path=name, default=name == "tables")


def pages() -> list[st.Page]:
    """All pages, in the order a table travels."""
    return [page(name) for name in ROUTES]


def front_door() -> None:
    """Run app.py, for a page file that the server executed without it.

    Until some session has called `st.navigation`, a server asked for /review runs pages/review.py
    alone. Going through app.py brings the sign-in, the navigation and the page that was asked for.
    """
    runpy.run_path(str(Path(__file__).resolve().parents[2] / "app.py"), run_name="__main__")


def go(name: str, **query: str) -> NoReturn:
    """Leave for another page with these parameters in its address."""
    st.switch_page(page(name), query_params=query)
    raise AssertionError("switch_page does not return")  # pragma: no cover


def button(label: str, name: str, *, primary: bool = False, **query: str) -> None:
    """A button with another page's icon that leads there.

    Args:
      label: of the button.
      name: of the page, as in `ROUTES`.
      primary: whether it is the page's main way on.
      query: parameters for the address.
    """
    if st.button(label, type="primary" if primary else "secondary", icon=ROUTES[name][1]):
        go(name, **query)
