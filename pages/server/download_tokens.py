"""Files that wait for the browser of whom they were made for: whose, and until when.

Streamlit keeps what a download button made in the server's memory and hands it to whoever knows its
address, without a cookie. So each file is entered here, by what it holds, with the person it was
made for, and `middleware.Downloads` asks here before it lets an answer out.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pages.server import guard

# From the click to the browser's requests. There are several: Streamlit's page asks for the file by
# script while the browser fetches it, and a browser repeats what its cache or the line broke off.
SECONDS = 60.0


@dataclass(frozen=True)
class _Made:
    """A file that waits for its maker's browser."""

    address: str
    until: float
    allowed: Callable[[], bool]


_waiting: dict[str, list[_Made]] = {}  # by what the file holds
_lock = threading.Lock()


def enter(body: bytes, address: str, allowed: Callable[[], bool]) -> None:
    """Let a file be fetched, soon.

    Args:
      address: of whom it was made for, "" where nobody signs in.
      allowed: asked again when it is fetched.
    """
    now = time.monotonic()
    with _lock:
        for digest, others in list(_waiting.items()):
            _waiting[digest] = [one for one in others if one.until > now]
            if not _waiting[digest]:
                del _waiting[digest]
        _waiting.setdefault(_digest(body), []).append(_Made(address, now + SECONDS, allowed))


def fetchable(body: bytes, claims: Mapping[str, Any]) -> bool:
    """Whether a file may go out to whoever asks for it.

    Args:
      claims: of the sign-in that came with the request, empty without one.
    """
    address = guard.address_of(claims) if guard.configured() else ""
    return any(one.address == address and one.allowed() for one in _waiting_for(body))


def awaited(body: bytes) -> bool:
    """Whether somebody may still come for a file."""
    return bool(_waiting_for(body))


def _waiting_for(body: bytes) -> list[_Made]:
    with _lock:
        if not _waiting:  # the usual case, which need not hash
            return []
    digest, now = _digest(body), time.monotonic()
    with _lock:
        return [one for one in _waiting.get(digest, []) if one.until > now]


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
