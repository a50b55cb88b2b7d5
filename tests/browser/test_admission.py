"""A real server as a stranger finds it: names that are not its own, addresses, a missing file."""

from __future__ import annotations

import re
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from playwright.sync_api import Browser, Page
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosedError

from tests.browser.app import PATIENCE, open_page, server, settled
from tests.browser.house import NEW, PEOPLE, House, http_sign_in
from tests.browser.provider import Provider
from tests.browser.wire import opened

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), pytest.mark.slow]
HANDSHAKE = """GET /_stcore/stream HTTP/1.1\r
Host: {name}:{port}\r
Origin: {origin}\r
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
    flags = [f"--secrets.files={built.secrets}", "--server.disconnectedSessionTTL=1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FACSIMILE_UPLOADS_MB", "1")
        with server(built.home, built.port, flags):
            yield built
    provider.close()


@pytest.fixture(autouse=True)
def as_agreed(house: House) -> Iterator[None]:
    yield
    house.say(PEOPLE)


def handshake(house: House, name: str, origin: str = "") -> str:
    """The first line of the answer to who opens a page's WebSocket, calling the server so.

    From a page of that name unless an origin is given.
    """
    origin = origin or f"http://{name}:{house.port}"
    with socket.create_connection(("127.0.0.1", house.port), timeout=20) as line:
        line.sendall(HANDSHAKE.format(name=name, port=house.port, origin=origin).encode())
        return line.recv(400).decode().split("\r\n")[0]


def asked(house: House, method: str, path: str, name: str = "127.0.0.1") -> httpx.Response:
    headers = {"Host": f"{name}:{house.port}"}
    with httpx.Client(trust_env=False, headers=headers, timeout=60) as client:
        return client.request(method, f"{house.url}{path}")


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/review"),
        ("GET", "/media/x.csv"),
        ("GET", "/static/js/x.js"),
        ("PUT", "/_stcore/upload_file/a-session/a-file"),
        ("GET", "/_stcore/health"),
        ("GET", "/_stcore/host-config"),
        ("GET", "/auth/login"),
        ("GET", "/oauth2callback"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
    ],
)
def test_a_name_led_here_from_elsewhere_is_answered_403(house, method, path):
    answer = asked(house, method, path, "evil.example")
    assert answer.status_code == 403 and "does not recognise the name" in answer.text
    assert "does not recognise the name" not in asked(house, method, path, "localhost").text


def test_a_page_elsewhere_opens_no_websocket_under_its_name(house):
    assert " 403 " in handshake(house, "evil.example")
    assert " 101 " in handshake(house, "localhost")


def test_pages_of_other_local_servers_open_no_websocket(house):
    assert " 101 " in handshake(house, "127.0.0.1")
    for origin in (f"http://127.0.0.1:{house.port + 1}", f"http://localhost:{house.port}", "null"):
        assert " 403 " in handshake(house, "127.0.0.1", origin)


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
        page.get_by_text("configures sign-in on this server is missing").wait_for()
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
            assert asked(house, method, path).status_code == 503
        assert " 403 " in handshake(house, "127.0.0.1")
        assert asked(house, "GET", "/_stcore/health").status_code == 200  # it runs
    finally:
        aside.rename(house.secrets)
    page.goto(house.url)
    page.get_by_text(NEW).first.wait_for()


# -- uploads --------------------------------------------------------------------------------------


def session_of(page: Page, url: str) -> str:
    """Open an address; the id of the session that the server made for it."""
    frames: list[bytes] = []
    page.on("websocket", lambda line: line.on("framereceived", lambda f: frames.append(bytes(f))))
    page.goto(url)
    page.get_by_role("button", name=re.compile("Sign in|Sign out")).first.wait_for()
    (found,) = {
        message.new_session.initialize.session_id
        for message in map(ForwardMsg.FromString, frames)
        if message.WhichOneof("type") == "new_session"
    }
    return found


def upload(house: House, page: Page, session_id: str, size: int, **headers: str) -> int:
    """The status of an answer to a file, sent with a page's cookies and token."""
    cookies = {one["name"]: one["value"] for one in page.context.cookies(house.url)}
    headers = {"X-Xsrftoken": cookies.get("_streamlit_xsrf", "")} | headers
    path = f"/_stcore/upload_file/{session_id}/{uuid.uuid4()}"
    files = {"file": ("x.csv", b"x" * size)}
    with httpx.Client(trust_env=False, cookies=cookies, headers=headers, timeout=60) as client:
        return client.put(f"{house.url}{path}", files=files).status_code


def signed(house: House, browser: Browser, email: str) -> Page:
    """A page of somebody who signed in, in a browser of their own."""
    context = browser.new_context()
    with http_sign_in(house, email) as client:
        cookies = [{"name": n, "value": v, "url": house.url} for n, v in client.cookies.items()]
    context.add_cookies(cookies)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    return page


@pytest.mark.parametrize("email", [None, "bob@x.org", "eve@x.org"])
def test_files_of_who_is_no_steward_are_not_taken(house, browser, page, email):
    page = page if email is None else signed(house, browser, email)
    assert upload(house, page, session_of(page, house.url), 1000) == 403


def test_a_stewards_own_page_sends_files_and_nobody_else_for_it(house, browser, page):
    own = signed(house, browser, "ann@x.org")
    session_id = session_of(own, house.url)
    assert upload(house, own, session_id, 1000) == 204
    page.goto(house.url)
    assert upload(house, page, session_id, 1000) == 403  # who learnt its number
    assert upload(house, signed(house, browser, "ada@x.org"), session_id, 1000) == 403
    assert upload(house, own, str(uuid.uuid4()), 1000) == 403
    own.context.close()


def test_uploads_of_one_person_are_limited_and_end_with_the_page(house, browser):
    own, other = (signed(house, browser, "ada@x.org") for _ in range(2))
    first, second = (session_of(one, house.url) for one in (own, other))
    assert upload(house, own, first, 700_000) == 204
    assert upload(house, other, second, 700_000) == 413  # one person, two pages
    own.goto("about:blank")
    deadline = time.monotonic() + 30
    while upload(house, other, second, 700_000) != 204:
        assert time.monotonic() < deadline, "a closed page's file was kept"
        time.sleep(0.5)
    assert [upload(house, other, second, 1) for _ in range(16)] == [204] * 15 + [413]
    for one in (own, other):
        one.context.close()


@pytest.mark.parametrize(
    ("email", "heard"), [(None, False), ("eve@x.org", False), ("bob@x.org", True)]
)
def test_a_page_of_who_has_no_role_is_not_listened_to_for_long(house, email, heard):
    said = BackMsg()
    said.rerun_script.query_string = "a=" + "x" * 100_000
    with ExitStack() as ends:
        if email is None:
            client = ends.enter_context(httpx.Client(trust_env=False))
        else:
            client = ends.enter_context(http_sign_in(house, email))
        stream = ends.enter_context(opened(client, house.url))
        stream.send(said.SerializeToString())
        try:
            while (
                ForwardMsg.FromString(stream.recv(timeout=30)).WhichOneof("type")
                != "script_finished"
            ):
                pass
        except ConnectionClosedError as closed:
            assert not heard and closed.rcvd is not None and closed.rcvd.code == 1009
        else:
            assert heard


# -- signing out ----------------------------------------------------------------------------------


def test_signing_out_ends_every_tab_browser_and_cookie(house, browser):
    own = signed(house, browser, "ann@x.org")
    own.goto(house.url)
    tab = own.context.new_page()
    tab.goto(f"{house.url}/training?run={house.new.id}")
    elsewhere = signed(house, browser, "ann@x.org")  # another browser
    elsewhere.goto(f"{house.url}/download?run={house.new.id}")
    colleague = signed(house, browser, "ada@x.org")
    colleague.goto(house.url)
    for one in (own, tab, elsewhere, colleague):
        one.get_by_role("button", name="Sign out").wait_for()
    session_id, copy = session_of(tab, tab.url), own.context.cookies(house.url)
    own.get_by_role("button", name="Sign out").click()
    for one in (own, tab, elsewhere):  # by themselves, without a click
        one.get_by_text("Sign in to continue").wait_for()
        assert one.get_by_text(NEW).count() == 0
    assert "_streamlit_user" not in {one["name"] for one in own.context.cookies(house.url)}
    assert upload(house, elsewhere, session_id, 10) == 403
    with open_page(browser) as thief:
        thief.context.add_cookies(copy)
        thief.goto(house.url)
        thief.get_by_text("Sign in to continue").wait_for()
    colleague.reload()
    colleague.get_by_role("button", name="Sign out").wait_for()
    time.sleep(1.1)  # sign-ins are dated by the second
    again = signed(house, browser, "ann@x.org")
    again.goto(house.url)
    again.get_by_text(NEW).first.wait_for()
    for one in (own, elsewhere, colleague, again):
        one.context.close()
