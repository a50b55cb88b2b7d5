"""Which names, addresses and secrets open the server, and that nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit import config
from streamlit.runtime import Runtime
from streamlit.web.server.starlette.starlette_app import create_streamlit_routes

from pages.server import admission, sign_in_settings
from tests.operations.containers import ROOT

SECRETS = f"""[auth]
redirect_uri = "http://localhost/oauth2callback"
cookie_secret = "{"s" * 32}"
client_id = "x"
client_secret = "x"
server_metadata_url = "http://localhost"
[roles]
steward = ["ann@x.org"]
"""


# -- names ----------------------------------------------------------------------------------------


def called(monkeypatch: pytest.MonkeyPatch, host: str | None, *names: str) -> bool:
    """Whether a server with these names answers to who calls it so."""
    monkeypatch.setattr(config, "get_option", lambda _: list(names))
    headers = [] if host is None else [(b"host", host.encode())]
    scope = {"type": "http", "headers": headers}
    return admission.addressed_correctly(admission.HTTPConnection(scope))


OURS = ("localhost", "127.0.0.1", "::1")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8501", "localhost.evil.example", "127.0.0.1.nip.io", "", None,
     "user@localhost", "localhost/x", "localhost:x", "[::2]", "0.0.0.0", "127.0.0.1@evil.example"],
)  # fmt: skip
def test_other_names_are_not_answered_to(monkeypatch, host):
    assert not called(monkeypatch, host, *OURS)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.:8501", "127.0.0.1:80", "[::1]:8501", "[::1]"]
)
def test_its_own_names_are_answered_to_at_any_port(monkeypatch, host):
    assert called(monkeypatch, host, *OURS)


def test_a_public_name_is_answered_to_once_it_is_told(monkeypatch):
    assert not called(monkeypatch, "facsimile.example.org", *OURS)
    assert called(monkeypatch, "facsimile.example.org", *OURS, "facsimile.example.org")


def test_where_no_name_is_told_none_is_answered_to(monkeypatch):
    assert not called(monkeypatch, "localhost")


def test_the_shipped_names_are_this_machines_own():
    assert config.get_option("server.allowedHosts") == list(OURS)
    assert all(map(sign_in_settings.loopback, OURS))


# -- addresses ------------------------------------------------------------------------------------

# Every address that the installed Streamlit answers at, and whether it may.
DECIDED = {
    "/_stcore/health": True,  # that the server breathes
    "/_stcore/metrics": False,  # sessions, bytes of waiting uploads
    "/_stcore/host-config": True,  # the page's first question; says nothing of this server
    "/media/{file_id:path}": True,  # see `middleware.Downloads`
    "/_stcore/upload_file/{session_id}/{file_id}": True,
    "/component/{path:path}": True,  # files of installed components
    "/_stcore/bidi-components/{path:path}": True,  # the same of the second kind
    "/_stcore/stream": True,  # the page itself; its script begins with the guard
    "/auth/login": True,
    "/auth/logout": True,
    "/oauth2callback": True,
    "/_stcore/agent/interact": False,  # drives the app for programs
    "/_stcore/agent/openapi.json": False,
    "/_stcore/agent/mcp": False,
    "/app/static/{path:path}": True,  # off; what nothing answers is said to be no page
    "/_stcore/script-health-check": False,  # runs the script for whoever asks
    "": True,  # the browser's own files
}


def test_every_address_of_streamlit_was_decided_on(monkeypatch):
    """An upgrade that brings another one fails here."""
    real = config.get_option
    on = {"server.enableStaticServing", "server.scriptHealthCheckEnabled"}
    monkeypatch.setattr(config, "get_option", lambda name: name in on or real(name))
    runtime = SimpleNamespace(
        media_file_mgr=SimpleNamespace(_storage=None),
        uploaded_file_mgr=None,
        component_registry=None,
        bidi_component_registry=None,
        stats_mgr=None,
        _main_script_path="app.py",
    )
    routes: list[Any] = create_streamlit_routes(runtime)  # type: ignore[arg-type]
    assert {route.path for route in routes} == set(DECIDED)
    for path, open_to_all in DECIDED.items():
        assert admission.unneeded(path) is not open_to_all, path
    assert isinstance(Runtime.uploaded_file_mgr, property)  # what the stand-in stands for


# -- secrets --------------------------------------------------------------------------------------


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a server knows that was started with these settings over the test's workspace."""
    file = tmp_path / "secrets.toml"
    monkeypatch.setenv("FACSIMILE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sign_in_settings, "_marked", set())

    def read(
        content: str | None,
        *,
        address: str | None = "127.0.0.1",
        names: tuple[str, ...] = OURS,
        named: bool = False,
        **more: bool,
    ) -> tuple[dict[str, Any], Any]:
        options = {
            "secrets.files": [str(file)],
            "server.address": address,
            "server.allowedHosts": list(names),
        }
        stub = SimpleNamespace(get_option=options.__getitem__, is_manually_set=lambda _: named)
        monkeypatch.setattr(sign_in_settings, "config", stub)
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_text(content)
        return sign_in_settings.read(**more)

    return read


def test_this_machine_alone_without_secrets_is_open(told):
    for address in ("127.0.0.1", "localhost", "::1", "127.0.0.53"):
        assert told(None, address=address) == ({}, None)


@pytest.mark.parametrize(
    "more",
    [
        {"address": "0.0.0.0"},
        {"address": "::"},
        {"address": None},
        {"address": ""},
        {"address": "192.168.1.5"},
        {"address": "unix:///run/facsimile.sock"},
        {"names": ("*",)},
        {"names": (*OURS, "facsimile.example.org")},
        {"from_elsewhere": True},
    ],
    ids=str,
)
def test_what_others_can_reach_is_closed_without_sign_in(told, more):
    assert told(None, **more)[1].shown == sign_in_settings.EXPOSED
    assert told("sign_in = false", **more)[1].shown == sign_in_settings.EXPOSED
    assert told('sign_in = false\nopen_to_network = "true"', **more)[1] is not None
    assert told("sign_in = false\nopen_to_network = true", **more)[1] is None
    assert told(SECRETS, **more)[1] is None


def test_a_named_file_that_is_not_there_closes(told):
    assert told(None, named=True)[1].shown == sign_in_settings.MISSING
    assert told("sign_in = false", named=True)[1] is None


def test_a_link_to_nothing_closes(told, tmp_path):
    told(None)
    (tmp_path / "secrets.toml").symlink_to(tmp_path / "nowhere.toml")
    assert sign_in_settings.read()[1].shown == sign_in_settings.MISSING


@pytest.mark.parametrize("away", [None, ""], ids=["gone", "emptied"])
def test_a_file_that_was_read_once_and_is_away_closes(told, away):
    assert told(SECRETS)[1] is None
    assert told(away)[1] is not None
    assert told(SECRETS)[1] is None
    assert told("sign_in = false")[1] is None  # said in so many words


@pytest.mark.parametrize(
    ("there", "instead", "missing"),
    [
        (f'cookie_secret = "{"s" * 32}"', "", "cookie_secret"),
        ('client_id = "x"', 'client_id = " "', "client_id"),
        ('server_metadata_url = "http://localhost"', "", "server_metadata_url"),
        ('steward = ["ann@x.org"]', "", "roles"),
        ('["ann@x.org"]', '[""]', "roles"),
        ('["ann@x.org"]', '"ann@x.org"', "roles"),
    ],
)
def test_half_a_configuration_closes_and_the_console_says_which(told, there, instead, missing):
    assert there in SECRETS
    _, problem = told(SECRETS.replace(there, instead))
    assert problem.shown == sign_in_settings.WRONG and missing in problem.detail


LOOK = """from pages.server import sign_in_settings
secrets, problem = sign_in_settings.read()
print("auth" in secrets, problem.detail if problem else "open")"""


def test_after_a_restart_it_is_still_known_that_people_signed_in(tmp_path):
    """Two processes over one workspace; the file lies where Streamlit looks by itself."""
    file = tmp_path / ".streamlit" / "secrets.toml"
    file.parent.mkdir()
    env = os.environ | {"HOME": str(tmp_path), "FACSIMILE_HOME": str(tmp_path / "workspace")}

    def look() -> str:
        command = [sys.executable, "-c", LOOK]
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert look() == "False open"
    file.write_text(SECRETS)
    assert look() == "True open"
    file.unlink()
    assert "people signed in here earlier" in look()


def test_the_console_is_told_once_a_minute(monkeypatch, caplog):
    monkeypatch.setattr(sign_in_settings, "_reported", {})
    problem = sign_in_settings.Problem("the file is away", sign_in_settings.MISSING)
    for _ in range(3):
        sign_in_settings.report(problem)
        sign_in_settings.report(None)
    assert caplog.text.count("the file is away") == 1
