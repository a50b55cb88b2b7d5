"""Files that wait for the one request they were made for: by whom, and until when.

Streamlit keeps what a download button made in the server's memory and hands it to whoever knows its
address, without a cookie. So each file is entered here, by what it holds, with the person it was
made for, and `doorway.Downloads` asks here before it lets an answer out.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pages.parts import guard

SECONDS = 60.0  # from the click to the browser's request; it follows at once


@dataclass(frozen=True)
class _Made:
    """A file that waits for its one request."""

    address: str
    until: float
    allowed: Callable[[], bool]


_waiting: dict[str, list[_Made]] = {}  # by what the file holds
_lock = threading.Lock()


def enter(body: bytes, address: str, allowed: Callable[[], bool]) -> None:
    """Let a file be fetched, once and soon.

    Args:
      body: what it holds.
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


def taken(body: bytes, claims: Mapping[str, Any], *, keep: bool = False) -> bool:
    """Whether a file may go out to whoever asks for it; then it may not a second time.

    Args:
      body: what the file holds.
      claims: of the sign-in that came with the request, empty without one.
      keep: it may, because this is only the page asking whether the file is there.
    """
    address = guard.address_of(claims) if guard.configured() else ""
    digest, now = _digest(body), time.monotonic()
    with _lock:
        waiting = _waiting.get(digest, [])
        mine = next((one for one in waiting if one.address == address and one.until > now), None)
        if mine is None:
            return False
        if not keep:
            waiting.remove(mine)
        if not waiting:
            del _waiting[digest]
    return mine.allowed()


def awaited(body: bytes) -> bool:
    """Whether somebody may still come for a file."""
    with _lock:
        if not _waiting:  # the usual case, which need not hash
            return False
    digest, now = _digest(body), time.monotonic()
    with _lock:
        return any(one.until > now for one in _waiting.get(digest, []))


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
