"""Misuse: a page left open, another tab, a confirmation that was given for something else."""

from __future__ import annotations

import time

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.models.events import Wish
from core.runs.storage import notes
from core.runs.storage.access import set_access
from core.services import runs as run_service
from core.services import tables as table_service
from pages.parts import guard
from tests.pages.screen import button, buttons, finish, forget_statement, press, running, words



@pytest.fixture
def roles(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What Ann, who is signed in, may be; changes at once."""
    held: set[str] = {"steward"}
    claims = {"is_logged_in": True, "email": "ann@x.org", "name": "Ann", "iat": time.time()}
    monkeypatch.setattr(guard, "configured", lambda: True)
    monkeypatch.setattr(guard, "roles_of", lambda address: held if address else set())
    monkeypatch.setattr(guard, "_claims", lambda: claims)
    # what is drawn without its page would ask for the whole page, which there is none of here
    monkeypatch.setattr(st, "rerun", lambda **scope: st.stop())
    return held


def watched(run_id: str) -> None:
    """The live part of Training, as a browser asks for it each second: without its page."""
    from pages import training

    training._watch(run_id)


def commented(run_id: str) -> None:
    """An open dialog, as a browser asks for it."""
    from pages.parts import review_discussion, shared

    review_discussion._ask(shared.store().run(run_id), "pca", "inside")


def taken_away(store, run, roles, how: str) -> None:
    if how == "role":
        roles.clear()
    elif how == "table":
        set_access(store, run.table_id, owner="somebody@x.org")
    else:
        guard._claims()["iat"] -= 13 * 3600  # type: ignore[index]


@pytest.mark.parametrize("how", ["role", "table", "sign-in"])
def test_a_live_page_left_open_shows_and_does_nothing_more(store, start, roles, how):
    run = start()
    running(store, run)
    at = AppTest.from_function(watched, args=(run.id,)).run()
    assert "Pause" in buttons(at)
    taken_away(store, run, roles, how)
    press(at, "Pause")
    assert store.wish(run.id) is Wish.GO_ON
    assert not buttons(at) and not words(at)


@pytest.mark.parametrize("how", ["role", "table", "sign-in"])
def test_a_dialog_left_open_keeps_no_comment(store, start, roles, how):
    run = start()
    finish(store, run)
    at = AppTest.from_function(commented, args=(run.id,)).run()
    at.text_area[0].input("I am still here")
    taken_away(store, run, roles, how)
    press(at, "Keep this comment")
    assert not notes.comments(store, run.id)
