"""A store that does not answer: at import, in a run, on a page, at a deletion."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import func, select

from core.cluster.objects import bucket as bucket_module
from core.cluster.objects.artefacts import _ObjectWorkingFolder
from core.cluster.objects.bucket import AWAY, Bucket
from core.models.step import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan
from core.runs.errors import StorageError
from core.runs.events import State
from core.runs.execution import sampling_process, worker
from core.runs.execution.launching.launcher import REFUSED, SampleRequest
from core.runs.storage.artefacts import METER
from core.runs.storage.database import SketchRow
from core.runs.storage.storages import open_storage
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.services import imports
from core.services.sample_tables import sample_table
from tests.runs import toy
from tests.runs.workers import queued, releases, toy_plan, work

pytestmark = [pytest.mark.usefixtures("here"), pytest.mark.slow]


def kept_of_people(store: RunStore) -> int:
    with store.engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(SketchRow)).scalar_one()


# -- at import ----------------------------------------------------------------------------------


def test_an_import_keeps_nothing(store, bucket, s3_server):
    with s3_server.away(), pytest.raises(StorageError, match="does not answer"):
        imports.import_frame(store, sample_table(50), name="t", source="test")
    assert store.tables() == [] and kept_of_people(store) == 0
    assert s3_server.keys(bucket) == []
    imports.import_frame(store, sample_table(50), name="t", source="test")
    assert len(store.tables()) == 1


def test_an_import_that_loses_the_store_keeps_nothing(store, bucket, s3_server, monkeypatch):
    upload = Bucket.upload

    def lost(self: Bucket, file: Path, key: str) -> None:
        with s3_server.away():
            upload(self, file, key)

    monkeypatch.setattr(Bucket, "upload", lost)
    with pytest.raises(StorageError, match="does not answer.*Nothing of the table was saved"):
        imports.import_frame(store, sample_table(50), name="t", source="test")
    assert store.tables() == [] and kept_of_people(store) == 0
    assert [key for key in s3_server.keys(bucket) if "secrets" not in key] == []


# -- in a run -----------------------------------------------------------------------------------


class Losing(toy.Toy):
    """The toy model; before step 2 something happens, the first time."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self.happens: Callable[[], None] | None = happens

    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> toy.ToyFitted:
        settle = table.meter.settle
        checkpoint = context.folder / "step.json"

        def counted() -> None:
            settle()
            if self.happens and json.loads(checkpoint.read_text())["step"] == 1:
                happens, self.happens = self.happens, None
                happens()

        table.meter.settle = counted  # type: ignore[method-assign]
        return super().fit(table, plan, context)


def test_a_run_waits_for_a_store_that_comes_back(store, table, bucket, s3_server, monkeypatch):
    monkeypatch.setattr(worker, "PATIENCE", 60.0)
    monkeypatch.setattr(bucket_module, "FIRST_WAIT", 0.1)

    def away_for_a_while() -> None:
        s3_server.stop()
        threading.Timer(1.5, s3_server.start).start()

    run = queued(store, table, toy_plan(table, steps=4))
    done = work(store, run.id, find=lambda _: Losing(away_for_a_while))
    assert (done.state, done.message) == (State.DONE, "Done.")
    assert releases(store, table) == 1


def test_a_run_that_waited_in_vain_fails_and_goes_on_for_free(
    store, table, bucket, s3_server, monkeypatch
):
    monkeypatch.setattr(worker, "PATIENCE", 0.5)
    run = queued(store, table, toy_plan(table, steps=4))
    try:
        assert store.claim(run.id, slots=1)
        command = [run.id, "--home", str(store.workspace.home)]
        losing = Losing(s3_server.stop)
        worker.main(command, find=lambda _: losing, compare=toy.compare, command=toy.COMMAND)
        with pytest.raises(StorageError):
            store.run(run.id)  # whether it goes on for free is known by the store alone
    finally:
        s3_server.start()
    failed = store.run(run.id)
    assert (failed.state, failed.error) == (State.FAILED, AWAY)
    assert failed.message == ("Stopped. What it spent stays spent. Resuming spends nothing more.")
    assert failed.resumable and store.has_checkpoint(run.id)
    store.set_state(run.id, State.QUEUED)
    done = work(store, run.id)
    assert (done.state, done.attempt) == (State.DONE, 1) and releases(store, table) == 1
    said = [e.data["message"] for e in store.journal.events(run.id, kind="state")]
    assert "Going on from the checkpoint." in said


def test_a_run_that_cannot_begin_spends_nothing(store, table, bucket, s3_server, monkeypatch):
    monkeypatch.setattr(worker, "PATIENCE", 0.0)
    run = queued(store, table, toy_plan(table))
    assert store.claim(run.id, slots=1)
    with s3_server.away():
        command = [run.id, "--home", str(store.workspace.home)]
        worker.main(command, find=toy.find, compare=toy.compare, command=toy.COMMAND)
    failed = store.run(run.id)
    assert (failed.state, failed.error) == (State.FAILED, AWAY)
    assert failed.message == "Stopped. Nothing was spent on this run. Resuming spends nothing more."
    assert releases(store, table) == 0


def test_a_report_that_loses_the_store_says_so(store, table, bucket, s3_server, monkeypatch):
    monkeypatch.setattr(worker, "PATIENCE", 0.0)
    run = queued(store, table, toy_plan(table))

    def compare(*_: Any, **__: Any) -> toy.ToyReport:
        s3_server.stop()
        return toy.ToyReport(rows=5)

    try:
        assert store.claim(run.id, slots=1)
        command = [run.id, "--home", str(store.workspace.home)]
        worker.main(command, find=toy.find, compare=compare, command=toy.COMMAND)
    finally:
        s3_server.start()
    done = store.run(run.id)
    assert done.state is State.DONE and AWAY in done.message
    assert "The synthetic table was saved" in done.message and store.has_result(run.id)


def test_more_rows_are_refused_in_one_sentence(store, table, bucket, s3_server, monkeypatch):
    run = work(store, queued(store, table, toy_plan(table)).id)
    monkeypatch.setattr("core.runs.execution.sampling_process.load_fitted", None)
    command = [run.id, "--home", str(store.workspace.home), "--name", "a.csv"]
    command += ["--request", SampleRequest(rows=5).model_dump_json()]
    with s3_server.away(), redirect_stdout(StringIO()) as said:
        assert sampling_process.main(command) == REFUSED
    assert said.getvalue().strip() == AWAY


# -- the meter is there before the rows are read ------------------------------------------------


class Watched(toy.Toy):
    """The toy model, which looks from another machine what the store knows of each charge."""

    def __init__(self, home: Path, run_id: str) -> None:
        self.home, self.run_id, self.seen = home, run_id, dict[str, int]()

    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> toy.ToyFitted:
        charge = table.meter.charge

        def charged(name: str, times: int = 1) -> Any:
            phase = charge(name, times)  # whoever charges reads when this has returned
            with open_storage(Workspace(self.home)).run(self.run_id).working() as elsewhere:
                meter = elsewhere.folder / METER
                if meter.exists():
                    self.seen = json.loads(meter.read_text())["counts"]
            return phase

        table.meter.charge = charged  # type: ignore[method-assign]
        return super().fit(table, plan, context)


def counted_elsewhere(store: RunStore, table: Any, tmp_path: Path) -> dict[str, int]:
    run = queued(store, table, toy_plan(table))
    watched = Watched(tmp_path / "elsewhere", run.id)
    assert work(store, run.id, find=lambda _: watched).state is State.DONE
    return watched.seen


def test_a_charge_outlives_the_machine_before_a_row_is_read(store, storage, table, tmp_path):
    assert counted_elsewhere(store, table, tmp_path) == {"sum": 1}


def test_a_fit_that_published_later_would_be_caught(store, storage, table, tmp_path, monkeypatch):
    """The broken twin: nothing is published at a charge."""
    monkeypatch.setattr(_ObjectWorkingFolder, "publish", lambda self: None)
    assert counted_elsewhere(store, table, tmp_path) == {}


# -- at a deletion ------------------------------------------------------------------------------


def test_what_could_not_be_deleted_stays_listed(store, table, bucket, s3_server):
    work(store, queued(store, table, toy_plan(table)).id)
    (run,) = store.runs()
    with s3_server.away():
        with pytest.raises(StorageError):
            store.delete_run(run.id)
        with pytest.raises(StorageError):
            store.delete_table(table.id)
    assert [one.id for one in store.runs()] == [run.id] and len(store.tables()) == 1
    pd.testing.assert_index_equal(store.load_frame(table.id).columns, pd.Index(["age", "sex"]))
    store.delete_table(table.id)
    assert store.tables() == store.runs() == []
    assert [key for key in s3_server.keys(bucket) if "secrets" not in key] == []
