"""Who and what is let through before anything of the app answers; ASGI middleware of `st.App`."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from streamlit import config
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from pages.server import sign_in_settings
from pages.server.bare_page import bare_page, below_base
from pages.shared.language import to_say

NOT_THIS_NAME = to_say("This server does not recognise the name in this address")
NOTHING = to_say("Nothing was shown or changed.")
NAME_TEXTS = (
    NOTHING,
    to_say(
        "If you run this server and people should reach it under this name, add the name to "
        "`server.allowedHosts`; see “The proxy” in docs/deployment.md."
    ),
)
# What below `_stcore` a browser needs. The rest answers nobody: `metrics` tells how large waiting
# uploads are, `agent/…` describes and drives the app for programs, `script-health-check` runs it.
NEEDED = {"health", "host-config", "stream", "upload_file", "bidi-components"}

CLOSED = to_say("This server is closed")
# What is answered all the same, to machines that watch the server: it runs, though it is closed.
WATCHED = {"_stcore/health", "readyz", "metrics"}


class Gate:
    """Lets a request through, or answers it with what `refusal` says instead.

    A WebSocket that is refused is closed before it opens.
    """

    def __init__(self, app: ASGIApp, refusal: Callable[[Scope], Response | None]) -> None:
        self.app = app
        self.refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        answer = None if scope["type"] == "lifespan" else self.refusal(scope)
        if answer is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose()(scope, receive, send)
        else:
            await answer(scope, receive, send)


def other_host(scope: Scope) -> Response | None:
    """Refuses names that are not in `server.allowedHosts`, whatever is asked.

    A web page of another site can have its own name lead to this machine (DNS rebinding), and is
    then of one origin with the server in the browser's eyes. Streamlit looks at the name where a
    WebSocket is opened, and nowhere else.
    """
    if addressed_correctly(HTTPConnection(scope)):
        return None
    return bare_page(scope, 403, NOT_THIS_NAME, NAME_TEXTS)


def addressed_correctly(connection: HTTPConnection) -> bool:
    """Whether a request calls the server by one of its names, and a WebSocket is its own page's.

    Streamlit lets pages of every other server on this machine open a WebSocket.
    """
    host, origin = connection.headers.get("host"), connection.headers.get("origin")
    # an empty list lets every name through, for Streamlit, and none here
    if not config.get_option("server.allowedHosts") or not is_host_allowed(host):
        return False
    if connection.scope["type"] != "websocket" or origin is None:
        return True
    allowed = config.get_option("server.corsAllowedOrigins")
    return urlsplit(origin).netloc == host or origin in allowed


def unneeded_endpoint(scope: Scope) -> Response | None:
    """Hides the addresses that Streamlit answers at and no browser needs."""
    return PlainTextResponse("", status_code=404) if unneeded(scope["path"]) else None


def unneeded(path: str) -> bool:
    """Whether a path is of Streamlit's own and none that a browser needs."""
    parts = [part for part in below_base(path).split("/") if part]
    return parts[:1] == ["_stcore"] and not NEEDED.intersection(parts[1:2])


def closed(scope: Scope) -> Response | None:
    """Answers with one page that says why, while people would have to sign in and cannot."""
    problem = why_closed(scope)
    if problem is None:
        return None
    wrong, way_out = problem.shown
    return bare_page(scope, 503, CLOSED, (wrong, NOTHING, way_out))


def why_closed(scope: Scope) -> sign_in_settings.Problem | None:
    """Why a request is answered with nothing of the app."""
    if below_base(scope["path"]) in WATCHED:
        return None
    # The address that the request came in at: what started the server may have chosen another than
    # Streamlit's settings name.
    listening = scope.get("server")
    from_elsewhere = listening is not None and not sign_in_settings.loopback(listening[0])
    _, problem = sign_in_settings.read(from_elsewhere=from_elsewhere)
    sign_in_settings.report(problem)
    return problem
