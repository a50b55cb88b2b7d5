"""The command line's ledger: what it says of a chain, and of whom ε is about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from core.cli.main import main
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.person import Person
from tests.privacy.ledger.test_units import plan


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("FACSIMILE_HOME", str(folder))
    with RunStore(Workspace(folder)) as store:
        store.ledger.debit("p", plan(Person(columns=("patient",), rows=3)), "1", limit=(10.0, 1e-5))
    return folder


def said(capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str, str]:
    status = main(["ledger", *command])
    spoken = capsys.readouterr()
    return status, spoken.out, spoken.err


def test_a_chain_is_sound_broken_or_cannot_be_checked(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, "verify")[:2][0] == 0
    (home / "ledger.key").rename(home / "away")
    status, told, _ = said(capsys, "verify", "--json")
    assert status == 2 and told.startswith("The chain cannot be checked: ")
    assert "broken" not in told and "sound: " not in told
    found = json.loads(told.splitlines()[-1])
    assert (found["sound"], found["checked"]) == (False, False)
    assert "cannot be checked" in said(capsys)[2]
    (home / "away").rename(home / "ledger.key")
    engine = create_engine(f"sqlite:///{home / 'facsimile.db'}")
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE ledger SET account_id = 'x' WHERE seq = 2")
    engine.dispose()
    status, told, _ = said(capsys, "verify")
    assert status == 2 and told.startswith("broken: Entry 2 is filed under a different account")
    assert "They cannot be trusted: Entry 2" in said(capsys)[2]


def test_it_says_whom_an_account_is_about(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys)[1]
    assert "per person (patient)\n" in told and " ε counts per person (patient).\n" in told
    with RunStore(Workspace(home)) as store:
        store.ledger.debit("p", plan(None), "2", unit_words="the board agreed")
    told = said(capsys)[1]
    assert "confirmed: “the board agreed”" in told and "cannot be added: together" in told
    assert "do add up" not in told and "left" not in told and "of the limit of" not in told
