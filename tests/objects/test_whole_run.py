"""A workspace in a bucket: a run begun on one machine ends on another, and nothing stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import time
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest

from core.models.registry import load_fitted
from core.runs.events import State
from core.runs.execution.launching.launcher import SampleRequest
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.request import RunRequest
from core.runs.storage.store import RunStore
from core.runs.storage.workspace_secrets import people_key, shift_key
from core.runs.workspace import Workspace
from core.services import export, imports, planning, reviews, runs
from core.services.sample_tables import SAMPLE_NAME, sample_table
from core.services.synthesis.saved_runs import trained_model
from tests.requests_for import request_for

pytestmark = pytest.mark.slow

ROWS = 300
SETTINGS = {"steps": 800, "frequencies": 200, "batch": 64, "hidden": 16}
PATIENCE = 300.0  # s; the whole takes about one minute of a processor


def until(check: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two machines with a disk each, one database and one bucket."""
    monkeypatch.setenv("FACSIMILE_DATABASE", f"sqlite:///{tmp_path / 'facsimile.db'}")
    return tmp_path / "machine-a", tmp_path / "machine-b"


def test_a_killed_run_goes_on_elsewhere_with_one_debit(homes, bucket, s3_server):
    run_id = begun_and_killed(homes[0], s3_server, bucket)
    with RunStore(Workspace(homes[0])) as first:
        secrets = shift_key(first.workspace, "p"), people_key(first.workspace)
    shutil.rmtree(homes[0])
    with RunStore(Workspace(homes[1])) as store:
        lost = store.run(run_id)
        assert (lost.state, lost.resumable) == (State.LOST, True)
        assert "Resuming continues from there and spends nothing more" in lost.message
        launcher = LocalLauncher(store)
        runs.resume(store, launcher, run_id)
        until(lambda: not store.run(run_id).state.live)
        done = store.run(run_id)
        log = (homes[1] / "runs" / run_id / "worker.log").read_text()
        assert (done.state, done.message) == (State.DONE, "Done."), log
        said = [e.data["message"] for e in store.journal.events(run_id, kind="state")]
        assert "Going on from the checkpoint." in said
        entries = store.ledger.entries(done.account_id)
        assert sum(entry.kind == "release" for entry in entries) == 1
        assert done.attempt == 1 and done.guarantee.epsilon == pytest.approx(1.0, rel=1e-3)
        assert secrets == (shift_key(store.workspace, "p"), people_key(store.workspace))
        taken_along(store, launcher, run_id)
        store.delete_table(done.table_id)
    left = [key.partition("/")[2] for key in s3_server.keys(bucket)]
    secrets = ("ledger.head", "ledger.key", "people.key", "shift.key")
    assert sorted(left) == [f"secrets/{name}" for name in secrets]
    assert [name for name in files(homes[1]) if not name.endswith(".lock")] == []


def begun_and_killed(home: Path, s3_server, bucket: str) -> str:
    """A run whose worker is killed in the middle of its fit; leaves nothing but scratch."""
    with RunStore(Workspace(home)) as store:
        table = imports.import_frame(store, sample_table(ROWS), name=SAMPLE_NAME, source="built in")
        parts = list(store.batches(table.id))
        pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), sample_table(ROWS))
        store.attest(table.id)
        assert store.attested(table.id)
        request = RunRequest(model="pearl", epsilon=1.0, settings=dict(SETTINGS))
        plan = planning.make_plan(table.schema, table.n, request)
        launcher = LocalLauncher(store)
        run = runs.start(store, launcher, table.id, plan, request_for(plan, rows=120))
        until(lambda: store.journal.latest(run.id, "progress") is not None)
        assert store.has_checkpoint(run.id) and not store.has_result(run.id)
        pid = store.run(run.id).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: not store.run(run.id).state.live)
        assert store.run(run.id).state is State.LOST
        rows = [name for name in files(home) if name.endswith(".parquet")]
        assert rows == [], "rows lie in the bucket alone"
        for folder in [home / "scratch", *(home / "scratch").iterdir()]:
            assert folder.stat().st_mode & 0o077 == 0
        return run.id


def taken_along(store: RunStore, launcher: LocalLauncher, run_id: str) -> None:
    """Report, reviewed table, more rows and model, as pages ask for them."""
    run = store.run(run_id)
    report = reviews.report(store, run_id)
    assert report is not None and report["complete"] and report["rows_synthetic"] == 120
    reviewed = pd.read_csv(export.reviewed_file(store, run, format="csv"))
    assert len(reviewed) == 120
    more = runs.generate_rows(store, launcher, run_id, SampleRequest(rows=33, seed=1))
    assert len(pd.read_csv(more)) == 33
    with zipfile.ZipFile(BytesIO(export.model_zip(store, run))) as archive:
        assert any(name.endswith(".safetensors") for name in archive.namelist())
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FACSIMILE_HOME", str(store.workspace.home))
        trained = trained_model(run_id)  # as the command `sample` finds it
    assert len(load_fitted(trained.model, trained.folder).sample(7, seed=1)) == 7
    runs.compare_again(store, launcher, run_id)
    until(lambda: not store.run(run_id).state.live)
    assert store.run(run_id).message == "Done."
