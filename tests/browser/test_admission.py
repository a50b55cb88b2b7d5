"""A real server as a stranger finds it: names that are not its own, addresses, a missing file."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page

from tests.browser.app import open_page, server, settled
from tests.browser.house import NEW, PEOPLE, House, http_sign_in
from tests.browser.provider import Provider

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
HANDSHAKE = """GET /_stcore/stream HTTP/1.1\r
Host: {name}:{port}\r
Origin: http://{name}:{port}\r
Connection: Upgrade\r
Upgrade: websocket\r
Sec-WebSocket-Version: 13\r
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
Sec-WebSocket-Protocol: streamlit\r
\r
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    provider = Provider()
    built = House(tmp_path_factory.mktemp("admission"), provider)
    with server(built.home, built.port, [f"--secrets.files={built.secrets}"]):
        yield built
    provider.close()


@pytest.fixture(autouse=True)
def as_agreed(house: House) -> Iterator[None]:
    yield
    house.say(PEOPLE)


def handshake(house: House, name: str) -> str:
    """The first line of the answer to who opens a page's WebSocket, calling the server so."""
    with socket.create_connection(("127.0.0.1", house.port), timeout=20) as line:
        line.sendall(HANDSHAKE.format(name=name, port=house.port).encode())
        return line.recv(400).decode().split("\r\n")[0]


def status(house: House, method: str, path: str, name: str = "127.0.0.1") -> int:
    headers = {"Host": f"{name}:{house.port}"}
    with httpx.Client(trust_env=False, headers=headers) as client:
        return client.request(method, f"{house.url}{path}").status_code


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/review"),
        ("GET", "/media/x.csv"),
        ("GET", "/static/js/x.js"),
        ("PUT", f"/_stcore/upload_file/{uuid.uuid4()}/{uuid.uuid4()}"),
        ("GET", "/_stcore/health"),
        ("GET", "/_stcore/host-config"),
        ("GET", "/auth/login"),
        ("GET", "/oauth2callback"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
    ],
)
def test_a_name_led_here_from_elsewhere_is_answered_403(house, method, path):
    assert status(house, method, path, "evil.example") == 403
    assert status(house, method, path, "localhost") != 403 or method == "PUT"


def test_a_page_elsewhere_opens_no_websocket_under_its_name(house):
    assert " 403 " in handshake(house, "evil.example")
    assert " 101 " in handshake(house, "localhost")


# -- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/_stcore/metrics",
        "/_stcore/metrics?families=cache_memory_bytes",
        "/%5fstcore/metrics",
        "/_stcore/script-health-check",
        "/_stcore/agent/openapi.json",
        "/_stcore/agent/mcp",
        "/app/static/x",
    ],
)
def test_nobody_learns_how_much_waits_or_drives_the_app(house, path):
    with httpx.Client(trust_env=False) as client:
        answer = client.get(f"{house.url}{path}")
        assert answer.status_code == 404
        assert "session" not in answer.text and "openapi" not in answer.text
        assert client.post(f"{house.url}/_stcore/agent/interact", json={}).status_code == 404


# -- a secrets file that is away ------------------------------------------------------------------


def test_while_the_secrets_are_away_everything_is_closed(house: House, page: Page, browser):
    with http_sign_in(house) as client:
        cookies = [
            {"name": name, "value": value, "url": house.url}
            for name, value in client.cookies.items()
        ]
    page.context.add_cookies(cookies)
    page.goto(house.url)
    page.get_by_text(NEW).first.wait_for()
    aside = house.secrets.with_name("secrets.toml~")
    house.secrets.rename(aside)  # as an editor does while it saves
    try:
        page.get_by_role("button", name="Try the sample table").click()  # the page left open
        page.get_by_text("how people sign in on this server is not there").wait_for()
        settled(page)
        assert page.get_by_text(NEW).count() == 0
        assert [table.name for table in house.store.tables()].count("Hospital stays") == 0
        with open_page(browser, locale="de-DE") as other:
            assert other.goto(house.url).status == 503
            assert other.get_by_role("button").count() == 0
        for method, path in (
            ("GET", "/review"),
            ("GET", "/media/x"),
            ("PUT", "/_stcore/upload_file/a/b"),
        ):
            assert status(house, method, path) == 503
        assert " 403 " in handshake(house, "127.0.0.1")
        assert status(house, "GET", "/_stcore/health") == 200  # it runs
    finally:
        aside.rename(house.secrets)
    page.goto(house.url)
    page.get_by_text(NEW).first.wait_for()
