"""Where people sign in, no steward is told what somebody else's table holds; the officer is."""

from __future__ import annotations

import pandas as pd
import pytest
from sqlalchemy.orm import Session

from core.privacy.ledger.shift_consistency import SHARED_PEOPLE
from core.runs.accounts import between_owners, people, record_linkage
from core.runs.accounts.account import pay
from core.runs.accounts.record_linkage import Comparison
from core.runs.errors import RunStoreError
from core.runs.execution.privacy_certificate import OWN_TABLES
from core.runs.records import TableRecord
from core.runs.storage.access import set_access
from core.runs.storage.database import SketchRow
from core.runs.storage.store import RunStore
from core.services import imports, reviews
from core.services.sample_tables import sample_table
from tests.requests_for import request_for
from tests.runs.workers import HereLauncher, start, toy_plan

pytestmark = pytest.mark.slow

ANN, BOB = "ann@example.org", "bob@example.org"
FEW = 20  # guesses of each kind


def bring(
    store: RunStore, frame: pd.DataFrame, name: str = "visits.csv", owner: str = ""
) -> TableRecord:
    return imports.import_frame(store, frame, name=name, source="test", owner=owner)


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    return sample_table(1200)


@pytest.fixture
def clinic(store: RunStore, visits: pd.DataFrame) -> TableRecord:
    """Ann's, of the first 1,000 rows."""
    return bring(store, visits[:1000], "HIV clinic.csv", ANN)


def guesses(visits: pd.DataFrame) -> list[tuple[bool, pd.DataFrame]]:
    """Tables of two known members and one more row, with whether that one is a member too."""
    known = visits.iloc[[3, 4]]
    members = [(True, pd.concat([known, visits.iloc[[100 + i]]])) for i in range(FEW)]
    return members + [(False, pd.concat([known, visits.iloc[[1000 + i]]])) for i in range(FEW)]


def told(store: RunStore, frame: pd.DataFrame, owner: str) -> tuple[object, ...]:
    """All that somebody could learn from bringing a table in."""
    mine = bring(store, frame, "guess.csv", owner)
    answer = people.account_choice(store, mine.id)
    people.require_account(store, mine.id)  # raises where words are missing
    moved = people.change_account(store, mine.id, people.NEW)  # likewise
    names = people.account_names(store, without=mine.id, viewer=owner)
    store.delete_table(mine.id)
    return answer.linked, answer.words, moved.linked, len(mine.account_id), tuple(names.values())


def test_members_and_strangers_are_told_apart_by_nothing(
    store: RunStore, clinic: TableRecord, visits: pd.DataFrame
) -> None:
    answers = {told(store, frame, BOB) for _, frame in guesses(visits)}
    assert answers == {((), "", (), 20, ())}
    whole = bring(store, visits[:1000], "all.csv", BOB)  # nor by all rows at once
    assert whole.account_id != clinic.account_id
    assert people.account_choice(store, whole.id).linked == ()


def test_a_comparison_across_owners_is_caught(
    store: RunStore, clinic: TableRecord, visits: pd.DataFrame
) -> None:
    """The broken twin, which compared everything: 20 of 20 members, no stranger."""
    found = [
        (member, bool(Comparison(store, frame, None).linked())) for member, frame in guesses(visits)
    ]
    assert all(member == shared for member, shared in found)
    assert not any(Comparison(store, frame, BOB).linked() for _, frame in guesses(visits))


def test_what_others_hold_is_not_even_read(
    store: RunStore, clinic: TableRecord, visits: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that time tells nothing, whether rows are shared or not."""
    own = bring(store, sample_table(80), "own.csv", BOB)
    read, look = [], record_linkage._read

    def watched(store: RunStore, numbers: list[int]) -> object:
        with Session(store.engine) as session:
            read.extend(session.get(SketchRow, number).owner for number in numbers)
        return look(store, numbers)

    monkeypatch.setattr(record_linkage, "_read", watched)
    told(store, visits[:5], BOB)
    people.link_anew(store, own.id)
    assert set(read) == {BOB}


def test_own_and_shared_tables_are_recognised(
    store: RunStore, clinic: TableRecord, visits: pd.DataFrame
) -> None:
    again = bring(store, visits[5:900], "again.csv", ANN)
    assert again.account_id == clinic.account_id
    set_access(store, clinic.id, owner=ANN, shared=[BOB])
    shared = bring(store, visits[:700], "with bob.csv", BOB)
    assert shared.account_id == clinic.account_id
    assert "'again.csv'" not in people.account_names(store, viewer=BOB)[clinic.account_id]
    set_access(store, clinic.id, owner=ANN)
    other = bring(store, visits[:700].rename(columns=str.upper), "later.csv", "cy@example.org")
    assert other.account_id != clinic.account_id


def test_a_table_without_an_owner_is_everybodys(store: RunStore, visits: pd.DataFrame) -> None:
    first = bring(store, visits[:300], "open.csv")
    assert bring(store, visits[:250], "bobs.csv", BOB).account_id == first.account_id
    assert bring(store, visits[:200], "open again.csv").account_id == first.account_id


def test_an_owner_recognises_people_of_a_table_that_is_gone(
    store: RunStore, clinic: TableRecord, visits: pd.DataFrame
) -> None:
    pay(
        store.ledger, clinic.account_id, toy_plan(clinic), "k",
        domain=clinic.schema.as_proposed().domain(), allow_non_private=False,
    )  # fmt: skip
    store.delete_table(clinic.id)
    assert bring(store, visits[:900], "bobs.csv", BOB).account_id != clinic.account_id
    assert bring(store, visits[:900], "again.csv", ANN).account_id == clinic.account_id


# -- the privacy officer ---------------------------------------------------------------------------


def test_the_officer_sees_what_owners_share(
    store: RunStore, clinic: TableRecord, visits: pd.DataFrame
) -> None:
    assert not between_owners.has_owners(store)
    bring(store, sample_table(90), "strangers.csv", BOB)
    assert between_owners.has_owners(store) and between_owners.shared_people(store) == []
    mine = bring(store, visits[600:1200], "ward.csv", BOB)
    (one,) = between_owners.shared_people(store)
    assert (one.titles, one.owners) == (("HIV clinic.csv", "ward.csv"), (ANN, BOB))
    assert one.accounts == (clinic.account_id, mine.account_id) and not one.noted
    assert abs(one.rows - 400) < 60


def test_joined_accounts_pay_together(
    store: RunStore, clinic: TableRecord, visits: pd.DataFrame
) -> None:
    mine = bring(store, visits[:600], "ward.csv", BOB)
    pay(
        store.ledger, mine.account_id, toy_plan(mine), "k",
        domain=mine.schema.as_proposed().domain(), allow_non_private=False,
    )  # fmt: skip
    kept = between_owners.join_accounts(store, clinic.account_id, mine.account_id)
    assert kept == mine.account_id == store.table(clinic.id).account_id, "the one that paid goes on"
    assert between_owners.shared_people(store) == []
    assert bring(store, visits[:900], "again.csv", ANN).account_id == kept


def test_accounts_that_both_paid_are_noted_and_not_joined(
    store: RunStore, clinic: TableRecord, visits: pd.DataFrame
) -> None:
    mine = bring(store, visits[:600], "ward.csv", BOB)
    both = (clinic, mine)
    for table in both:
        pay(
            store.ledger, table.account_id, toy_plan(table), table.id,
            domain=table.schema.as_proposed().domain(), allow_non_private=False,
        )  # fmt: skip
    with pytest.raises(RunStoreError, match="Nothing was changed"):
        between_owners.join_accounts(store, clinic.account_id, mine.account_id)
    for _ in range(2):
        between_owners.note_shared(store, mine.account_id, clinic.account_id, "Pat")
    (one,) = between_owners.shared_people(store)
    assert one.noted and sum(e.kind == "shared" for e in store.ledger.entries()) == 2
    for table in both:
        entry = pay(
            store.ledger, table.account_id, toy_plan(table), f"{table.id} 2",
            domain=table.schema.as_proposed().domain(), allow_non_private=False,
        )  # fmt: skip
        assert ("people", SHARED_PEOPLE) in entry.statements
        assert ANN not in str(entry.statements) and "Pat" not in str(entry.statements)


def test_a_table_with_runs_does_not_move_to_another_account(
    store: RunStore, clinic: TableRecord, visits: pd.DataFrame
) -> None:
    mine = bring(store, visits[:600], "ward.csv", BOB)
    for table in (clinic, mine):
        store.create_run(
            table.id,
            toy_plan(table),
            request_for(toy_plan(table), rows=5, seed=1, device="cpu"),
            schema=table.schema,
        )
    with pytest.raises(RunStoreError, match="runs of their own"):
        between_owners.join_accounts(store, clinic.account_id, mine.account_id)
    assert store.table(mine.id).account_id == mine.account_id


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("owner", [ANN, ""])
def test_the_certificate_says_where_people_were_looked_for(
    store: RunStore, visits: pd.DataFrame, owner: str
) -> None:
    table = bring(store, visits[:200], owner=owner)
    store.attest(table.id)
    run = start(store, HereLauncher(store), toy_plan(table))
    paper = reviews.privacy_certificate(store, run.id)
    assert (OWN_TABLES in paper["conditions"]) is bool(owner)
