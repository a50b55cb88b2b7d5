"""Signing out on the server: in every tab and browser, and for every copy of the cookie.

Streamlit clears the cookie of the browser at hand and the session of one tab; the cookie by itself
would go on for as long as it is young enough.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pages.server import sessions

_seen: set[tuple[str, str, float]] = set()  # what this process recorded, by workspace


def person_of(claims: Mapping[str, Any]) -> str:
    """A digest of whom claims are of: the provider's own number for them, else their address."""
    named = [claims.get("iss"), claims.get("sub") or claims.get("email")]
    return hashlib.sha256(json.dumps(named, default=str).encode()).hexdigest()


def seen(claims: Mapping[str, Any]) -> None:
    """Record a sign-in, so that signing out elsewhere ends it too."""
    # a server starts without its database
    from core.services.access import record_sign_in
    from pages.shared.workspace_store import store

    kept, person, issued = store(), person_of(claims), float(claims["iat"])
    key = (str(kept.workspace.home), person, issued)
    if key not in _seen:
        record_sign_in(kept, person, issued)
        _seen.add(key)


def over(claims: Mapping[str, Any]) -> bool:
    """Whether the person has signed out since."""
    # a server starts without its database
    from core.services.access import sign_in_ended
    from pages.shared.workspace_store import store

    return sign_in_ended(store(), person_of(claims), float(claims["iat"]))


def end(claims: Mapping[str, Any]) -> None:
    """Sign a person out everywhere; their other open pages ask for sign-in at once."""
    # a server starts without its database
    from core.services.access import end_sign_ins
    from pages.shared.workspace_store import store

    person = person_of(claims)
    end_sign_ins(store(), person, float(claims["iat"]))
    sessions.draw_anew(lambda others: bool(others) and person_of(others) == person)
