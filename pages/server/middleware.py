"""What stands between the network and the pages: headers, unknown addresses, a gate for downloads.

All are ASGI middleware of `st.App`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import streamlit
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import net_util, runtime
from streamlit.runtime.media_file_storage import MediaFileKind

from pages.server import admission, download_tokens, routes, sessions, uploads
from pages.server.bare_page import UNCACHED, asked_for, bare_page, base, below_base
from pages.shared.language import to_say

# Streamlit's own pages carry inline styles and one inline script; its charts compile expressions.
# Nothing may be loaded from, sent to or framed by anybody else.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
WITH_CHARTS = {"plan", "review"}
CHARTS = [
    file.name
    for file in (Path(streamlit.__file__).parent / "static/static/js").glob("PlotlyChart.*.js")
]
GONE = to_say(
    "This download link has expired or belongs to someone else. Nothing was sent. Go back to the "
    "page and press the button again."
)
NOWHERE = to_say("There is no page at this address")
UNCHANGED = to_say("Nothing was shown or changed. The address may be outdated or misspelled.")
SERVED = {"media", "static", "_stcore", "component", "auth", "oauth2callback"}


class Headers:
    """Adds `HEADERS` to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        http = scope["type"] == "http"
        charts = http and below_base(scope["path"]) in WITH_CHARTS
        headers = HEADERS | (preloading() if charts else {})
        await self.app(scope, receive, with_headers(send, headers) if http else send)


def preloading() -> dict[str, str]:
    """Has a browser fetch what draws figures with the page, of which it is most.

    Else it asks for it, and begins to read it, only when the page's script has run.
    """
    top = f"/{base()}/".replace("//", "/")
    links = [f"<{top}static/js/{name}>; rel=modulepreload" for name in CHARTS]
    return {"link": ", ".join(links)}


def with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    """The way out for answers that have these headers too."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return send_with_headers


class Addresses:
    """Says so where an address is no page's: Streamlit would show its first one, or nothing."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or _served(scope["path"]):
            await self.app(scope, receive, send)
            return
        if below_base(scope["path"]) == routes.FIRST:  # which is at the top, and only there
            query = scope["query_string"].decode("latin-1")
            top = f"/{base()}/".replace("//", "/") + (f"?{query}" if query else "")
            await RedirectResponse(top)(scope, receive, send)
            return
        nowhere = False

        async def or_say_so(message: Message) -> None:
            nonlocal nowhere
            if message["type"] == "http.response.start":
                kind = MutableHeaders(scope=message).get("content-type", "")
                nowhere = message["status"] == 200 and kind.startswith("text/html")
                if nowhere:  # Streamlit's one page, which it sends for whatever it does not know
                    nothing = bare_page(scope, 404, NOWHERE, (UNCHANGED,), action_bar=True)
                    await nothing(scope, receive, send)
            if not nowhere:
                await send(message)

        await self.app(scope, receive, or_say_so)


def _served(path: str) -> bool:
    """Whether a path is a page's, or under one of Streamlit's own folders, which may hold HTML."""
    below = below_base(path)
    return below in {"", *routes.ROUTES} - {routes.FIRST} or below.split("/")[0] in SERVED


class Downloads:
    """Lets files that buttons made out for a minute, to whom they were made for, into no cache."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        keep_waiting_files()
        _, found, name = scope.get("path", "").rpartition("/media/")
        body = made_by_a_button(name) if found and scope["type"] == "http" else None
        if body is None or scope["method"] == "OPTIONS":
            await self.app(scope, receive, send)
            return
        uncached = with_headers(send, UNCACHED)
        # hashing a large file must not keep others waiting
        if await asyncio.to_thread(
            download_tokens.fetchable, body, sessions.claims_of(HTTPConnection(scope))
        ):
            await self.app(scope, receive, uncached)
            return
        gone = asked_for(scope).render(GONE)
        await PlainTextResponse(gone, status_code=404)(scope, receive, uncached)


_SPARING = "_facsimile_spares_awaited"  # set on Streamlit's keeper of files
MIDDLEWARE = [
    Middleware(Headers),
    Middleware(admission.Gate, refusal=admission.closed),
    Middleware(admission.Gate, refusal=admission.other_host),
    Middleware(admission.Gate, refusal=admission.unneeded_endpoint),
    Middleware(Addresses),
    Middleware(uploads.Uploads),
    Middleware(Downloads),
]


# -- where Streamlit has no public door; tests watch that these are there --------------------------


def keep_from_asking_for_own_address() -> None:
    """Keep the server from asking a service on the internet for its own address.

    Streamlit does so before it refuses a foreign origin, and to print it where a server listens on
    all addresses.
    """
    net_util.get_external_ip = lambda: None


keep_from_asking_for_own_address()


def made_by_a_button(name: str) -> bytes | None:
    """What a file in the server's memory holds, if a download button made it."""
    if not runtime.exists():
        return None
    file = runtime.get_instance().media_file_mgr.read_file(name)
    return file.content if file is not None and file.kind is MediaFileKind.DOWNLOADABLE else None


def keep_waiting_files() -> None:
    """Keep Streamlit from tidying away files that somebody may still come for; once a server.

    It drops what a button made at the second end of any script that does not show the button, which
    on a busy server comes before the browser's request.
    """
    if not runtime.exists():
        return
    manager = runtime.get_instance().media_file_mgr
    if getattr(manager, _SPARING, False):
        return
    unused = manager._get_inactive_file_ids

    def dispensable() -> set[str]:
        return {one for one in unused() if not _awaited(one)}

    def _awaited(file_id: str) -> bool:
        body = made_by_a_button(file_id)
        return body is not None and download_tokens.awaited(body)

    manager._get_inactive_file_ids = dispensable  # type: ignore[method-assign]
    setattr(manager, _SPARING, True)
