"""Readiness and metrics as machines see them: who may ask, and what the answer gives away."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import streamlit as st
from starlette.applications import Starlette

from core.operations import monitoring as checks
from core.runs.workspace import Workspace
from pages.server import endpoints, middleware
from pages.shared import widgets as shared
from pages.shared import workspace_store

TOKEN = "0123456789abcdef"
Ask = Callable[..., httpx.Response]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    monkeypatch.setenv("FACSIMILE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FACSIMILE_METRICS_TOKEN", TOKEN)
    st.cache_resource.clear()
    app = Starlette(routes=endpoints.ROUTES, middleware=middleware.MIDDLEWARE)
    transport = httpx.ASGITransport(app)

    async def get(path: str, authorization: str | None) -> httpx.Response:
        sent = {} if authorization is None else {b"authorization": authorization.encode()}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(path, headers=sent)

    yield lambda path, authorization=None: asyncio.run(get(path, authorization))
    st.cache_resource.clear()


def test_a_sound_server_is_ready(ask: Ask) -> None:
    answer = ask("/readyz")
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store"
    parts = {"workspace": True, "database": True, "launcher": True}
    assert answer.json() == {"ready": True} | parts
    assert answer.headers["x-frame-options"] == "DENY"


def broken(*_: object) -> None:
    raise OSError("/home/anna: no space left on device")


@pytest.mark.parametrize(
    ("part", "owner", "name"),
    [
        ("workspace", checks.tempfile, "TemporaryFile"),
        ("database", workspace_store, "store"),
        ("launcher", shared, "launcher"),
    ],
)
def test_what_fails_is_named_and_nothing_else(ask, monkeypatch, part, owner, name) -> None:
    workspace_store.store()  # else making it would be what fails
    monkeypatch.setattr(owner, name, broken)
    answer = ask("/readyz")
    assert answer.status_code == 503 and "anna" not in answer.text
    parts = answer.json()
    # a launcher stands on the store
    assert not parts[part] and not parts["ready"]
    others = {"workspace", "database", "launcher"} - {part}
    assert all(parts[one] for one in others - {"launcher"})


def test_a_workspace_that_cannot_be_written_is_not_ready(ask, monkeypatch) -> None:
    monkeypatch.setattr(
        Workspace, "default", classmethod(lambda cls: Path("/proc/nowhere"))
    )  # as root every right is there
    assert not ask("/readyz").json()["workspace"]


def test_a_disk_that_does_not_answer_is_not_waited_for(ask, monkeypatch) -> None:
    monkeypatch.setattr(endpoints, "PATIENCE", 0.1)
    monkeypatch.setattr(endpoints, "_parts", lambda: time.sleep(2.0))
    answer = ask("/readyz")
    assert answer.status_code == 503 and answer.json() == {"ready": False}


@pytest.mark.parametrize("sent", ["", "Bearer ", f"Bearer {TOKEN}x", TOKEN, "Bearer ü"])
def test_metrics_are_not_there_for_who_has_no_token(ask: Ask, sent: str) -> None:
    answer = ask("/metrics", sent)
    assert answer.status_code == 404 and answer.text == ""


@pytest.mark.parametrize("token", ["", "short"])
def test_metrics_are_shut_without_a_long_token(ask, monkeypatch, token) -> None:
    monkeypatch.setenv("FACSIMILE_METRICS_TOKEN", token)
    assert ask("/metrics", f"Bearer {token}").status_code == 404


def test_metrics_are_there_for_who_sends_the_token(ask: Ask) -> None:
    answer = ask("/metrics", f"Bearer {TOKEN}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "facsimile_queue_length 0.0" in answer.text
    assert "process_resident_memory_bytes" in answer.text


async def waits_to_send(*, started: bool) -> bool:
    """Whether a connection of a socket like Streamlit's waits for more before it sends."""
    found: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def met(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        option = writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        found.set_result(not option)
        writer.close()

    async with endpoints.lifespan(None) if started else contextlib.nullcontext():
        listener = socket.socket(family=socket.AF_INET)
        listener.bind(("127.0.0.1", 0))
        async with await asyncio.start_server(met, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            waits = await found
            writer.close()
    return waits


def test_small_answers_are_sent_at_once():
    assert not asyncio.run(waits_to_send(started=True))


def test_without_the_servers_start_they_would_wait():
    assert asyncio.run(waits_to_send(started=False))  # else Streamlit no longer needs our help
