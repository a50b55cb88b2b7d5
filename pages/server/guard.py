"""Who may do what. Whether people sign in at all, `sign_in_settings` knows."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, Literal, get_args

import streamlit as st

from core.runs import operations_log
from pages.server import sign_outs
from pages.server.sign_in_settings import listed, read, report
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain

Role = Literal["steward", "reviewer", "privacy_officer"]
ROLES: tuple[Role, ...] = get_args(Role)
CALLED: dict[Role, str] = {
    "steward": to_say("steward"),
    "reviewer": to_say("reviewer"),
    "privacy_officer": to_say("privacy officer"),
}
TRUSTED = "trust_addresses"  # `= true` at its top: also addresses that nobody says were verified
SIGN_IN_SECONDS = 12 * 3600  # Streamlit's cookie lasts 30 days, longer than a day's work needs
CLOCKS_APART = 300  # seconds that the provider's clock may be ahead of ours
_log = logging.getLogger(__name__)


def configured() -> bool:
    """Whether people sign in here, or would if the secrets were not set up wrongly."""
    secrets, problem = read()
    return bool(problem) or "auth" in secrets


def fresh(claims: Mapping[str, Any]) -> bool:
    """Whether these claims are of somebody who signed in, not too long ago, and not out since."""
    issued = claims.get("iat")
    if not claims.get("is_logged_in") or not isinstance(issued, int | float):
        return False
    young = -CLOCKS_APART <= time.time() - issued <= SIGN_IN_SECONDS
    return young and not sign_outs.over(claims)


def address_of(claims: Mapping[str, Any]) -> str:
    """The address that claims vouch for, in lower case; "" where they do not.

    Providers need not say whether they have seen that an address is somebody's, and with some of
    those people write any address into their own account. So silence vouches for nothing, unless
    the secrets say that addresses there are given by the house.
    """
    if not fresh(claims):
        return ""
    if _unsaid(claims):
        vouched = read()[0].get(TRUSTED) is True
    else:
        vouched = str(claims["email_verified"]).lower() == "true"
    return str(claims.get("email") or "").strip().lower() if vouched else ""


def _unsaid(claims: Mapping[str, Any]) -> bool:
    return "email_verified" not in claims


def roles_of(address: str) -> set[Role]:
    """What an address may be, as the secrets now say; everything where nobody signs in.

    Roles are lists of e-mail addresses under [roles].
    """
    secrets, problem = read()
    if problem:
        return set()
    if "auth" not in secrets:
        return set(ROLES)
    return {role for role in ROLES if address and address in listed(secrets, role)}


def people() -> list[str]:
    """The addresses of everybody who may see tables."""
    secrets, _ = read()
    return sorted(listed(secrets, "steward") | listed(secrets, "reviewer"))


def signed_in() -> bool:
    """Whether this server has nothing to ask of whoever is here."""
    _, problem = read()
    return not problem and (not configured() or fresh(_claims()))


def _claims() -> Mapping[str, Any]:
    claims: Mapping[str, Any] = st.user.to_dict()
    return claims


def sign_in() -> None:
    """Ask for sign-in (OIDC) where the server's secrets configure it, and stop until it is done.

    Where they cannot be understood everybody is stopped; the console says why.
    """
    _, problem = read()
    report(problem)
    if problem:
        wrong, way_out = map(said, problem.shown)
        st.error(f"{wrong} {say('Nothing was shown or changed.')} {way_out}")
        st.stop()
    if signed_in():
        if configured():
            sign_outs.seen(_claims())
        return
    st.title("Facsimile")
    st.write(say("Sign in to continue."))
    st.button(say("Sign in"), type="primary", on_click=st.login)
    st.stop()


def address() -> str:
    """The signed-in person's address, in lower case; "" without sign-in."""
    return address_of(_claims()) if configured() else ""


def person() -> str:
    """The signed-in person's name or address; "" without sign-in."""
    if not configured():
        return ""
    claims = _claims()
    return str(claims.get("name") or claims.get("email") or "")


def roles() -> set[Role]:
    """What this person may be."""
    return roles_of(address())


def signature() -> str:
    """What a note is signed with: the address, and in brackets the name; "" without sign-in.

    Names are often people's own to choose, so that two may have one, or one several.
    """
    vouched, name = address(), person()
    return f"{vouched} ({name})" if vouched and name != vouched else vouched or name


def steward() -> bool:
    """Whether this person is a steward; without sign-in whoever is at this machine is."""
    return "steward" in roles()


def sets_limits() -> bool:
    """Whether this person may set limits: privacy officers, and stewards where none is named."""
    if "privacy_officer" in roles():
        return True
    return steward() and not listed(read()[0], "privacy_officer")


def require(*any_of: Role) -> None:
    """Begin a page: stop unless the person has one of these roles."""
    sign_in()
    if roles() & set(any_of):
        return
    if signed_in() and configured() and not address() and _unsaid(_claims()):
        _log.warning(
            "Sign-in: the provider does not say whether addresses are verified (email_verified), "
            "so nobody has a role. If people cannot change theirs there, write `%s = true` at the "
            "top of the secrets file.",
            TRUSTED,
        )
    operations_log.record("role_refused", roles=",".join(sorted(roles())) or "none")
    st.error(
        say(
            "Your account does not have access to this page. Nothing was shown or changed. Ask the "
            "person who runs this server for access."
        )
    )
    st.stop()


def may(*any_of: Role) -> bool:
    """Whether the person still has one of these roles; for parts that are drawn without a page."""
    return signed_in() and bool(roles() & set(any_of))


def who_is_here() -> None:
    """Who is signed in, and the way out; nothing where nobody signs in."""
    if not configured():
        return
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        named = ", ".join(said(CALLED[role]) for role in sorted(roles())) or say("no role")
        st.caption(f"{plain(person())} · {named}", width="content")
        st.button(
            say("Sign out"),
            on_click=sign_out,
            type="tertiary",
            icon=":material/logout:",
            help=say("Signs you out here and in all other tabs and browsers."),
        )


def sign_out() -> None:
    """Sign this person out everywhere, then let the browser forget its cookie."""
    claims = _claims()
    if fresh(claims):
        sign_outs.end(claims)
    st.logout()
