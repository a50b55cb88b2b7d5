"""The ledger's chain: what was changed, removed, reordered or cut off is seen, and nothing is paid.

Somebody edits the database and has not the key, unless a test says so.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete, insert, update

from core.privacy.ledger.admission import LedgerError
from core.privacy.ledger.appending import SealedChain
from core.privacy.ledger.chain import GENESIS, Head, check_chain, seal
from core.privacy.ledger.entries import entries_table
from core.privacy.ledger.ledger import Ledger
from tests.ledger_files import ledger_files
from tests.postgres_server import BOTH
from tests.privacy import toys

pytestmark = BOTH


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def refuses(ledger: Ledger) -> str:
    """What a debit, a registration and a declaration over a broken chain say; all the same."""
    before = len(ledger.entries())
    said = set()
    for append in (
        lambda: ledger.debit("people", toys.gaussian_plan(0.4), "next"),
        lambda: ledger.debit("people", toys.gaussian_plan(0.4), "run-1"),  # paid, so it may run
        lambda: ledger.register("others", 3.0, 1e-5, n=toys.N),
        lambda: ledger.declare("people", "no others", key="k"),
    ):
        with pytest.raises(LedgerError) as refused:
            append()
        said.add(str(refused.value))
    assert len(ledger.entries()) == before
    (words,) = said
    assert "Nothing was read or spent" in words and "Restore the workspace from a backup" in words
    return words


def filled(ledger: Ledger) -> None:
    for i in range(4):
        ledger.debit("people", toys.gaussian_plan(0.4), f"run-{i}")


def test_an_untouched_chain_is_sound(ledger: Ledger) -> None:
    filled(ledger)
    report = ledger.verify()
    assert report and report.entries == 5
    assert report.head == ledger.entries()[-1].hash
    assert report.problem == ""


def test_an_empty_ledger_is_sound_and_has_no_key(engine: Engine, home: Path) -> None:
    report = Ledger(engine, ledger_files(home)).verify()
    assert report.sound and report.entries == 0 and not list(home.glob("ledger.*"))


def test_key_and_head_are_their_owners_alone(ledger: Ledger, home: Path) -> None:
    for name in ("ledger.key", "ledger.head"):
        assert (home / name).stat().st_mode & 0o777 == 0o600
    assert len((home / "ledger.key").read_bytes()) == 32


@pytest.mark.parametrize("column", ["account_id", "run", "body", "hash"])
def test_a_changed_entry_is_seen(ledger: Ledger, engine: Engine, column: str) -> None:
    filled(ledger)
    body = ledger.entries()[2].body()
    values = {
        "account_id": "others",
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
    if column != "body":  # which cannot be shown either
        assert "Entry 3" in refuses(ledger)


def test_a_rewritten_entry_sealed_by_the_key_breaks_what_follows(
    ledger: Ledger, engine: Engine, home: Path
) -> None:
    filled(ledger)
    key = (home / "ledger.key").read_bytes()
    forged = ledger.entries()[2].model_copy(update={"rho": 0.0}).sealed(key)
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


def rewritten(ledger: Ledger, key: bytes | None) -> list[dict[str, object]]:
    """Rows of a whole chain in which every release costs nothing, by a key or by plain hashes."""
    rows, previous = [], GENESIS
    for entry in ledger.entries():
        cheap = {"epsilon": 0.01, "rho": 1e-9} if entry.kind == "release" else {}
        new = entry.model_copy(update={**cheap, "previous": previous})
        digest = hashlib.sha256(new.body().encode()).hexdigest()
        new = new.model_copy(update={"hash": digest}) if key is None else new.sealed(key)
        rows.append(new.row())
        previous = new.hash
    return rows


def replace_all(engine: Engine, rows: list[dict[str, object]]) -> None:
    with engine.begin() as connection:
        connection.execute(delete(entries_table))
        connection.execute(insert(entries_table), rows)


@pytest.mark.parametrize("another", [None, secrets.token_bytes(32)], ids=["no key", "another key"])
def test_a_chain_that_is_rewritten_whole_is_refused(
    ledger: Ledger, engine: Engine, another: bytes | None
) -> None:
    filled(ledger)
    replace_all(engine, rewritten(ledger, another))
    report = ledger.verify()
    assert not report and report.entries == 0 and "Entry 1 does not match" in report.problem
    assert "Entry 1 does not match" in refuses(ledger)


def test_a_chain_without_a_key_would_have_passed_for_sound(ledger: Ledger, engine: Engine) -> None:
    """The broken twin: sealed by what everybody knows, the same rewriting is not seen."""
    filled(ledger)
    known = b""
    rows = [tuple(row.values()) for row in rewritten(ledger, known)]
    order = [(row[1], row[2], row[3], row[0], row[4]) for row in rows]
    assert check_chain(order, known, Head(len(rows), str(rows[-1][4])).sealed(known))


@pytest.mark.parametrize("gone", [1, 2, 5])
def test_a_cut_off_end_is_seen(ledger: Ledger, engine: Engine, gone: int) -> None:
    filled(ledger)
    with engine.begin() as connection:
        connection.execute(delete(entries_table).where(entries_table.c.seq > 5 - gone))
    report = ledger.verify()
    assert not report and f"5 were written, and only {5 - gone} are here" in report.problem
    assert "missing at the end" in refuses(ledger)


def test_of_an_older_copy_what_was_added_since_is_missed(
    ledger: Ledger, engine: Engine, home: Path
) -> None:
    """A database put back alone is seen; together with an older head nothing shows it."""
    head = (home / "ledger.head").read_bytes()
    filled(ledger)
    with engine.begin() as connection:
        connection.execute(delete(entries_table).where(entries_table.c.seq > 1))
    assert not ledger.verify()
    (home / "ledger.head").write_bytes(head)
    assert ledger.verify(), "what docs/privacy.md says cannot be shown"


def test_a_changed_or_missing_head_is_no_head(ledger: Ledger, home: Path) -> None:
    filled(ledger)
    file = home / "ledger.head"
    kept = json.loads(file.read_bytes())
    for other in (b"", b"{}", json.dumps({**kept, "entries": 1}).encode()):
        file.write_bytes(other)
        assert "ledger.head was changed" in refuses(ledger)
    file.unlink()
    assert "ledger.head, which says how many entries there are, is missing" in refuses(ledger)
    assert not file.exists(), "an attempt to pay does not mend it"


def test_without_the_key_nothing_can_be_checked_or_paid(ledger: Ledger, home: Path) -> None:
    filled(ledger)
    (home / "ledger.key").rename(home / "away")
    report = ledger.verify()
    assert not report.sound and not report.checked and "ledger.key is missing" in report.problem
    assert "ledger.key is missing" in refuses(ledger)
    assert not (home / "ledger.key").exists(), "no second key is made"
    (home / "away").rename(home / "ledger.key")
    assert ledger.verify()


def test_all_entries_gone_is_not_a_new_ledger(ledger: Ledger, engine: Engine, home: Path) -> None:
    with engine.begin() as connection:
        connection.execute(delete(entries_table))
    assert "1 were written, and only 0 are here" in refuses(ledger)
    (home / "ledger.key").unlink()
    assert not ledger.verify().checked


def test_an_entry_whose_head_was_not_kept_counts(
    ledger: Ledger, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies between the two leaves it; the next one that pays keeps its head."""

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    plan = toys.gaussian_plan(0.4)
    with monkeypatch.context() as cut:
        cut.setattr(SealedChain, "_keep", dies)
        with pytest.raises(KeyboardInterrupt):
            ledger.debit("people", plan, "run")
    assert json.loads((home / "ledger.head").read_bytes())["entries"] == 1
    assert ledger.verify() and ledger.left("people").releases == 1
    assert ledger.debit("people", plan, "run").seq == 2, "paid once"
    assert json.loads((home / "ledger.head").read_bytes())["entries"] == 2


def test_a_head_that_is_late_does_not_go_back(ledger: Ledger, engine: Engine, home: Path) -> None:
    filled(ledger)
    chain = SealedChain(engine, ledger_files(home))
    earlier = ledger.entries()[1]
    chain._keep(Head(earlier.seq, earlier.hash), (home / "ledger.key").read_bytes())
    assert json.loads((home / "ledger.head").read_bytes())["entries"] == 5


@pytest.mark.parametrize("kept", ["entry", "head"])
def test_no_two_rows_or_heads_are_sealed_alike(kept: str) -> None:
    key = secrets.token_bytes(32)
    rows = (
        ("a", "bc", "d"),
        ("ab", "c", "d"),
        ("a", "b", "cd"),
        ("a", None, "bcd"),
        ("a", "", "bcd"),
    )
    if kept == "entry":
        seals = {
            seal(key, seq=1, account_id=account_id, run=run, previous=GENESIS, body=body)
            for account_id, run, body in rows
        }
        assert len(seals) == len(rows)
    else:
        assert Head.read(key, Head(3, "f").sealed(key)) == Head(3, "f")
        assert Head.read(key, Head(3, "f").sealed(key[::-1])) is None


def test_exchanged_entries_are_seen(ledger: Ledger, engine: Engine) -> None:
    filled(ledger)
    with engine.begin() as connection:
        for old, new in ((3, 99), (4, 3), (99, 4)):
            connection.execute(
                update(entries_table).where(entries_table.c.seq == old).values(seq=new)
            )
    assert not ledger.verify()
