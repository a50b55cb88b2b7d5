"""What the secrets say about sign-in, and whether the server may be open without it.

Three things mean that people have to sign in: a secrets file that asks for it or was named when the
server was started, one that asked for it earlier in this workspace, and a server that more than
this machine can reach. Where sign-in is then not configured, everything is closed: an editor that
moves the file away for a moment, a mistyped name or a forgotten option would otherwise make
whoever comes a steward. Files are read anew each time, so a role that is taken away there is gone
with the next click.
"""

from __future__ import annotations

import ipaddress
import logging
import time
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlit import config

from core.runs import operations_log
from core.runs.workspace import Workspace
from pages.shared.language import to_say

OPEN = "sign_in"  # `sign_in = false` at the top of a secrets file: nobody is asked
NETWORK = "open_to_network"  # `= true` beside it: though other machines can reach the server
NEEDED = ("redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url")
SHORTEST_SECRET = 32  # characters: who guesses it writes cookies that make anybody a steward
ROLES = ("steward", "reviewer", "privacy_officer")
MARK = "sign-in-required"  # a file in the workspace
_MARK_TEXT = (
    "People signed in on this workspace, so it is closed while no secrets file says how they do.\n"
    f"To open it without sign-in, write `{OPEN} = false` in the secrets file.\n"
)
_log = logging.getLogger(__name__)
_marked: set[Path] = set()  # workspaces that this process knows to require sign-in
REPORTED_EVERY = 60.0  # seconds: whoever comes makes the server look, and must not fill its log
_reported: dict[str, float] = {}  # when each problem was logged last

WRONG = (
    to_say("Sign-in is not set up correctly on this server."),
    to_say(
        "If you run this server: its console names the file and the problem. Correct it, then "
        "reload this page."
    ),
)
MISSING = (
    to_say("The file that configures sign-in on this server is missing."),
    to_say(
        "If you run this server: its console names the file. Restore it, then reload this page. If "
        "nobody should sign in, put `sign_in = false` in it."
    ),
)
EXPOSED = (
    to_say("Other machines can reach this server, but sign-in is not set up."),
    to_say(
        "If you run this server: set up sign-in as described in docs/deployment.md, or start the "
        "server with `--server.address=127.0.0.1`. If only you can reach it, put `sign_in = false` "
        "and `open_to_network = true` in `.streamlit/secrets.toml`."
    ),
)


@dataclass(frozen=True)
class Problem:
    """Why everything is closed.

    Attributes:
      detail: for the console; names files.
      shown: for whoever comes: what is wrong, and what whoever runs the server does about it.
    """

    detail: str
    shown: tuple[str, str]


def read(*, from_elsewhere: bool = False) -> tuple[dict[str, Any], Problem | None]:
    """All secrets, and why everything is closed; ({}, None) where nobody has to sign in.

    Args:
      from_elsewhere: whether a request came in through an address that is not loopback, whatever
        the server was told to listen on.
    """
    secrets: dict[str, Any] = {}
    found, asking = [], []
    for file in map(Path, config.get_option("secrets.files")):
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if file.is_symlink():
                return {}, Problem(f"{file} is a link to a file that is not there.", MISSING)
            continue
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            _mark()
            return {}, Problem(f"{file} cannot be read: {error}", WRONG)
        found.append(file)
        if content.get(OPEN) is not False or "auth" in content:
            asking.append(file)
        secrets |= content  # as Streamlit does: of two files the later one holds
    if asking:
        _mark()
        problem = _incomplete(secrets, asking[0])
        return ({} if problem else secrets), problem
    return {}, _why_closed(bool(found), secrets.get(NETWORK) is True, from_elsewhere)


def _incomplete(secrets: Mapping[str, Any], file: Path) -> Problem | None:
    """What is missing where a file asks for sign-in."""
    auth = secrets.get("auth")
    if not isinstance(auth, dict):
        return Problem(
            f"{file} has no section [auth], spelt just so. Write one, or `{OPEN} = false` at its "
            "top if nobody shall sign in.",
            WRONG,
        )
    own = auth.get("default")  # Streamlit takes the provider's settings from here, if it is there
    given = auth | (own if isinstance(own, dict) else {})
    missing = [name for name in NEEDED if not _text(given.get(name))]
    if missing:
        return Problem(f"{file}: [auth] lacks {' and '.join(missing)}.", WRONG)
    if len(auth["cookie_secret"]) < SHORTEST_SECRET:
        short = f"cookie_secret has fewer than {SHORTEST_SECRET} characters"
        return Problem(f"{file}: {short}.", WRONG)
    if not any(listed(secrets, role) for role in ROLES):
        return Problem(f"{file}: [roles] gives nobody a role, so nobody could come in.", WRONG)
    return None


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def listed(secrets: Mapping[str, Any], role: str) -> set[str]:
    """The addresses that have a role; a list that is none names nobody."""
    roles = secrets.get("roles")
    names = roles.get(role) if isinstance(roles, dict) else None
    addresses = {str(name).strip().lower() for name in names} if isinstance(names, list) else set()
    return addresses - {""}


def _why_closed(said_open: bool, said_network: bool, from_elsewhere: bool) -> Problem | None:
    """Why a server is closed on which no file asks for sign-in.

    Args:
      said_open: whether a file says that nobody signs in.
      said_network: whether it says so for other machines too.
      from_elsewhere: see `read`.
    """
    files = " or ".join(map(str, config.get_option("secrets.files")))
    if not said_open and config.is_manually_set("secrets.files"):
        return Problem(f"{files} was named as the secrets file and is not there.", MISSING)
    if not said_open and _required_earlier():
        mark = Workspace.default_home() / MARK
        return Problem(
            f"{files} is not there, and people signed in here earlier ({mark}).", MISSING
        )
    if (from_elsewhere or reachable()) and not (said_open and said_network):
        return Problem(
            f"The server listens on, or answers to, more than this machine, and {files} does not "
            f"configure sign-in. To open it to whoever reaches it: `{OPEN} = false` and "
            f"`{NETWORK} = true` there.",
            EXPOSED,
        )
    return None


def reachable() -> bool:
    """Whether more than this machine may reach the server, going by its settings.

    It listens on all addresses where none is set. A name in `server.allowedHosts` that is not this
    machine's own is there for others, who come through a proxy.
    """
    names = [config.get_option("server.address"), *config.get_option("server.allowedHosts")]
    return not all(map(loopback, names))


def loopback(name: str | None) -> bool:
    """Whether a host's name or address means this machine alone.

    >>> [loopback(name) for name in ("localhost", "127.8.0.1", "[::1]", "0.0.0.0", "::", None)]
    [True, True, True, False, False, False]
    """
    plain = (name or "").strip().strip("[]").lower().rstrip(".")
    if plain == "localhost":
        return True
    with suppress(ValueError):
        address = ipaddress.ip_address(plain)
        mapped = address.ipv4_mapped if address.version == 6 else None
        return (mapped or address).is_loopback
    return False


def _mark() -> None:
    """Remember beyond this process that people sign in on this workspace."""
    home = Workspace.default_home()
    if home in _marked:
        return
    _marked.add(home)
    try:
        mark = Workspace.default().home / MARK
        if not mark.exists():
            mark.write_text(_MARK_TEXT, encoding="utf-8")
    except OSError as error:
        _log.warning("Sign-in: after a restart nothing will say that it was required: %s", error)


def _required_earlier() -> bool:
    home = Workspace.default_home()
    return home in _marked or (home / MARK).exists()


def report(problem: Problem | None) -> None:
    """Say on the console what is wrong, now and then."""
    now = time.monotonic()
    if problem and now - _reported.get(problem.detail, -REPORTED_EVERY) >= REPORTED_EVERY:
        _reported[problem.detail] = now
        _log.error("Sign-in: %s", problem.detail)
        operations_log.record("sign_in_broken")
