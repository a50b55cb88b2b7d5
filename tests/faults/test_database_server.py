"""The database server goes away in the middle: nothing is paid twice, nothing is forgotten."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from core.cluster import postgres
from core.models.events import PhaseStarted, Progress
from core.privacy.ledger.entries import entries_table
from core.privacy.ledger.ledger import Ledger
from core.privacy.ledger.transaction import exclusive_transaction
from core.runs.accounts.account import pay
from core.runs.errors import storage_trouble
from core.runs.events import State
from core.runs.execution.reporter import Reporter
from core.runs.execution.worker import PATIENCE
from core.runs.storage.engine import open_engine
from core.runs.storage.store import RunStore
from tests.faults.ledger import paid_for
from tests.ledger_files import ledger_files
from tests.postgres_server import PASSWORD
from tests.runs.workers import ended, queued, stepping, toy_plan, until

pytestmark = [pytest.mark.databases("postgresql"), pytest.mark.slow]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_run_outlives_a_restart_of_the_server(store, launcher, table, postgres_server, mode):
    """As good as a power cut in the middle of its steps; its story misses none of what was due."""
    run = queued(store, table, toy_plan(table, steps=60, nap=0.1))
    launcher.submit(run.id)
    until(lambda: stepping(store, run.id))
    postgres_server.stop(mode)
    time.sleep(2.0)
    postgres_server.start()
    done = ended(store, run.id)
    log = store.artefacts(run.id).path("worker.log").read_text()
    assert (done.state, done.message) == (State.DONE, "Done."), log
    assert PASSWORD not in log
    paid_for(store, done)
    story = store.journal.events(run.id)
    assert [one.seq for one in story] == list(range(1, len(story) + 1))
    steps = [e.data["step"] for e in story if e.kind == "progress" and e.data["phase"] == "fit"]
    assert steps == sorted(steps) and steps[-1] == 60
    phases = [e.data["name"] for e in story if e.kind == "phase"]
    assert phases == ["debit", "read", "fit", "sample", "report"]


def test_a_worker_that_starts_meanwhile_waits_for_the_server(store, postgres_server):
    opened: list[object] = []

    def work() -> None:
        with RunStore(store.workspace, patience=PATIENCE) as patient:
            opened.append(patient.runs())

    postgres_server.stop()
    try:
        with pytest.raises(OperationalError):
            RunStore(store.workspace)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(2.0)
        assert thread.is_alive() and not opened
    finally:
        postgres_server.start()
    thread.join(PATIENCE)
    assert opened == [[]]


def test_what_cannot_be_written_is_written_later(store, table, postgres_server, capsys):
    run = queued(store, table, toy_plan(table))
    reporter = Reporter(store, run.id)
    reporter(PhaseStarted(name="fit", title="Fit"))
    postgres_server.stop()
    try:
        for step in (1, 2):
            time.sleep(0.3)
            reporter(Progress(step=step, steps=3, phase="fit"))
    finally:
        postgres_server.start()
    reporter(Progress(step=3, steps=3, phase="fit"))
    reporter.flush()
    steps = [one.data["step"] for one in store.journal.events(run.id, kind="progress")]
    assert steps == [1, 2, 3]
    assert PASSWORD not in capsys.readouterr().err


@pytest.mark.parametrize("counted", [False, True], ids=["before it counted", "after it counted"])
def test_a_debit_whose_connection_breaks_pays_once(store, table, counted):
    """At the end of the transaction: nobody told this process whether it was kept."""
    breaks = iter([True])

    def cut(connection: object, *_: object) -> None:
        raw = connection.connection.dbapi_connection  # type: ignore[attr-defined]
        if raw.info.transaction_status and next(breaks, False):
            if counted:
                raw.execute("COMMIT")
                raw.execute("BEGIN")  # whose end will not come through either
            number = raw.info.backend_pid
            with store.engine.connect() as other:
                other.exec_driver_sql(f"SELECT pg_terminate_backend({number}, 5000)")

    ledger = store.ledger
    domain = table.schema.as_proposed().domain()
    written = []

    def notice(connection, _cursor, statement, *_more) -> None:
        if statement.startswith("INSERT INTO ledger") and "release" not in written:
            written.append("release")

    event.listen(store.engine, "before_cursor_execute", notice)
    event.listen(store.engine, "commit", lambda connection: cut(connection) if written else None)
    plan = toy_plan(table)
    entry = pay(ledger, table.account_id, plan, "key", domain=domain, allow_non_private=False)
    assert next(breaks, None) is None, "it was cut"
    debits = [one for one in ledger.entries(table.account_id) if one.kind == "release"]
    assert [one.id for one in debits] == [entry.id] and ledger.verify()


def test_an_absent_server_is_one_plain_sentence(store, postgres_server, capsys):
    home = store.workspace
    postgres_server.stop()
    try:
        for look in (store.runs, lambda: RunStore(home)):
            with pytest.raises(OperationalError) as caught:
                look()
            words = storage_trouble(caught.value)
            assert words is not None and "server cannot be reached" in words
            assert PASSWORD not in str(caught.value)
    finally:
        postgres_server.start()
    assert store.runs() == [], "and is found again when it is there"


def test_a_lock_and_a_full_pool_are_waited_for_and_said(database, monkeypatch, tmp_path):
    monkeypatch.setattr(postgres, "SESSION", "-c lock_timeout=300ms")
    monkeypatch.setattr(postgres, "POOL_SECONDS", 0.3)
    engine = open_engine(database)
    ledger = Ledger(engine, ledger_files(tmp_path))
    with exclusive_transaction(engine, entries_table.name):
        with pytest.raises(OperationalError) as locked:
            ledger.register("people", 1.0, 1e-6, n=10)
        assert ledger.entries() == (), "readers go on"
    assert "busy" in (storage_trouble(locked.value) or "")
    ledger.register("people", 1.0, 1e-6, n=10)
    with contextlib.ExitStack() as taken:
        for _ in range(postgres.MOST):
            taken.enter_context(engine.connect())
        with pytest.raises(PoolTimeoutError) as full:
            engine.connect()
    assert "busy" in (storage_trouble(full.value) or "")
    engine.dispose()


def test_a_wrong_password_is_refused_without_quoting_it(store, postgres_server, monkeypatch):
    wrong = "another-word"
    monkeypatch.setenv("FACSIMILE_DATABASE", postgres_server.url(password=wrong))
    with pytest.raises(OperationalError) as caught, contextlib.closing(RunStore(store.workspace)):
        pass
    assert "refuses the connection" in (storage_trouble(caught.value) or "")
    assert wrong not in str(caught.value) and wrong not in repr(caught.value)
