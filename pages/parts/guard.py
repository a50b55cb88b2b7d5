"""Who may see what. Without sign-in configured the server is for the person at this machine."""

from __future__ import annotations

from typing import Literal

import streamlit as st

Role = Literal["steward", "reviewer"]


def _configured() -> bool:
    return st.secrets.load_if_toml_exists() and "auth" in st.secrets


def sign_in() -> None:
    """Ask for sign-in (OIDC) where the server's secrets configure it, and stop until it is done."""
    if not _configured() or st.user.is_logged_in:
        return
    st.title("Facsimile")
    st.write("Sign in to go on.")
    st.button("Sign in", type="primary", on_click=st.login)
    st.stop()


def person() -> str:
    """The signed-in person's name or address; "" without sign-in."""
    if not _configured():
        return ""
    return str(st.user.get("name") or st.user.get("email") or "")


def steward() -> bool:
    """Whether this person is a steward; without sign-in whoever is at this machine is."""
    return not _configured() or "steward" in _roles()


def _roles() -> set[str]:
    roles = st.secrets.get("roles", {})
    address = str(st.user.get("email", "")).lower()
    return {
        role
        for role in ("steward", "reviewer")
        if address in {name.lower() for name in roles.get(role, [])}
    }


def require(role: Role) -> None:
    """Begin a page: stop unless the person has the role. Reviewers see, stewards also do.

    Roles are lists of e-mail addresses under [roles] in the server's secrets.
    """
    sign_in()
    if not _configured():
        return
    if _roles() & ({"steward"} if role == "steward" else {"steward", "reviewer"}):
        return
    st.error(
        "Your account may not open this page. Nothing was shown or changed. "
        "Ask whoever runs this server to add you."
    )
    st.stop()
