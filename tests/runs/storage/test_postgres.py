"""A whole workspace on a PostgreSQL server: import, plan, run, review, command line, secrets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.runs.errors import NotFoundError, RunStoreError
from core.runs.events import State
from core.runs.execution.launching.launcher import SampleRequest
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.request import RunRequest
from core.runs.storage.engine import open_engine
from core.runs.storage.reviews import notes
from core.runs.workspace import PROJECT_ROOT
from core.services import imports, planning, reviews, runs, tables
from core.services.sample_tables import SAMPLE_NAME, SAMPLE_TARGET, sample_table
from tests.postgres_server import PASSWORD
from tests.requests_for import request_for
from tests.runs.workers import queued, toy_plan

SETTINGS = {"steps": 40, "frequencies": 200, "batch": 64, "hidden": 16}
ADDRESSES = (
    "postgresql://ann:{word}@host:{word}/db",
    "mysql://ann:{word}@host/db",
    "postgresql+asyncpg://ann:{word}@host/db",
    "{word}",
)


def command_lines() -> str:
    """What every process of this machine was started with."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:  # it ended meanwhile
            continue
    return "\n".join(lines)


@pytest.mark.databases("postgresql")
@pytest.mark.usefixtures("fresh")  # a worker that was forked has the command line of another
def test_the_whole_line_on_a_server(store):
    table = imports.import_frame(store, sample_table(300), name=SAMPLE_NAME, source="built in")
    schema = table.schema.model_copy(update={"target": SAMPLE_TARGET})
    table = tables.confirm_schema(store, table.id, schema)
    request = RunRequest(model="pearl", epsilon=1.0, settings=dict(SETTINGS))
    plan = planning.make_plan(table.schema, table.n, request)
    store.attest(table.id)
    launcher = LocalLauncher(store)
    run = runs.start(store, launcher, table.id, plan, request_for(plan, rows=60, seed=2**40))
    seen = False
    end = time.monotonic() + 400
    while store.run(run.id).state.live and time.monotonic() < end:
        lines = command_lines()
        seen = seen or run.id in lines
        assert PASSWORD not in lines
        time.sleep(0.2)
    done = store.run(run.id)
    if done.state.live and done.pid is not None:
        os.kill(done.pid, signal.SIGKILL)  # else it would wait for a database that is dropped
    log = store.artefacts(run.id).path("worker.log").read_text()
    assert (done.state, done.message) == (State.DONE, "Done."), log
    assert seen, "the worker was among the processes that were looked at"
    assert done.request.seed == 2**40 and done.guarantee is not None
    report = reviews.report(store, run.id)
    assert report is not None and report["complete"] and report["rows_synthetic"] == 60
    assert not store.journal.series(run.id).empty
    assert runs.progress(store, run.id).elapsed_seconds > 0
    ledger = store.ledger
    (debit,) = (entry for entry in ledger.entries(table.account_id) if entry.kind == "release")
    assert debit.id == done.debit and ledger.verify()
    sample = SampleRequest(rows=7, seed=1)
    assert runs.generate_rows(store, launcher, run.id, sample).read_text().count("\n") == 8
    kept = [path for path in store.workspace.home.rglob("*") if path.is_file()]
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]
    assert not (store.workspace.home / "facsimile.db").exists()
    environment = os.environ | {"FACSIMILE_HOME": str(store.workspace.home)}
    told = subprocess.run(
        [sys.executable, "-m", "core.cli", "ledger", "verify"],
        cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 0 and "2 entries" in told.stdout, told
    store.delete_table(table.id)
    assert store.runs() == [] and ledger.verify()


@pytest.mark.databases("sqlite", "postgresql")
def test_text_may_hold_any_character(store, table):
    run = queued(store, table, toy_plan(table))
    text = "nothing\0 here, ŝparks ✨ 100 % {a} :b"
    notes.comment(store, table_id=table.id, run_id=run.id, about="pca", author="A\0da", text=text)
    (said,) = notes.comments(store, run.id)
    assert said.text.replace("\ufffd", "\0") == text
    for name in ("no\0where", "nö", "%", "'"):
        with pytest.raises(NotFoundError):
            store.run(name)
        with pytest.raises(NotFoundError):
            store.table(name)


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_cannot_be_used_is_never_quoted(address):
    word = "sec-ret"
    with pytest.raises(RunStoreError, match="Nothing was opened") as caught:
        open_engine(address.format(word=word))
    assert word not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_without_the_driver_one_sentence_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['psycopg'] = None; from core.cli.main import main;"
        "sys.exit(main(['ledger', 'show']))"
    )
    environment = os.environ | {
        "FACSIMILE_DATABASE": f"postgresql://ann:{PASSWORD}@host/db",
        "FACSIMILE_HOME": str(tmp_path / "home"),
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done
    assert "pip install -r requirements-cluster.txt" in done.stderr
    assert PASSWORD not in done.stderr + done.stdout
