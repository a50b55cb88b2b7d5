"""Misuse: a page left open, another tab, a confirmation that was given for something else."""

from __future__ import annotations

import time

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.models.events import Signal
from core.privacy.discovery.open_domain import as_learned
from core.runs.errors import RunStoreError
from core.runs.records import TableRecord
from core.runs.request import RunRequest
from core.runs.storage.access import set_access
from core.runs.storage.reviews import notes
from core.schema.column import Provenance
from core.schema.person import Person
from core.services import declarations, imports, planning, tables
from core.services import runs as run_service
from core.services.sample_tables import sample_table
from pages.server import guard
from tests.pages.conftest import IdleLauncher
from tests.pages.screen import button, buttons, finish, forget_statement, press, running, words
from tests.pages.tables.test_account_choice import released
from tests.pages.test_hidden_distributions import judged

pytestmark = pytest.mark.slow


@pytest.fixture
def roles(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What Ann, who is signed in, may be; changes at once."""
    held: set[str] = {"steward"}
    claims = {"is_logged_in": True, "email": "ann@x.org", "name": "Ann", "iat": time.time()}
    claims["email_verified"] = True
    monkeypatch.setattr(guard, "configured", lambda: True)
    monkeypatch.setattr(guard, "roles_of", lambda address: held if address else set())
    monkeypatch.setattr(guard, "_claims", lambda: claims)
    # what is drawn without its page would ask for the whole page, which there is none of here
    monkeypatch.setattr(st, "rerun", lambda **scope: st.stop())
    return held


def watched(run_id: str) -> None:
    """The live part of Training, as a browser asks for it each second: without its page."""
    from pages.training import page as training

    training._watch(run_id)


def commented(run_id: str) -> None:
    """An open dialog, as a browser asks for it."""
    from pages.review import discussion
    from pages.shared import widgets as shared

    discussion._comment_dialog(shared.store().run(run_id), "pca", "inside")


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
    assert store.signal(run.id) is Signal.GO_ON
    assert not buttons(at) and not words(at)


@pytest.mark.parametrize("how", ["role", "table", "sign-in"])
def test_a_dialog_left_open_keeps_no_comment(store, start, roles, how):
    run = start()
    finish(store, run)
    at = AppTest.from_function(commented, args=(run.id,)).run()
    at.text_area[0].input("I am still here")
    taken_away(store, run, roles, how)
    press(at, "Save comment")
    assert not notes.comments(store, run.id)


# -- confirmed for one thing, used for another --------------------------------------------------


def widened(store, table: TableRecord) -> TableRecord:
    """The table after another tab declared another bound."""
    schema = store.table(table.id).schema
    set_by_hand = {"high": 170.0, "provenance": Provenance.STEWARD}
    columns = [
        column.model_copy(update=set_by_hand) if column.name == "age" else column
        for column in schema.columns
    ]
    return store.save_schema(table.id, schema.model_copy(update={"columns": tuple(columns)}))


def test_a_press_declares_only_what_stood_there(store, table, show, gone):
    forget_statement(store, table)
    table = store.save_schema(table.id, as_learned(table.schema))  # no tick: a press is all
    at = show("tables", table=table.id)
    widened(store, table)
    press(at, "Plan a synthetic table")
    assert not store.attested(table.id) and not gone
    press(at, "Plan a synthetic table")
    assert store.attested(table.id) and gone


def test_a_statement_holds_for_the_schema_that_was_seen(store, table):
    forget_statement(store, table)
    seen = store.table(table.id).schema
    widened(store, table)
    store.attest(table.id, seen)
    assert not store.attested(table.id)


def test_a_press_starts_only_the_plan_that_was_shown(store, table, show, gone):
    at = show("plan", table=table.id)
    label = next(one for one in buttons(at) if one.startswith("Train"))
    declarations.change_person(store, store.table(table.id), Person(rows=3))  # in another tab
    store.attest(table.id)
    press(at, label)
    assert not store.runs() and not gone
    assert "3" in words(at)
    press(at, label)
    assert len(store.runs()) == 1 and gone


def test_a_schema_changed_during_planning_starts_nothing(store, table):
    seen = store.table(table.id)
    request = RunRequest(model="pearl", epsilon=1.0)
    plan = planning.make_plan(seen.schema, seen.training_n, request)
    widened(store, table)
    store.attest(table.id)
    with pytest.raises(RunStoreError, match="was changed since this plan was made"):
        run_service.start(store, IdleLauncher(), table.id, plan, request, schema=seen.schema)
    assert not store.runs()


def other_table(store, *, tagged: bool = False) -> TableRecord:
    other = imports.import_frame(
        store, sample_table(300), name="other", source="test", account_id="other"
    )
    if tagged:
        other = tables.change_groups(store, other, {"age": "group 1"})
    store.attest(other.id)
    return other


def test_words_typed_for_one_table_are_none_for_another(store, table, show):
    other = other_table(store)
    at = show("plan")
    at.toggle[0].set_value(True).run()
    (asked,) = [one for one in at.text_input if one.label.startswith("Type")]
    asked.set_value("not private").run()
    assert not button(at, "Train without differential privacy").disabled
    (which,) = [box for box in at.selectbox if box.label == "Table"]
    which.set_value(next(one for one in (table.id, other.id) if one != which.value)).run()
    assert button(at, "Train without differential privacy").disabled


def test_confirming_words_hold_for_one_account_and_reason(store, table, show):
    tagged = tables.change_groups(store, table, {"age": "group 1"})
    store.attest(table.id)
    other = other_table(store, tagged=True)
    for one in (tagged, other):
        released(store, one, shift=0.4)
    at = show("plan")
    (asked,) = [one for one in at.text_input if one.label.startswith("To continue")]
    asked.set_value("it is public").run()
    assert any(one.startswith("Train") for one in buttons(at))
    (which,) = [box for box in at.selectbox if box.label == "Table"]
    which.set_value(next(one for one in (table.id, other.id) if one != which.value)).run()
    assert not any(one.startswith("Train") for one in buttons(at))


def test_what_may_be_revealed_of_one_run_is_not_so_of_another(store, table, start, show):
    tables.change_groups(store, table, {"age": "group 1", "ward": "group 2"})
    store.attest(table.id)
    made = [start(certificate=0.1) for _ in range(2)]
    for run in made:
        judged(store, run, granted=False)
    at = show("download", run=made[0].id)
    at.toggle[0].set_value(True).run()
    assert at.get("download_button")
    (which,) = [box for box in at.selectbox if box.label == "Run"]
    which.set_value(made[1].id).run()
    assert made[1].id in at.query_params["run"]
    assert not at.get("download_button")


def test_a_share_kept_out_by_another_tab_stays(store, table, show):
    at = show("tables", table=table.id)
    tables.change_holdout(store, store.table(table.id), 0.2)
    at.run()
    assert store.table(table.id).schema.holdout == 0.2


# -- names --------------------------------------------------------------------------------------


def test_a_name_that_somebody_gave_themselves_is_no_signature(store, start, monkeypatch):
    run = start()
    finish(store, run)
    notes.set_rule(store, table_id=run.table_id, author="Ann", rule=notes.Rule(approvals=2))

    def verdict(email: str, name: str, decision: notes.Decision, text: str = "") -> str:
        claims = {"is_logged_in": True, "email": email, "name": name, "iat": time.time()}
        claims["email_verified"] = True
        monkeypatch.setattr(guard, "_claims", lambda: claims)
        notes.decide(
            store, table_id=run.table_id, run_id=run.id, author=guard.signature(),
            decision=decision, text=text,
        )  # fmt: skip
        return notes.missing(store, table_id=run.table_id, run_id=run.id)

    approve, changes = notes.Decision.APPROVE, notes.Decision.CHANGES
    monkeypatch.setattr(guard, "configured", lambda: True)
    notes.decide(
        store, table_id=run.table_id, run_id=run.id, author="Bob", decision=changes, text="no"
    )  # before people signed in
    assert "1 more" in verdict("bob@x.org", "Bob", approve)
    assert "1 more" in verdict("bob@x.org", "Robert", approve)  # one person under two names
    assert "Changes" in verdict("bob@x.org", "Bob", changes, "rows are missing")
    for name in ("Bob", "bob@x.org", "bob@x.org (Bob)"):
        assert "Changes" in verdict("eve@x.org", name, approve)
    assert not verdict("bob@x.org", "B" * 300, approve)
    assert [notes.called(v.author)[:3] for v in notes.review_verdicts(store, run.id)][-1] == "BBB"
