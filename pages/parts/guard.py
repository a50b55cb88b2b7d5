"""Who may see what. Without a secrets file the server is for the person at this machine.

A secrets file means that somebody wanted sign-in: one that cannot be read, or does not say how,
locks the server for everybody, since opening it would make whoever comes a steward.
"""

from __future__ import annotations

import logging
import tomllib
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit import config

Role = Literal["steward", "reviewer"]
OPEN = "sign_in"  # `sign_in = false` at the top of a secrets file: nobody is asked
_log = logging.getLogger(__name__)


def _problem() -> str:
    """Why nobody may come in; "" where sign-in is configured, or was never wanted."""
    wanted, configured = [], False
    for file in map(Path, config.get_option("secrets.files")):
        if not file.exists():
            continue
        try:
            secrets = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            return f"{file} cannot be read: {error}"
        if secrets.get(OPEN) is False and "auth" not in secrets:
            continue
        wanted.append(str(file))
        configured = configured or isinstance(secrets.get("auth"), dict)
    if wanted and not configured:
        return (
            f"{wanted[0]} has no section [auth], spelt just so. Write one, or `{OPEN} = false` at "
            "its top if nobody shall sign in."
        )
    return ""


def _configured() -> bool:
    return st.secrets.load_if_toml_exists() and "auth" in st.secrets


def signed_in() -> bool:
    """Whether this server has nothing to ask of whoever is here."""
    return not _problem() and (not _configured() or bool(st.user.is_logged_in))


def sign_in() -> None:
    """Ask for sign-in (OIDC) where the server's secrets configure it, and stop until it is done.

    Where they cannot be understood everybody is stopped; the console says why.
    """
    problem = _problem()
    if problem:
        _log.error("Sign-in: %s", problem)
        st.error(
            "Nobody can sign in here: this server's sign-in is set up wrongly. Nothing was shown "
            "or changed. Ask whoever runs it to read its console."
        )
        st.stop()
    if signed_in():
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
    return not _problem() and (not _configured() or "steward" in _roles())


def _roles() -> set[str]:
    """What the person may be; an address that the provider says is not verified may be nothing."""
    if st.user.get("email_verified", True) is False:
        return set()
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
