import math
import os
import sqlite3
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest

from core.models.events import Metrics, Note, PhaseStarted, Preview, Progress, Signal
from core.privacy.plan import Guarantee, Plan
from core.reading.raw_cells import raw_frame
from core.runs.errors import NotFoundError, RunStoreError
from core.runs.events import RunEvent, State, json_safe
from core.runs.records import RunRecord, TableRecord
from core.runs.storage import store as store_module
from core.runs.storage.engine import open_engine
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.column import Column, Kind
from core.schema.schema import Schema
from core.writing.whole_files import replacing
from tests.postgres_server import BOTH
from tests.requests_for import request_for

pytestmark = BOTH


def make_run(store: RunStore, table: TableRecord, plan: Plan) -> RunRecord:
    return store.create_run(
        table.id, plan, request_for(plan, rows=10, device="cpu"), schema=table.schema
    )


def note(text: str) -> Note:
    return Note(text=text)


# -- workspace ----------------------------------------------------------------------------------


def test_everything_on_disk_is_the_owners_alone(store: RunStore, table: TableRecord) -> None:
    home = store.workspace.home
    for path in [home, *home.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path.relative_to(home)


def test_replacing_leaves_the_old_file_when_the_block_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with pytest.raises(KeyError), replacing(path) as file:
        file.write(b"half")
        raise KeyError
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_environment_names_the_workspace_and_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACSIMILE_HOME", str(tmp_path / "w"))
    workspace = Workspace.default()
    assert workspace.home == tmp_path / "w"
    assert workspace.database_url == f"sqlite:///{tmp_path / 'w' / 'facsimile.db'}"
    monkeypatch.setenv("FACSIMILE_DATABASE", "postgresql://db/f")
    assert workspace.database_url == "postgresql://db/f"


@pytest.mark.databases("sqlite")
def test_sqlite_is_in_wal_mode_with_foreign_keys(store: RunStore) -> None:
    with store.engine.connect() as connection:
        pragma = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "foreign_keys")
        }
    assert pragma == {"journal_mode": "wal", "foreign_keys": 1}


@pytest.mark.databases("sqlite")
def test_a_connection_waits_for_another_that_writes_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    writer.execute("CREATE TABLE numbers (value)")
    writer.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor() as pool, writer:
        mode = pool.submit(_mode_of, path)
        time.sleep(0.3)
        assert not mode.done()
        writer.execute("COMMIT")
        assert mode.result(timeout=30) == "wal"


def _mode_of(path: Path) -> str:
    with open_engine(f"sqlite:///{path}").connect() as connection:
        return str(connection.exec_driver_sql("PRAGMA journal_mode").scalar())


# -- tables -------------------------------------------------------------------------------------


def test_a_table_comes_back_as_it_was(
    store: RunStore, table: TableRecord, frame: pd.DataFrame, schema: Schema
) -> None:
    assert store.tables() == [table]
    assert (table.n, table.columns, table.schema) == (len(frame), ("age", "sex"), schema)
    pd.testing.assert_frame_equal(store.load_frame(table.id), frame)


def test_a_schema_for_other_columns_is_refused(store: RunStore, table: TableRecord) -> None:
    other = Schema(columns=(Column(name="x", kind=Kind.TEXT),))
    with pytest.raises(RunStoreError, match="Nothing was changed"):
        store.save_schema(table.id, other)
    changed = table.schema.replace(table.schema["age"].model_copy(update={"high": 120.0}))
    assert store.save_schema(table.id, changed).schema["age"].high == 120.0


def test_an_empty_table_is_refused(store: RunStore, schema: Schema, frame: pd.DataFrame) -> None:
    with pytest.raises(RunStoreError, match="no records"):
        store.add_table(
            raw_frame(frame[:0]), name="", schema=schema, profile={}, source="", account_id="p"
        )
    assert store.tables() == []


def test_deleting_a_table_removes_rows_runs_and_artefacts(
    store: RunStore, table: TableRecord, plan: Plan
) -> None:
    run = make_run(store, table, plan)
    store.artefacts(run.id).path("report.json").write_text("{}")
    store.delete_table(table.id)
    left = [p for p in store.workspace.home.rglob("*") if not p.name.startswith("facsimile.db")]
    assert {p.name for p in left} == {"tables", "runs", "importing"}
    assert store.runs() == [] and store.tables() == [] and store.journal.events(run.id) == []


def test_a_table_whose_run_begins_while_it_is_deleted_is_kept(
    store: RunStore, table: TableRecord, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, refuse, looks = make_run(store, table, plan), store_module._refuse_running, []

    def begins_after_a_look(seen: RunRecord) -> None:
        refuse(seen)
        looks.append(seen)
        if len(looks) == 2:  # the last one
            assert store.claim(run.id, slots=1)

    monkeypatch.setattr(store_module, "_refuse_running", begins_after_a_look)
    with pytest.raises(RunStoreError, match="is running"):
        store.delete_table(table.id)
    assert store.run(run.id).state is State.RUNNING and len(store.load_frame(table.id)) == table.n


def test_a_table_with_a_running_run_is_kept_whole(
    store: RunStore, table: TableRecord, plan: Plan
) -> None:
    waiting, running = make_run(store, table, plan), make_run(store, table, plan)
    assert store.claim(running.id, slots=1) and store.adopt(running.id, os.getpid())
    with pytest.raises(RunStoreError, match="running"):
        store.delete_table(table.id)
    assert {run.id for run in store.runs(table.id)} == {waiting.id, running.id}


# -- events -------------------------------------------------------------------------------------


def test_events_are_numbered_from_one_in_each_run(
    store: RunStore, table: TableRecord, plan: Plan
) -> None:
    first, second = make_run(store, table, plan), make_run(store, table, plan)
    assert [store.journal.append(run.id, note("x")) for run in (first, second, first)] == [2, 2, 3]
    assert [event.seq for event in store.journal.events(first.id)] == [1, 2, 3]
    assert [e.seq for e in store.journal.events(first.id, after=1, kind="note", limit=1)] == [2]
    latest = store.journal.latest(first.id, "state")
    assert latest is not None and latest.data["state"] == "queued"
    assert store.journal.latest(first.id, "preview") is None


def test_many_writers_leave_no_gap_and_no_double(
    store: RunStore, table: TableRecord, plan: Plan
) -> None:
    run = make_run(store, table, plan)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: store.journal.append(run.id, note(str(i))), range(80)))
    assert sorted(got) == list(range(2, 82))


def test_an_event_of_a_deleted_run_is_refused(
    store: RunStore, table: TableRecord, plan: Plan
) -> None:
    run = make_run(store, table, plan)
    store.delete_run(run.id)
    with pytest.raises(RunStoreError, match="deleted"):
        store.journal.append(run.id, note("late"))


def test_values_that_json_cannot_hold_are_made_safe() -> None:
    value = {
        "inf": math.inf,
        "np": np.float32(0.5),
        "list": (np.bool_(True), None, pd.NaT, pd.NA),
        "day": date(2024, 1, 2),
        "when": pd.Timestamp("2024-01-02 03:04"),
        "path": Path("x"),
    }
    assert json_safe(value) == {
        "inf": None,
        "np": 0.5,
        "list": [True, None, None, None],
        "day": "2024-01-02",
        "when": "2024-01-02T03:04:00",
        "path": "x",
    }


def test_series_is_thinned_and_keeps_the_newest(
    store: RunStore, table: TableRecord, plan: Plan
) -> None:
    run = make_run(store, table, plan)
    assert store.journal.series(run.id).empty
    rows = [
        {"run_id": run.id, "seq": i, "time": 1e9 + i, "kind": "metrics",
         "data": {"step": i, "loss": 1 / i, "word": "x", "flag": True, "clipped": 0.1}}
        for i in range(2, 10_002)
    ]  # fmt: skip
    from sqlalchemy import insert

    from core.runs.storage.database import EventRow

    with store.engine.begin() as connection:
        connection.execute(insert(EventRow), rows)
    store.journal.append(run.id, RunEvent(kind="device", data={"cpu_percent": 1.0}))
    series = store.journal.series(run.id)
    assert 400 <= len(series) <= 402
    assert list(series.columns) == ["seq", "time", "seconds", "step", "loss", "clipped"]
    assert series["step"].iloc[0] == 2 and series["step"].iloc[-1] == 10_001
    assert series["seconds"].iloc[-1] == 9_999.0
    best = min(_timed(lambda: store.journal.series(run.id)) for _ in range(5))
    assert best < 0.06  # about 15 ms; the margin is for a busy machine


def _timed(call: object) -> float:
    """Seconds of this process's work: others on the machine do not count."""
    began = time.process_time()
    call()  # type: ignore[operator]
    return time.process_time() - began


# -- life ---------------------------------------------------------------------------------------


def test_a_new_run_waits(store: RunStore, table: TableRecord, plan: Plan) -> None:
    run = make_run(store, table, plan)
    assert (run.state, run.debit, run.guarantee, run.resumable) == (State.QUEUED, None, None, False)
    assert (run.table_name, run.account_id, run.plan, run.model) == ("people", "p1", plan, "toy")
    assert store.run(run.id) == run


def test_a_plan_for_other_records_is_refused(
    store: RunStore, table: TableRecord, plan: Plan
) -> None:
    with pytest.raises(RunStoreError, match="41 records, but the table has 40"):
        make_run(store, table, plan.model_copy(update={"n": 41}))


def test_only_one_of_many_claims_wins(store: RunStore, table: TableRecord, plan: Plan) -> None:
    runs = [make_run(store, table, plan) for _ in range(6)]
    stores = [RunStore(store.workspace) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        tries = [(s, r.id) for s in stores for r in runs]
        won = list(pool.map(lambda t: t[0].claim(t[1], slots=2), tries))
    for opened in stores:
        opened.close()
    assert sum(won) == 2
    assert [run.state for run in store.runs()].count(State.RUNNING) == 2


def test_a_state_changes_only_from_what_was_expected(
    store: RunStore, table: TableRecord, plan: Plan
) -> None:
    run = make_run(store, table, plan)
    assert not store.set_state(run.id, State.DONE, expect=(State.RUNNING,))
    assert store.set_state(run.id, State.CANCELLED, "Enough.", expect=(State.QUEUED,))
    ended = store.run(run.id)
    assert (ended.state, ended.message) == (State.CANCELLED, "Enough.")
    assert ended.ended is not None
    assert [e.data["state"] for e in store.journal.events(run.id)] == ["queued", "cancelled"]


def test_a_dead_process_makes_a_run_lost_at_the_next_look(
    store: RunStore, table: TableRecord, plan: Plan
) -> None:
    run = make_run(store, table, plan)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert store.claim(run.id, slots=1) and store.adopt(run.id, child.pid)
    assert store.run(run.id).state is State.RUNNING
    assert not store.adopt(run.id, os.getpid()), "a run has one holder"
    child.kill()
    while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    lost = store.run(run.id)  # not collected yet: a zombie does not work either
    child.communicate()
    assert lost.state is State.LOST and lost.resumable  # nothing was debited
    assert not store.beat(run.id)


def test_a_reused_process_number_is_not_the_worker(
    store: RunStore, table: TableRecord, plan: Plan
) -> None:
    run = make_run(store, table, plan)
    assert store.claim(run.id, slots=1) and store.adopt(run.id, os.getpid())
    assert store.beat(run.id) and store.reconcile() == []
    from sqlalchemy import update

    from core.runs.storage.database import RunRow

    with store.engine.begin() as connection:
        connection.execute(update(RunRow).values(pid_started=RunRow.pid_started - 100.0))
    store.record(run.id, debit="e1")
    store.artefacts(run.id).path("meter.json").write_text("{}")  # a private access was counted
    (lost,) = store.reconcile()
    assert lost.id == run.id and "spends its budget again" in lost.message
    assert not lost.resumable
    checkpoint = store.artefacts(run.id).path("checkpoint")
    checkpoint.mkdir()
    assert not store.run(run.id).resumable, "an empty folder is no checkpoint"
    (checkpoint / "state.json").write_text("{}")
    assert store.run(run.id).resumable


@pytest.mark.databases("sqlite")  # for the other see test_machines.py
@pytest.mark.parametrize(("age", "state"), [(30.0, State.RUNNING), (61.0, State.LOST)])
def test_a_worker_elsewhere_is_judged_by_its_heartbeat(
    store: RunStore, table: TableRecord, plan: Plan, age: float, state: State
) -> None:
    from sqlalchemy import update

    from core.runs.storage.database import RunRow

    run = make_run(store, table, plan)
    assert store.claim(run.id, slots=1)
    with store.engine.begin() as connection:
        connection.execute(
            update(RunRow).values(host="elsewhere", pid=1, heartbeat=time.time() - age)
        )
    assert store.run(run.id).state is state


def test_signals_and_records(store: RunStore, table: TableRecord, plan: Plan) -> None:
    run = make_run(store, table, plan)
    assert store.signal(run.id) is Signal.GO_ON
    store.request(run.id, Signal.PAUSE)
    assert store.signal(run.id) is Signal.PAUSE
    claim = Guarantee(epsilon=math.inf, epsilon_replace=math.inf, delta=1e-6)
    store.record(run.id, guarantee=claim, seconds={"fit": 1.5}, peak_memory_mb=12.0)
    found = store.run(run.id)
    assert (found.guarantee, found.seconds, found.peak_memory_mb) == (claim, {"fit": 1.5}, 12.0)
    assert not found.private
    store.delete_run(run.id)
    assert store.signal(run.id) is Signal.CANCEL


@pytest.mark.parametrize("name", ["../x", "", "a/b", "..", "/etc/passwd"])
def test_artefacts_stay_in_their_folder(store: RunStore, name: str) -> None:
    with pytest.raises(NotFoundError):
        store.artefacts("abcdef").path(name)
    with pytest.raises(NotFoundError):
        store.artefacts("../../etc").path("x")
    with pytest.raises(NotFoundError):
        store.run("nothing")


def test_progress_is_of_the_present_phase(store: RunStore, table: TableRecord, plan: Plan) -> None:
    from core.services.runs import progress

    kinds = {kind.kind: kind for kind in (PhaseStarted, Progress, Metrics, Preview, Note)}

    def tell(kind: str, **data: object) -> None:
        store.journal.append(run.id, kinds[kind].model_validate(data))

    run = make_run(store, table, plan)
    before = progress(store, run.id)
    assert (before.phase, before.steps, before.eta_seconds) == ("", 0, None)
    tell("phase", name="fit", title="Fitting", private=False)
    for step in (10, 20):  # a resumed phase: it begins at 10
        tell("progress", step=step, steps=50, phase="fit")
        time.sleep(0.02)
    now = progress(store, run.id)
    assert (now.title, now.step, now.steps, now.fraction) == ("Fitting", 20, 50, 0.4)
    assert now.steps_per_second is not None and now.eta_seconds is not None
    assert now.eta_seconds == pytest.approx(30 / now.steps_per_second)
    tell("phase", name="sample", title="Sampling", private=False)
    assert (progress(store, run.id).title, progress(store, run.id).steps) == ("Sampling", 0)
