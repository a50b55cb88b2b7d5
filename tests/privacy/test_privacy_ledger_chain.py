"""The ledger's chain of hashes: what was changed, removed, reordered or cut off is seen."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, delete, update

from core.privacy.ledger.entries import entries_table
from core.privacy.ledger.ledger import Ledger
from tests.postgres_server import BOTH
from tests.privacy import toys

pytestmark = BOTH


def filled(ledger: Ledger) -> None:
    for i in range(4):
        ledger.debit("people", toys.gaussian_plan(0.4), f"run-{i}")


def test_an_untouched_chain_is_sound(ledger: Ledger) -> None:
    filled(ledger)
    report = ledger.verify()
    assert report and report.entries == 5
    assert report.head == ledger.entries()[-1].hash
    assert report.problem == ""


def test_an_empty_ledger_is_sound(engine: Engine) -> None:
    report = Ledger(engine).verify()
    assert report.sound and report.entries == 0


@pytest.mark.parametrize("column", ["people", "run", "body", "hash"])
def test_a_changed_entry_is_seen(ledger: Ledger, engine: Engine, column: str) -> None:
    filled(ledger)
    body = ledger.entries()[2].body()
    values = {
        "people": "others",
        "run": "free",
        "body": body.replace('"rho": 0.', '"rho": 0.0'),
        "hash": "f" * 64,
    }
    assert values["body"] != body
    with engine.begin() as connection:
        connection.execute(
            update(entries_table).where(entries_table.c.seq == 3).values({column: values[column]})
        )
    report = ledger.verify()
    assert not report and "Entry 3" in report.problem and report.entries == 2


def test_a_rewritten_entry_with_a_fresh_hash_is_seen(ledger: Ledger, engine: Engine) -> None:
    filled(ledger)
    forged = ledger.entries()[2].model_copy(update={"rho": 0.0}).sealed()
    with engine.begin() as connection:
        connection.execute(
            update(entries_table).where(entries_table.c.seq == 3).values(forged.row())
        )
    report = ledger.verify()
    assert not report and "Entry 4 does not follow" in report.problem


@pytest.mark.parametrize("seq", [1, 3])
def test_a_removed_entry_is_seen(ledger: Ledger, engine: Engine, seq: int) -> None:
    filled(ledger)
    with engine.begin() as connection:
        connection.execute(delete(entries_table).where(entries_table.c.seq == seq))
    report = ledger.verify()
    assert not report and f"Entry {seq} is missing" in report.problem


def test_a_cut_off_end_shows_against_a_kept_hash(ledger: Ledger, engine: Engine) -> None:
    filled(ledger)
    kept = ledger.verify().head
    with engine.begin() as connection:
        connection.execute(delete(entries_table).where(entries_table.c.seq == 5))
    report = ledger.verify()
    assert report.sound and report.head != kept


def test_exchanged_entries_are_seen(ledger: Ledger, engine: Engine) -> None:
    filled(ledger)
    with engine.begin() as connection:
        for old, new in ((3, 99), (4, 3), (99, 4)):
            connection.execute(
                update(entries_table).where(entries_table.c.seq == old).values(seq=new)
            )
    assert not ledger.verify()
