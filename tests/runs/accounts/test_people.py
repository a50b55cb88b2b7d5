"""Whose people a table is about: proposed, answered, changed, declared, and paid for."""

from __future__ import annotations

import json
import math
import stat
import threading
from pathlib import Path

import pandas as pd
import pytest
from dp_accounting.gaussian_mechanism import get_sigma_gaussian

from core.cli.main import main
from core.privacy.discovery.open_domain import planned_schema
from core.privacy.ledger.admission import HiddenError, OverBudgetError
from core.privacy.ledger.entries import Entry
from core.privacy.ledger.ledger import Ledger
from core.privacy.ledger.shift_consistency import NO_OTHER_ACCOUNT
from core.privacy.plan import LARGEST_EPSILON, Plan, default_delta
from core.runs.accounts import people
from core.runs.accounts.account import (
    DEFAULT_LIMIT,
    default_limit,
    pay,
    set_limit,
    table_account,
)
from core.runs.errors import RunStoreError
from core.runs.execution.privacy_certificate import make_privacy_certificate
from core.runs.records import TableRecord
from core.runs.request import RunRequest
from core.runs.storage.store import RunStore
from core.runs.storage.workspace_secrets import people_key
from core.runs.workspace import Workspace
from core.services import imports, planning, runs, tables
from core.services.sample_tables import sample_table
from tests.privacy import toys
from tests.requests_for import request_for

pytestmark = pytest.mark.slow

ADULT = 32_561  # records of a well-known table


class Idle:
    """A launcher that starts nothing."""

    def submit(self, run_id: str) -> None:
        """Nothing starts."""


def bring(store: RunStore, frame: pd.DataFrame, name: str = "visits.csv") -> TableRecord:
    return imports.import_frame(store, frame, name=name, source="test")


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    return sample_table(600)


def changed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[5:].drop(columns=["sex"]).rename(columns=str.upper).iloc[:, ::-1]


def gaussian(epsilon: float, delta: float, n: int = ADULT) -> Plan:
    sigma = get_sigma_gaussian(epsilon, delta) * (1 + 1e-9)
    return toys.plan(n, [toys.phase(noise_multiplier=sigma)], delta=delta)


# -- proposals ----------------------------------------------------------------------------------


def test_a_changed_table_is_proposed_for_the_same_account(
    store: RunStore, visits: pd.DataFrame
) -> None:
    first, second = bring(store, visits), bring(store, changed(visits), "again.csv")
    assert second.account_id == first.account_id
    (link,) = people.account_choice(store, second.id).linked
    assert link.evidence.startswith("Nearly all rows of this table are also in 'visits.csv' (")
    part = bring(store, pd.concat([visits[:60], sample_table(500)[300:]]), "part.csv")
    assert part.account_id == first.account_id


def test_other_people_get_an_account_of_their_own(store: RunStore, visits: pd.DataFrame) -> None:
    first = bring(store, visits)
    other = bring(store, sample_table(300), "other.csv")  # other draws from the same law
    assert (
        other.account_id != first.account_id and people.account_choice(store, other.id).linked == ()
    )


def test_of_a_large_table_a_part_is_compared(
    store: RunStore, visits: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bring(store, visits)
    monkeypatch.setattr("core.importing.record_hashes.COMPARED", 150)
    assert bring(store, changed(visits)).account_id == first.account_id
    assert bring(store, visits.sample(frac=1.0, random_state=3)).account_id == first.account_id
    assert bring(store, sample_table(300)).account_id != first.account_id


def test_what_is_kept_out_belongs_to_the_same_account(
    store: RunStore, visits: pd.DataFrame
) -> None:
    first = tables.change_holdout(store, bring(store, visits), 0.25)
    _, held = store.load_split(first.id, first.schema, first.columns)
    assert len(held) == 150
    assert bring(store, held, "held.csv").account_id == first.account_id


def test_people_are_recognised_after_their_table_is_gone(
    store: RunStore, visits: pd.DataFrame
) -> None:
    first = bring(store, visits)
    pay(
        store.ledger, first.account_id, gaussian(1.0, 1e-6, 600), "k",
        domain=first.schema.as_proposed().domain(), allow_non_private=False,
    )  # fmt: skip
    store.delete_table(first.id)
    assert bring(store, changed(visits)).account_id == first.account_id
    untouched = bring(store, sample_table(300), "other.csv")
    store.delete_table(untouched.id)  # nothing was released, so nothing needs recognising
    assert bring(store, sample_table(300)).account_id != untouched.account_id


def test_people_are_kept_while_anything_can_be_released(
    store: RunStore, visits: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purchase may pay and read while its table is deleted: then they must be recognised."""
    table, entries, looks = bring(store, visits), Ledger.entries, []

    def looked(ledger: Ledger, account: str | None = None) -> tuple[Entry, ...]:
        with pytest.raises(FileNotFoundError):
            store.load_frame(table.id)
        looks.append(account)
        return entries(ledger, account)

    monkeypatch.setattr(Ledger, "entries", looked)
    store.delete_table(table.id)
    assert looks == [table.account_id]


def test_two_imports_at_once_end_in_one_account(tmp_path: Path, visits: pd.DataFrame) -> None:
    RunStore(Workspace(tmp_path)).close()
    records, begin = [], threading.Barrier(2, timeout=60)

    def work() -> None:
        with RunStore(Workspace(tmp_path)) as store:
            begin.wait()
            records.append(bring(store, visits).account_id)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(records) == 2 and len(set(records)) == 1


def test_the_key_is_the_owners_alone(tmp_path: Path) -> None:
    home = Workspace(tmp_path / "home")
    assert len(people_key(home)) == 32 and people_key(home) == people_key(home)
    assert stat.S_IMODE((home.home / "people.key").stat().st_mode) == 0o600
    assert people_key(Workspace(tmp_path / "elsewhere")) != people_key(home)
    assert {path.name for path in home.home.iterdir()} == {"people.key"}


# -- answers ------------------------------------------------------------------------------------


def test_separate_accounts_need_words_in_certificates(
    store: RunStore, visits: pd.DataFrame
) -> None:
    first, second = bring(store, visits), bring(store, visits, "again.csv")
    with pytest.raises(RunStoreError, match="Nothing was changed"):
        people.change_account(store, second.id, people.NEW)
    assert store.table(second.id).account_id == first.account_id
    people.change_account(store, second.id, people.NEW, "two towns with one numbering")
    second = store.table(second.id)
    assert second.account_id != first.account_id
    assert people.account_choice(store, second.id).words == "two towns with one numbering"
    plan = gaussian(1.0, 1e-6, 600)
    for table in (first, second):  # the claim of either account hangs on it
        entry = pay(
            store.ledger, table.account_id, plan, table.id,
            domain=table.schema.as_proposed().domain(), allow_non_private=False,
        )  # fmt: skip
        paper = make_privacy_certificate(
            table=table.name, plan=plan, executed=(), guarantee=plan.guarantee, rows=1, debit=entry
        )
        assert NO_OTHER_ACCOUNT in paper["conditions"]
        assert "two towns" not in json.dumps(paper, ensure_ascii=False)
    assert store.ledger.verify()


def test_a_table_of_two_accounts_waits_for_an_answer(store: RunStore) -> None:
    one, two = sample_table(300), sample_table(400)
    first, second = bring(store, one, "one.csv"), bring(store, two, "two.csv")
    assert first.account_id != second.account_id
    both = bring(store, pd.concat([one, two], ignore_index=True), "both.csv")
    answer = people.account_choice(store, both.id)
    assert {link.account_id for link in answer.linked} == {first.account_id, second.account_id}
    assert answer.open
    store.attest(both.id)
    plan = planning.make_plan(both.schema, both.n, RunRequest(model="pearl", epsilon=1.0))
    with pytest.raises(RunStoreError, match="Say on the Tables page whose people"):
        runs.start(store, Idle(), both.id, plan, request_for(plan))  # type: ignore[arg-type]
    people.change_account(store, both.id, both.account_id, "the others are dead")
    people.require_account(store, both.id)


def test_a_table_moves_only_before_anything_is_released(
    store: RunStore, visits: pd.DataFrame
) -> None:
    table = bring(store, visits)
    people.change_account(store, table.id, "clinic")
    assert store.table(table.id).account_id == "clinic"
    with pytest.raises(RunStoreError, match="1 to 60 characters"):
        people.change_account(store, table.id, "two\nlines")
    store.attest(table.id)
    plan = planning.make_plan(table.schema, table.n, RunRequest(model="pearl", epsilon=1.0))
    run = runs.start(store, Idle(), table.id, plan, request_for(plan))  # type: ignore[arg-type]
    with pytest.raises(RunStoreError, match="Nothing was changed"):
        people.change_account(store, table.id, "elsewhere")
    pay(
        store.ledger, "clinic", plan, run.id,
        domain=table.schema.as_proposed().domain(), allow_non_private=False,
    )  # fmt: skip
    runs.cancel(store, run.id)
    store.delete_run(run.id)  # the run is gone; what it released is not
    with pytest.raises(RunStoreError, match="Nothing was changed"):
        people.change_account(store, table.id, "elsewhere")


# -- limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 100, 891, ADULT, 10**6, 10**8])
def test_the_default_limit_is_finite_and_below_one_over_n(n: int) -> None:
    epsilon, delta = default_limit(n)
    assert epsilon == DEFAULT_LIMIT and 0 < delta < 1 / n
    assert n < 3 or default_delta(n) < delta


@pytest.mark.parametrize("delta", [1e-5, default_delta(ADULT)])
def test_usual_runs_pass_the_default_limit(store: RunStore, delta: float) -> None:
    ledger, plan = store.ledger, gaussian(1.0, delta)
    for i in range(20):
        pay(ledger, "many", plan, f"m{i}", domain=toys.domain(), allow_non_private=False)
    pay(ledger, "large", gaussian(8.0, delta), "l", domain=toys.domain(), allow_non_private=False)
    with pytest.raises(OverBudgetError, match="cannot be raised"):
        pay(
            ledger, "huge", gaussian(11.0, delta), "h", domain=toys.domain(),
            allow_non_private=False,
        )  # fmt: skip


def test_a_limit_needs_delta_below_one_over_n(store: RunStore, visits: pd.DataFrame) -> None:
    table = bring(store, visits)
    with pytest.raises(ValueError, match="below one over the number of records, 1/600"):
        set_limit(store, table.id, epsilon=1.0, delta=1 / 600)
    assert table_account(store, table.id).limit is None


def test_a_limit_that_protects_nobody_is_refused(store: RunStore, visits: pd.DataFrame) -> None:
    table = bring(store, visits)
    for epsilon in (100.1, 1e6, math.inf):
        with pytest.raises(ValueError, match=r"protects nobody.*Nothing was changed"):
            set_limit(store, table.id, epsilon=epsilon)
    assert store.ledger.entries(table.account_id) == ()
    assert set_limit(store, table.id, epsilon=LARGEST_EPSILON).limit == LARGEST_EPSILON


# -- hidden distributions -----------------------------------------------------------------------


def test_another_strength_of_a_changed_table_needs_words(
    store: RunStore, visits: pd.DataFrame
) -> None:
    def start(table: TableRecord, shift: float, words: str = "") -> None:
        tagged = tables.change_groups(store, table, {"age": "group 1"})
        store.attest(table.id)
        plan = planning.make_plan(
            tagged.schema, table.n, RunRequest(model="pearl", epsilon=1.0, shift=shift)
        )
        run = runs.start(store, Idle(), table.id, plan, request_for(plan, shift_words=words))
        pay(
            store.ledger, run.account_id, plan, run.id,
            domain=planned_schema(run.schema, private=True).domain(),
            allow_non_private=False, shift_words=words,
        )  # fmt: skip

    start(bring(store, visits), 0.4)
    again = bring(store, visits.iloc[3:].sample(frac=1.0, random_state=2), "again.csv")
    with pytest.raises(HiddenError, match="strength would undo"):
        start(again, 0.95)
    start(again, 0.4)
    start(again, 0.95, "the board knows")
    (entry,) = [e for e in store.ledger.entries(again.account_id) if e.words]
    assert entry.shift == 0.95 and entry.words == "the board knows"


# -- the command line ---------------------------------------------------------------------------

FEW = ["--settings", "steps=40", "frequencies=200", "batch=64", "hidden=16"]


@pytest.fixture
def synth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("FACSIMILE_HOME", str(tmp_path / "cli"))

    def run(frame: pd.DataFrame, *more: str, command: str = "synth") -> tuple[int, dict, str]:
        frame.to_csv(tmp_path / "t.csv", index=False)
        out = ["--out", str(tmp_path / "o.csv"), "--quiet"] if command == "synth" else []
        basic = [command, str(tmp_path / "t.csv"), "--model", "pearl", "--epsilon", "0.5"]
        basic += ["--declare-public", "--json"]
        status = main([*basic, *FEW, *out, *more])
        spoken = capsys.readouterr()
        found = json.loads(spoken.out.splitlines()[-1]) if status == 0 else {}
        return status, found | {"text": spoken.out}, spoken.err

    return run


def paying(tmp_path: Path) -> list[str]:
    with RunStore(Workspace(tmp_path / "cli")) as store:
        return [e.account_id for e in store.ledger.entries() if e.kind == "release"]


def test_the_command_line_finds_the_account_and_says_so(
    synth, visits: pd.DataFrame, tmp_path: Path
) -> None:
    assert synth(visits)[2] == ""
    status, found, spoken = synth(changed(visits))
    assert status == 0 and len(set(paying(tmp_path))) == 1
    assert "Nearly all rows of this table are also in 't.csv'" in spoken
    assert spoken.count("\n") == 1 and "choose another with --people" in spoken
    assert NO_OTHER_ACCOUNT not in found["conditions"]

    status, found, spoken = synth(changed(visits), "--people", "another clinic")
    assert status == 0 and paying(tmp_path)[-1] == "another clinic"
    assert "you declare that these are other people" in spoken
    assert NO_OTHER_ACCOUNT in found["conditions"]
    status, _, spoken = synth(visits[:100])  # in both accounts by now
    assert status == 2 and "say with --people which one pays" in spoken
    assert len(paying(tmp_path)) == 3


def test_the_command_line_refuses_another_strength(
    synth, visits: pd.DataFrame, tmp_path: Path
) -> None:
    tagged = ("--sensitive", "age,ward", "--shift", "0.4")
    assert synth(visits, *tagged)[0] == 0
    other = ("--sensitive", "age,ward", "--shift", "0.75")
    status, found, _ = synth(visits, *other, command="plan")
    assert status == 0 and "would be refused" in found["text"]
    status, _, spoken = synth(visits.iloc[2:], *other)
    assert status == 2 and "strength would undo the shift" in spoken
    status, _, spoken = synth(visits)  # without tags
    assert status == 2 and "would show age, ward without the shift" in spoken
    status, found, _ = synth(visits, *other, "--confirm-shift", "it is public by now")
    assert status == 0 and any("it is public by now" in line for line in found["conditions"])
    assert any("it is public by now" in line for line in found["lmdp"]["confirmed"])
    status, found, _ = synth(visits, *tagged)
    assert status == 0 and any("it is public by now" in line for line in found["conditions"])
    assert len(paying(tmp_path)) == 3
