"""What an account's ε is about: releases that protect others are not added up in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import create_engine, select, update

from core.encoding.layout.layout import Layout
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.privacy.accounting.accountant import epsilon
from core.privacy.ledger import admission
from core.privacy.ledger.admission import MixedUnitsError
from core.privacy.ledger.entries import entries_table
from core.privacy.ledger.ledger import Ledger
from core.privacy.ledger.units import mixed_units, units_of
from core.privacy.plan import Budget, Plan
from core.schema.column import DomainColumn, Kind
from core.schema.person import Person, Unit
from core.schema.schema import Domain
from tests.ledger_files import ledger_files

N = 1000
PATIENT = Person(columns=("patient",), rows=3)
OTHERS = {
    "doctor": Person(columns=("doctor",), rows=3),
    "patient and doctor": Person(columns=("patient", "doctor"), rows=3),
    "a renamed key": Person(columns=("pid",), rows=3),
    "rows of one person": Person(rows=3),
    "one row, said so": Person(rows=1),
    "one row": None,
}
SAME = {
    "more rows": Person(columns=("patient",), rows=9),
    "other constants": Person(columns=("patient",), rows=3, constant=("u",)),
}


def plan(person: Person | None, epsilon: float = 0.5) -> Plan:
    keys = ("patient", "doctor", "pid")
    columns = tuple(DomainColumn(name=name, kind=Kind.IDENTIFIER) for name in keys) + tuple(
        DomainColumn(name=name, kind=Kind.NUMBER, low=0.0, high=1.0) for name in ("u", "v")
    )
    domain = Layout(Domain(columns=columns, person=person)).domain
    budget = Budget(epsilon=epsilon, delta=1e-6)
    return plan_fit(synthesizer("scan_focus"), domain, N, budget, unit=person)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    engine = create_engine(f"sqlite:///{tmp_path / 'ledger.db'}")
    made = Ledger(engine, ledger_files(tmp_path / "home"))
    made.register("p", 10.0, 1e-5, n=N)
    made.debit("p", plan(PATIENT), "first")
    return made


@pytest.mark.parametrize("person", OTHERS.values(), ids=OTHERS)
def test_another_unit_is_refused_and_nothing_is_spent(ledger: Ledger, person) -> None:
    before = ledger.left("p")
    with pytest.raises(MixedUnitsError, match="cannot be added") as refused:
        ledger.debit("p", plan(person), "second")
    words = str(refused.value)
    assert "“per person (patient)”" in words and f"“{Unit.of(person).words}”" in words
    assert "Nothing was spent" in words and ledger.left("p") == before
    assert ledger.unit_objection("p", plan(person)) == words


@pytest.mark.parametrize("person", SAME.values(), ids=SAME)
def test_the_same_people_need_no_words(ledger: Ledger, person) -> None:
    assert ledger.unit_objection("p", plan(person)) is None
    entry = ledger.debit("p", plan(person), "second", unit_words="not asked for")
    assert entry.unit_words == "" and entry.statements == ()
    assert len(ledger.left("p").units) == 1


def test_groups_of_other_sizes_are_other_units(tmp_path: Path) -> None:
    """Without a key m is what is protected, not how much of somebody is used."""
    ledger = Ledger(create_engine("sqlite://"), ledger_files(tmp_path))
    ledger.debit("p", plan(Person(rows=3)), "first", limit=(10.0, 1e-5))
    for person in (Person(rows=2), Person(rows=4), None):
        with pytest.raises(MixedUnitsError):
            ledger.debit("p", plan(person), "second")
    assert ledger.debit("p", plan(Person(rows=3)), "second").unit == Unit(rows=3)


def test_what_was_confirmed_stands_in_every_later_certificate(ledger: Ledger) -> None:
    ledger.debit("p", plan(OTHERS["doctor"]), "second", unit_words=" we  know ")
    later = ledger.debit("p", plan(PATIENT), "third")
    said = [sentence for about, sentence in later.statements if about == "limit"]
    assert any("(“per person (patient)”; “per person (doctor)”)" in words for words in said)
    assert any("ledger entry 3" in words and "“we know”" in words for words in said)
    assert not any("we know" in s for about, s in later.statements if about == "shift")
    assert mixed_units(ledger.left("p").units) in said


def test_words_for_a_shift_are_none_for_a_unit(ledger: Ledger) -> None:
    with pytest.raises(MixedUnitsError):
        ledger.debit("p", plan(None), "second", words="the shift may become known")


def test_releases_without_privacy_protect_nobody(ledger: Ledger) -> None:
    free = plan(None).model_copy(update={"budget": Budget(epsilon=float("inf"), delta=1e-6)})
    free = free.model_copy(
        update={
            "phases": tuple(p.model_copy(update={"noise_multiplier": 0.0}) for p in free.phases)
        }
    )
    ledger.debit("p", free, "free", allow_non_private=True)
    assert units_of(ledger.entries("p")) == (Unit.of(PATIENT),)


def test_the_unit_is_part_of_the_sealed_entry(ledger: Ledger) -> None:
    engine = ledger._engine
    with engine.begin() as connection:
        body = json.loads(
            connection.scalar(select(entries_table.c.body).where(entries_table.c.seq == 2))
        )
        assert body["unit"] == {"columns": ["patient"], "rows": 3}
        body["unit"] = {"columns": ["doctor"], "rows": 3}
        text = json.dumps(body, sort_keys=True, ensure_ascii=False)
        where = entries_table.c.seq == 2
        connection.execute(update(entries_table).where(where).values(body=text))
    assert "Entry 2" in ledger.verify().problem


def test_an_account_that_mixes_in_silence_is_caught(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: every case above would pass, and the filter would add them up."""
    monkeypatch.setattr(admission, "unit_objection", lambda *_: None)
    for name, person in OTHERS.items():
        ledger.debit("p", plan(person), name)
    assert ledger.left("p").releases == len(OTHERS) + 1 and len(ledger.left("p").units) > 2


def test_a_release_per_doctor_costs_a_patient_far_more() -> None:
    """Why: a patient of ten doctors is ten of the records that a release per doctor protects."""
    per_doctor = plan(OTHERS["doctor"])
    assert epsilon(per_doctor.charged, 1e-6)[0] <= 0.5
    assert epsilon(per_doctor.charged, 1e-6, rows=10)[0] > 5.0
