"""What a steward's pages say of others' tables: nothing; what the privacy officer's Ledger says."""

from __future__ import annotations

import time

import pytest

from core.runs.storage.access import set_access
from core.services import imports
from core.services.sample_tables import sample_table
from pages.server import guard
from tests.pages.screen import buttons, press, whole, words

pytestmark = pytest.mark.slow

ANN, BOB = "ann@x.org", "bob@x.org"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Who is signed in: `email` and `roles` of it may change."""
    person: dict[str, object] = {"email": BOB, "roles": {"steward"}}

    def claims() -> dict[str, object]:
        known = {"is_logged_in": True, "iat": time.time(), "email_verified": True}
        return {**known, "email": person["email"], "name": "Somebody"}

    monkeypatch.setattr(guard, "configured", lambda: True)
    monkeypatch.setattr(guard, "roles_of", lambda address: person["roles"] if address else set())
    monkeypatch.setattr(guard, "_claims", claims)
    return person


def bring(store, rows: slice, name: str, owner: str):
    frame = sample_table(400)[rows]
    record = imports.import_frame(store, frame, name=name, source="test", owner=owner)
    store.attest(record.id)
    return record


def shown(show, page: str, **query) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Words, buttons and options of a page, but for what a table is called and how large it is."""
    at = whole(show(page, **query))
    return words(at), tuple(buttons(at)), tuple(o for box in at.selectbox for o in box.options)


def test_a_stewards_pages_do_not_show_that_rows_are_shared(store, here, show):
    bring(store, slice(0, 300), "HIV clinic", ANN)
    seen = []
    for rows in (slice(0, 60), slice(300, 360)):
        mine = bring(store, rows, "mine", BOB)
        said, pressed, options = shown(show, "tables", table=mine.id)
        ledger = shown(show, "ledger")
        assert "There are no earlier tables" in said and "HIV" not in said + str(options)
        for text in (said, *ledger[:1]):
            assert "somebody else" not in text and "different owners" not in text
        seen.append((pressed, options, ledger))
        store.delete_table(mine.id)
    assert seen[0] == seen[1]


def test_only_the_owner_is_asked_whose_people_a_table_has(store, here, show):
    mine = bring(store, slice(0, 200), "mine", ANN)
    bring(store, slice(0, 100), "hidden", ANN)
    set_access(store, mine.id, owner=ANN, shared=[BOB])
    assert "Who are the people in this table?" not in shown(show, "tables", table=mine.id)[0]
    here["email"] = ANN
    assert "Who are the people in this table?" in shown(show, "tables", table=mine.id)[0]


def test_the_officer_sees_overlaps_joins_or_notes_them(store, here, show):
    first = bring(store, slice(0, 300), "HIV clinic", ANN)
    second = bring(store, slice(100, 400), "ward", BOB)
    here.update(email="pat@x.org", roles={"privacy_officer"})
    at = whole(show("ledger"))
    assert "The same people in tables of different owners" in words(at)
    at = whole(at.toggle(key="shared_people").set_value(True).run())
    text = words(at)
    assert "HIV clinic" in text and "ward" in text and "about 2" in text and " rows" in text
    at = whole(press(at, "Note that these are the same people"))
    assert "Future certificates of both accounts say so" in words(at)
    assert {e.account_id for e in store.ledger.entries()} == {first.account_id, second.account_id}
    here.update(email=BOB, roles={"steward"})
    assert "also in tables of another owner" in words(whole(show("ledger")))


def test_the_officer_joins_accounts_that_paid_for_nothing(store, here, show):
    first = bring(store, slice(0, 300), "HIV clinic", ANN)
    second = bring(store, slice(100, 400), "ward", BOB)
    here.update(email="pat@x.org", roles={"privacy_officer"})
    at = whole(show("ledger"))
    at = whole(at.toggle(key="shared_people").set_value(True).run())
    at = whole(press(at, "Join the accounts"))
    assert store.table(first.id).account_id == store.table(second.id).account_id
    assert "No two tables of different owners have enough rows in common" in words(at)
