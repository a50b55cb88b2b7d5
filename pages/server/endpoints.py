"""What machines ask of the server: is it ready, and how does it go.

`/readyz` says of three things whether they work and nothing more, so it asks nobody who they are.
`/metrics` is shut unless FACSIMILE_METRICS_TOKEN is set, and then open to who sends it: behind a
proxy every request comes from this machine, so that an address tells nothing about who asks.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit.logger
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from core.runs import operations_log
from pages.server import sign_in_settings
from pages.server.bare_page import UNCACHED

TOKEN = "FACSIMILE_METRICS_TOKEN"
SHORTEST_TOKEN = 16  # characters; a shorter one opens nothing
PATIENCE = 5.0  # seconds that a disk or a database may take to answer
FORMAT = "text/plain; version=0.0.4; charset=utf-8"


async def ready(_request: Request) -> Response:
    """200 when work can be taken, else 503; which of three things fails, and nothing else."""
    try:
        parts = await asyncio.wait_for(asyncio.to_thread(_parts), PATIENCE)
    except TimeoutError:
        parts = {}
    whole = bool(parts) and all(parts.values())
    answer = {"ready": whole, **parts}
    return JSONResponse(answer, status_code=200 if whole else 503, headers=UNCACHED)


async def metrics(request: Request) -> Response:
    """Prometheus's text format, for who sends the token; for others there is nothing here."""
    token = os.environ.get(TOKEN, "")
    sent = request.headers.get("authorization", "")
    allowed = hmac.compare_digest(sent.encode(), f"Bearer {token}".encode())
    if len(token) < SHORTEST_TOKEN or not allowed:
        return PlainTextResponse("", status_code=404, headers=UNCACHED)
    body = await asyncio.to_thread(_metrics)
    return Response(body, media_type=FORMAT, headers=UNCACHED)


def _parts() -> dict[str, bool]:
    # what pages import at their first visit; a server starts without
    from core.operations.monitoring import readiness
    from pages.shared import widgets as shared
    from pages.shared import workspace_store

    return readiness(workspace_store.store, shared.launcher)


def _metrics() -> bytes:
    # most servers are never scraped, and its library takes a tenth of a second
    from core.operations.monitoring import metrics_text
    from pages.shared.workspace_store import store

    return metrics_text(store())


ROUTES = [Route("/readyz", ready), Route("/metrics", metrics)]


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[dict[str, Any] | None]:
    """The server's life, in the log of operations."""
    if operations_log.wanted():
        # Streamlit gives each of its loggers a handler of its own, later ones too
        streamlit.logger.setup_formatter = operations_log.route_to_root
        operations_log.configure()
    _send_at_once(asyncio.get_running_loop())
    operations_log.record("server_start")
    _, problem = sign_in_settings.read()
    sign_in_settings.report(problem)
    yield None
    operations_log.record("server_stop")


def _send_at_once(loop: asyncio.AbstractEventLoop) -> None:
    """Let connections of sockets that `loop` will listen on send small answers without waiting."""
    listen = loop.create_server

    # Streamlit 1.67 leaves out its socket's protocol, for which asyncio never sets TCP_NODELAY:
    # each small file and message waited 40 ms. Connections inherit the option from the listener.
    async def create_server(*args: Any, sock: socket.socket | None = None, **more: Any) -> Any:
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return await listen(*args, sock=sock, **more)

    loop.create_server = create_server  # type: ignore[method-assign]
