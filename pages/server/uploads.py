"""Uploaded bytes: who may send them, how many at once, and when they go.

Streamlit takes a file from whoever has a session and keeps it in the server's memory, also after
the session. Here a steward alone sends files, no more wait than a page needs, and what nobody comes
back for is freed. It keeps what a page says of itself too, up to 25 MB a page; of people without a
role a hundredth of a megabyte is heard.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config, runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.server import guard, sessions
from pages.server.bare_page import UNCACHED, below_base

_GENERATION = "upload_generation"
LIMIT = "FACSIMILE_UPLOADS_MB"
MOST_FILES = 16  # of one person: a tab waits for two at most, a table and a schema
STRANGERS_BYTES = 10_000  # of one message; what a page for signing in sends has about a thousand
TOO_BIG = 1009  # of RFC 6455
FOLDER = ["_stcore", "upload_file"]  # then the session's id, and the file's


def upload_key() -> str:
    """A key for the uploader that changes when its bytes were freed, so that it shows empty."""
    return f"upload_{st.session_state.get(_GENERATION, 0)}"


def free_uploads() -> None:
    """Drop all uploaded bytes of this session from the server's memory.

    Uses the session's upload manager, which has no public door; a test watches that it is there.
    """
    context = get_script_run_ctx()
    if context is not None:
        context.uploaded_file_mgr.remove_session_files(context.session_id)
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1


def most_bytes() -> int:
    """How many bytes of one person may wait: one file as large as any may be.

    A table is read as soon as it is there, and freed: nobody needs two at a time.
    """
    megabytes = os.environ.get(LIMIT, "").strip()
    allowed = (
        int(megabytes) if megabytes.isdigit() else int(config.get_option("server.maxUploadSize"))
    )
    return allowed * 2**20


class Uploads:
    """Takes files of a steward's own session, so many at a time; others before they send any."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._owners: dict[str, str] = {}  # sessions that sent files, and whose they are
        self._coming: Counter[str] = Counter()  # bytes of files under way, by person
        self._files_coming: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "websocket":
            known = await asyncio.to_thread(has_role, HTTPConnection(scope))
            try:
                await self.app(
                    scope, receive if known else _short_messages_only(receive, send), send
                )
            finally:
                self._free_later()
            return
        session_id = sent_by(scope) if runtime.exists() else None
        if session_id is None:
            await self.app(scope, receive, send)
            return
        self._free_ended()
        connection = HTTPConnection(scope)
        person = await asyncio.to_thread(steward_of, session_id, connection)
        size = connection.headers.get("content-length", "")
        refusal = self._refusal(person, size)
        if refusal is not None or person is None:
            await (refusal or _answer(403, ""))(scope, receive, send)
            return
        self._owners[session_id] = person
        with self._under_way(person, int(size)):
            await self.app(scope, receive, send)
        self._free_ended()  # the page may have gone meanwhile

    def _refusal(self, person: str | None, size: str) -> Response | None:
        """Why a file is not taken; for programs, a page shows that its upload failed."""
        if person is None:
            return _answer(403, "Only a steward's own page sends files. Nothing was kept.")
        if not size.isdigit():
            return _answer(411, "How long the file is was not said. Nothing was kept.")
        files, waiting = self._waiting(person)
        if files >= MOST_FILES or waiting + int(size) > most_bytes():
            return _answer(413, "Too much of yours is waiting already. Nothing was kept.")
        return None

    def _waiting(self, person: str) -> tuple[int, int]:
        """Files and bytes of a person, in memory and on their way."""
        kept = [
            size
            for session_id, sizes in sessions.waiting_files().items()
            if self._owners.get(session_id) == person
            for size in sizes
        ]
        return len(kept) + self._files_coming[person], sum(kept) + self._coming[person]

    @contextmanager
    def _under_way(self, person: str, size: int) -> Iterator[None]:
        self._coming[person] += size
        self._files_coming[person] += 1
        try:
            yield
        finally:
            self._coming[person] -= size
            self._files_coming[person] -= 1

    def _free_later(self) -> None:
        """Free what a closed page left, once it can no longer be taken up again."""
        seconds = float(config.get_option("server.disconnectedSessionTTL")) + 1.0
        asyncio.get_running_loop().call_later(seconds, self._free_ended)

    def _free_ended(self) -> None:
        if runtime.exists():
            sessions.free_ended()
            self._owners = {key: own for key, own in self._owners.items() if sessions.known(key)}


def _answer(status: int, why: str) -> Response:
    return PlainTextResponse(why, status_code=status, headers=UNCACHED)


def has_role(connection: HTTPConnection) -> bool:
    """Whether a request is of somebody who may open any page at all."""
    claims = sessions.claims_of(connection) if guard.configured() else {}
    return bool(guard.roles_of(guard.address_of(claims) if claims else ""))


def _short_messages_only(receive: Receive, send: Send) -> Receive:
    """The way in for people without a role: a long message ends the line."""

    async def receive_little() -> Message:
        message = await receive()
        content = message.get("bytes") or message.get("text") or b""
        if len(content) <= STRANGERS_BYTES:
            return message
        await send({"type": "websocket.close", "code": TOO_BIG})
        return {"type": "websocket.disconnect", "code": TOO_BIG}

    return receive_little


def steward_of(session_id: str, connection: HTTPConnection) -> str | None:
    """The address of the steward whose session and request these are; "" where nobody signs in.

    Args:
      session_id: of a page that is open.
      connection: the request, whose sign-in has to be the session's.
    """
    claims = sessions.claims_in(session_id)
    if claims is None:
        return None
    address = sent = ""
    if guard.configured():
        address = guard.address_of(claims)
        sent = guard.address_of(sessions.claims_of(connection))
    return address if address == sent and "steward" in guard.roles_of(address) else None


def sent_by(scope: Scope) -> str | None:
    """The session that a request sends a file for; None where it sends none."""
    if scope["type"] != "http" or scope["method"] != "PUT":
        return None
    parts = [part for part in below_base(scope["path"]).split("/") if part]
    return parts[2] if parts[:2] == FOLDER and len(parts) > 2 else None
