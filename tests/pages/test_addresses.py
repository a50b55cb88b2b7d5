"""Addresses that no page has: said so, before Streamlit shows another page in their place."""

from __future__ import annotations

import asyncio
import importlib.util

import pytest
from streamlit import net_util
from streamlit.web.server import server_util

from pages.server import bare_page, middleware, routes

pytestmark = pytest.mark.slow


def answer(path: str, kind: str = "text/html; charset=utf-8", status: int = 200):
    """Status and text of what comes of a path for which the server has this answer."""
    sent = []

    async def server(scope, receive, send):
        headers = [(b"content-type", kind.encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"the server's", "more_body": True})
        await send({"type": "http.response.body", "body": b" own"})

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}
    asyncio.run(middleware.Addresses(server)(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    assert [message["type"] for message in sent].count("http.response.start") == 1
    return sent[0]["status"], body.decode()


@pytest.mark.parametrize(
    "path", ["/", *(f"/{name}" for name in routes.ROUTES if name != routes.FIRST)]
)
def test_pages_are_answered_by_the_server(path):
    assert answer(path) == (200, "the server's own")


@pytest.mark.parametrize("path", ["/tables", "/tables/"])
def test_the_first_pages_own_address_leads_to_the_top(path):
    """Streamlit serves its first page at the top alone, and says that this one is not found."""
    assert answer(path) == (307, "")


@pytest.mark.parametrize("path", ["/review/x", "/nonsense", "/~/+/review", "/parts/front"])
def test_an_address_of_no_page_says_so(path):
    status, text = answer(path)
    assert status == 404 and "no page at this address" in text and "server's own" not in text


def test_files_and_refusals_pass():
    assert answer("/static/x.js", "text/javascript") == (200, "the server's own")
    assert answer("/media/report.html") == (200, "the server's own")  # a report to take along
    assert answer("/nonsense", status=500) == (500, "the server's own")


def test_the_way_back_leads_to_where_the_server_lies(monkeypatch):
    monkeypatch.setattr(bare_page.config, "get_option", lambda _: "/under/here/")
    assert answer("/under/here/review")[0] == 200
    status, text = answer("/under/here/nonsense")
    assert status == 404 and 'href="/under/here"' in text


@pytest.mark.parametrize(
    ("header", "code"),
    [("de-DE,de;q=0.9,en;q=0.8", "de"), ("de", "de"), ("en-GB,de;q=0.5", "en"), ("xx", "en")],
)
def test_answers_use_the_browsers_first_language(header, code):
    scope = {"type": "http", "headers": [(b"accept-language", header.encode())]}
    assert bare_page.asked_for(scope).code == code


def test_no_origin_makes_the_server_ask_for_its_own_address(monkeypatch):
    """Streamlit asks a service on the internet before it refuses."""
    asked = []
    monkeypatch.setattr(net_util, "_make_blocking_http_get", lambda url, **_: asked.append(url))
    assert not server_util.is_url_from_allowed_origins("https://elsewhere.invalid")
    assert asked == []


def test_streamlit_as_it_is_would_ask(monkeypatch):
    asked, found = [], importlib.util.find_spec("streamlit.net_util")
    untouched = importlib.util.module_from_spec(found)
    found.loader.exec_module(untouched)
    monkeypatch.setattr(untouched, "_make_blocking_http_get", lambda url, **_: asked.append(url))
    monkeypatch.setattr(net_util, "get_external_ip", untouched.get_external_ip)
    assert not server_util.is_url_from_allowed_origins("https://elsewhere.invalid")
    assert asked


@pytest.mark.parametrize(("path", "preloads"), [("/review", True), ("/ledger", False)])
def test_pages_of_figures_preload_what_draws_them(path, preloads):
    heads = []

    async def server(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message):
        heads.append(dict(message["headers"]))

    asyncio.run(middleware.Headers(server)({"type": "http", "path": path}, None, send))
    link = heads[0].get(b"link", b"").decode()
    assert bool(link) is preloads
    assert not link or all(f"</static/js/{name}>" in link for name in middleware.CHARTS)
    assert len(middleware.CHARTS) == 1  # Streamlit calls it so
