"""The whole app: its main line by buttons, who may open what, no fault anywhere."""

from __future__ import annotations

import ast
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st
from streamlit import config
from streamlit.testing.v1 import AppTest

from core.runs.events import State
from pages.server import download_tokens, guard, sign_in_settings, sign_outs, uploads
from tests.pages.screen import (
    button,
    buttons,
    finish,
    press,
    running,
    small_report,
    whole,
    words,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "pages").glob("*/page.py"))
PAGES = [path.parent.name for path in FILES]
UNSAID = object()  # a claim that the provider leaves out


def app(**query: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "pages/server/front.py"), default_timeout=120)
    for key, value in query.items():
        at.query_params[key] = value
    return whole(at.run())


def test_the_main_line_by_buttons_alone(store):
    at = whole(press(app(), "Try the sample table"))
    at = whole(press(at, "Plan a synthetic table"))
    (table,) = store.tables()
    assert at.title[0].value == "Plan" and at.query_params == {"table": table.id}
    at = whole(press(at, "Train: spends ε = 1 of this table's budget"))
    (run,) = store.runs()
    assert at.title[0].value == "Training" and at.query_params == {"run": run.id}
    finish(store, run, report=small_report())
    at = whole(press(whole(at.run()), "Review"))
    assert at.title[0].value == "Review" and at.query_params == {"run": run.id}
    at = whole(press(at, "Download"))
    assert at.title[0].value == "Download" and at.query_params == {"run": run.id}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_file_run_alone_shows_nothing(store, name):
    at = AppTest.from_file(str(ROOT / "pages" / name / "page.py"), default_timeout=120)
    assert not whole(at.run()).main.children


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("name", PAGES)
def test_no_page_breaks_on_a_run_in_any_state(store, start, show, name, state):
    run = start()
    if state is State.DONE:
        finish(store, run, report=small_report())
    elif state is not State.QUEUED:
        store.set_state(run.id, state, "What happened.")
    whole(show(name, run=run.id, table=run.table_id))


@pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED, State.FAILED, State.DONE])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_one_primary_action(store, start, show, name, state):
    run = start()
    if state is State.DONE:
        finish(store, run, report=small_report(filled=True))
    elif state is State.RUNNING:
        running(store, run)
    else:
        store.set_state(run.id, state, "What happened.")
    at = whole(show(name, run=run.id, table=run.table_id))
    every = [*at.button, *at.get("download_button")]
    primary = [one.proto.label for one in every if one.proto.type == "primary"]
    assert len(primary) <= 1
    if state is State.DONE and name != "ledger":
        assert len(primary) == 1


@pytest.mark.parametrize("name", PAGES)
def test_an_address_from_elsewhere_breaks_nothing(table, start, show, name):
    start()
    for value in ("../../etc/passwd", "0" * 10, ""):
        whole(show(name, run=value, table=value))


@pytest.mark.parametrize("path", FILES, ids=PAGES)
def test_page_files_run_nothing_and_guard_first(path):
    """A server that is started beside them may run one by itself, without its sign-in."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = tree.body[1:]  # after the docstring
    plain = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.FunctionDef)
    assert all(isinstance(node, plain) for node in body)
    public = [n for n in body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
    assert [function.name for function in public] == ["render"]
    assert ast.unparse(public[0].body[1]).startswith("guard.require(")
    for node in body:
        if isinstance(node, ast.FunctionDef):
            continue
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        assert all("st." not in ast.unparse(call) for call in calls)


# -- who may open what --------------------------------------------------------------------------

AUTH = f"""[auth]
redirect_uri = "http://localhost/oauth2callback"
cookie_secret = "{"s" * 32}"
client_id = "x"
client_secret = "x"
server_metadata_url = "http://localhost"
"""
ROLES = (
    AUTH
    + """[roles]
steward = ["Ann@x.org", "ada@x.org"]
reviewer = ["bob@x.org"]
"""
)
OFFICER = ROLES + 'privacy_officer = ["pat@x.org"]\n'


@pytest.fixture
def secrets_file(store, tmp_path, monkeypatch):
    file = tmp_path / "secrets.toml"

    def write(text: str | bytes) -> None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    real = config.get_option
    files = {"secrets.files": [str(file)]}
    found = SimpleNamespace(
        get_option=lambda name: files.get(name) or real(name), is_manually_set=lambda _: False
    )
    monkeypatch.setattr(sign_in_settings, "config", found)
    monkeypatch.setattr(sign_in_settings, "_reported", {})
    return write


@pytest.fixture
def signed(show, secrets_file, monkeypatch):
    """Open a page on a server with sign-in, as somebody."""

    def opened(name: str, email: str | None, *, secrets: str = ROLES, **more: Any) -> AppTest:
        query = {key: more.pop(key) for key in ("table", "run") if key in more}
        secrets_file(secrets)
        claims = {"is_logged_in": email is not None, "email": email, "iat": time.time()}
        claims |= {"email_verified": True} | more
        if claims["email_verified"] is UNSAID:
            del claims["email_verified"]
        monkeypatch.setattr(guard, "_claims", lambda: claims)
        return whole(show(name, **query))

    return opened


@pytest.mark.parametrize("name", PAGES)
def test_without_signing_in_nothing_is_shown(table, signed, name):
    at = signed(name, None)
    assert buttons(at) == ["Sign in"] and table.name not in words(at)


@pytest.mark.parametrize("name", PAGES)
def test_a_stranger_sees_nothing(table, signed, name):
    at = signed(name, "eve@x.org")
    assert "does not have access to this page" in at.error[0].value
    assert not at.button and table.name not in words(at)


@pytest.mark.parametrize("name", PAGES)
def test_reviewers_only_review_and_ask(table, signed, name):
    assert bool(signed(name, "bob@x.org").error) is (name not in ("review", "ask"))


@pytest.mark.parametrize("name", PAGES)
def test_stewards_open_every_page_however_their_address_is_spelt(table, signed, name):
    assert not signed(name, "ann@X.org").error


@pytest.mark.parametrize("verified", [False, "false", None])
def test_an_address_that_is_not_verified_opens_nothing(signed, verified):
    assert signed("tables", "ann@x.org", email_verified=verified).error
    assert not signed("tables", "ann@x.org", email_verified=True).error


def test_an_unverified_address_has_no_role_unless_trusted(signed, caplog):
    assert signed("tables", "ann@x.org", email_verified=UNSAID).error
    assert "trust_addresses = true" in caplog.text and "email_verified" in caplog.text
    for wrong in ("trust_addresses = false", 'trust_addresses = "true"', "trust_addresses = 1"):
        secrets = f"{wrong}\n{ROLES}"
        assert signed("tables", "ann@x.org", email_verified=UNSAID, secrets=secrets).error
    trusted = f"trust_addresses = true\n{ROLES}"
    assert not signed("tables", "ann@x.org", email_verified=UNSAID, secrets=trusted).error
    assert signed("tables", "ann@x.org", email_verified=False, secrets=trusted).error
    assert signed("tables", "eve@x.org", email_verified=UNSAID, secrets=trusted).error


@pytest.mark.parametrize("hours", [12.1, -1, None])
def test_who_signed_in_long_ago_or_never_signs_in_again(table, signed, hours):
    issued = None if hours is None else time.time() - 3600 * hours
    assert buttons(signed("tables", "ann@x.org", iat=issued)) == ["Sign in"]


def test_a_role_that_is_taken_away_is_gone_at_once(table, signed, secrets_file):
    at = signed("tables", "ann@x.org")
    assert not at.error
    secrets_file(ROLES.replace("Ann@x.org", "eve@x.org"))
    assert "does not have access to this page" in whole(at.run()).error[0].value


def test_after_signing_out_every_copy_of_a_sign_in_is_over(table, signed):
    """As on another server of the workspace, or after a restart: the database alone knows."""
    at = signed("tables", "ann@x.org", sub="1")
    claims = dict(guard._claims())
    later, colleague = claims | {"iat": claims["iat"] + 1}, claims | {"sub": "2"}
    download_tokens.enter(b"a file", "ann@x.org", lambda: True)
    assert guard.may("steward") and download_tokens.fetchable(b"a file", claims)
    sign_outs.end(claims)
    assert not guard.may("steward")  # what a live part asks each second
    assert buttons(whole(at.run())) == ["Sign in"] and table.name not in words(at)
    assert guard.address_of(claims) == "" and not download_tokens.fetchable(b"a file", claims)
    assert guard.address_of(later) == guard.address_of(colleague) == "ann@x.org"


@pytest.mark.parametrize("name", PAGES)
def test_a_privacy_officer_sees_the_ledger_alone(table, signed, name):
    at = signed(name, "pat@x.org", secrets=OFFICER)
    assert bool(at.error) is (name != "ledger")


def test_limits_are_the_officers_where_there_is_one(table, signed):
    assert "Set this limit" in buttons(signed("ledger", "pat@x.org", secrets=OFFICER))
    assert "Set this limit" in buttons(signed("ledger", "ann@x.org"))
    at = signed("ledger", "ann@x.org", secrets=OFFICER)
    assert "Set this limit" not in buttons(at) and "privacy officer can set" in words(at)


WRONG = {
    "a stray quote": '[auth]\nredirect_uri = "x""\n',
    "another spelling": '[Auth]\nredirect_uri = "x"\n',
    "roles alone": '[roles]\nsteward = ["ann@x.org"]\n',
    "no section": "auth = true\n",
    "no column": "",
    "no text": b"\xff\xfe[auth]",
    "no cookie secret": ROLES.replace("cookie_secret", "cookie_sacret"),
    "nobody with a role": AUTH,
    "a cookie secret to guess": ROLES.replace("s" * 32, "s" * 31),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_secrets_that_cannot_be_understood_lock_everybody_out(
    table, show, secrets_file, wrong, caplog
):
    secrets_file(WRONG[wrong])
    assert not guard.steward()
    at = whole(show("tables"))
    assert "not set up correctly" in at.error[0].value
    assert not at.button and table.name not in words(at)
    assert "secrets.toml" in caplog.text and "secrets.toml" not in words(at)


@pytest.mark.parametrize(("text", "position"), [("auth = true", "hidden"), (None, "top")])
def test_pages_are_listed_only_to_who_may_come_in(store, secrets_file, monkeypatch, text, position):
    if text is not None:
        secrets_file(text)
    positions, real = [], st.navigation

    def watched(pages, *, position):
        positions.append(position)
        return real(pages, position=position)

    monkeypatch.setattr(st, "navigation", watched)
    assert bool(app().error) is (position == "hidden") and positions == [position]


def test_secrets_may_say_that_nobody_signs_in(table, show, secrets_file):
    secrets_file('sign_in = false\nother = "x"\n')
    assert guard.steward() and not whole(show("tables")).error
    secrets_file("sign_in = false\n[Auth]\n")  # said in so many words
    assert guard.steward()


def test_without_secrets_there_is_no_sign_in(store):
    assert "Sign in" not in buttons(app()) and button(app(), "Try the sample table")


# -- uploaded bytes -----------------------------------------------------------------------------


def test_uploads_are_freed_through_the_sessions_own_manager(monkeypatch):
    freed: list[str] = []
    manager = SimpleNamespace(remove_session_files=freed.append)
    context = SimpleNamespace(uploaded_file_mgr=manager, session_id="s1")
    state: dict[str, int] = {}
    monkeypatch.setattr(uploads, "get_script_run_ctx", lambda: context)
    monkeypatch.setattr(uploads, "st", SimpleNamespace(session_state=state))
    before = uploads.upload_key()
    uploads.free_uploads()
    assert freed == ["s1"] and uploads.upload_key() != before


def test_outside_a_session_there_is_nothing_to_free(monkeypatch):
    monkeypatch.setattr(uploads, "get_script_run_ctx", lambda: None)
    monkeypatch.setattr(uploads, "st", SimpleNamespace(session_state={}))
    uploads.free_uploads()
