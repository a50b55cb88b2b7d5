"""Addresses: one entry a page, and how to go from one to another with a table or a run in hand."""

from __future__ import annotations

import importlib
from typing import NoReturn

import streamlit as st

from pages.server import guard
from pages.shared.language import said, to_say

ROUTES = {
    "tables": (to_say("Tables"), ":material/table:"),
    "plan": (to_say("Plan"), ":material/tune:"),
    "training": (to_say("Training"), ":material/monitoring:"),
    "review": (to_say("Review"), ":material/visibility:"),
    "ask": (to_say("Ask"), ":material/help:"),
    "download": (to_say("Download"), ":material/download:"),
    "ledger": (to_say("Ledger"), ":material/receipt_long:"),
}
# for whom a page is listed; each page begins by asking `guard.require` itself
LISTED: dict[str, set[guard.Role]] = {
    "review": {"steward", "reviewer"},
    "ask": {"steward", "reviewer"},
    "ledger": {"steward", "privacy_officer"},
}
FIRST = "tables"


def page(name: str) -> st.Page:
    """The page called `name`, rendering on demand; listed for those who may open it."""
    title, icon = ROUTES[name]
    own = guard.roles() if guard.signed_in() else set()

    def render() -> None:
        if name == FIRST and own and not _listed(name, own):
            go(next(other for other in ROUTES if _listed(other, own)))
        importlib.import_module(f"pages.{name}.page").render()

    render.__name__ = name
    step = list(ROUTES).index(name) + 1  # the ledger is none: it goes along with all of them
    return st.Page(
        render,
        title=said(title),
        icon=icon if name == "ledger" else f":material/counter_{step}:",
        url_path=name,
        default=name == FIRST,
        visibility="visible" if _listed(name, own) else "hidden",
    )


def _listed(name: str, roles: set[guard.Role]) -> bool:
    return bool(LISTED.get(name, {"steward"}) & roles)


def pages() -> list[st.Page]:
    """All pages, in the order a table travels."""
    return [page(name) for name in ROUTES]


def go(name: str, **query: str) -> NoReturn:
    """Leave for another page with these parameters in its address."""
    st.switch_page(page(name), query_params=query)
    raise AssertionError("switch_page does not return")  # pragma: no cover


def button(label: str, name: str, *, primary: bool = False, **query: str) -> None:
    """A button with another page's icon that leads there.

    Args:
      label: of the button, shown as it stands.
      name: of the page, as in `ROUTES`.
      primary: whether it is the page's main way on.
    """
    if st.button(label, type="primary" if primary else "secondary", icon=ROUTES[name][1]):
        go(name, **query)
