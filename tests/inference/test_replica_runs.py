"""Replicas of runs in a workspace: in the background, stopped, without real rows."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from core import api
from core.cli.main import main
from core.inference.replicas import numbers_kept, replicas_of
from core.models.events import FitEvent, Signal
from core.runs.errors import NotFoundError, RunStoreError
from core.runs.events import State
from core.runs.execution import replica_making, worker
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.execution.reports import Compare
from core.runs.records import RunRecord
from core.runs.request import RunRequest
from core.runs.storage.artefacts import METER, ROWS
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.services import imports, planning, reviews, runs, tables
from core.services.inference import replicas
from core.services.sample_tables import SAMPLE_NAME, sample_table
from tests.cli.test_cli import last_line
from tests.requests_for import request_for
from tests.runs import toy

pytestmark = pytest.mark.slow

COUNT = 3
SETTINGS = {"steps": 30, "frequencies": 200, "batch": 64, "hidden": 16}


class Here(LocalLauncher):
    """A launcher whose worker is this process."""

    def __init__(self, store: RunStore, *, compare: Compare | None = toy.compare) -> None:
        super().__init__(store)
        self.compare = compare

    def _start(self, run_id: str) -> None:
        worker.main([run_id, "--home", str(self.store.workspace.home)], compare=self.compare)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunStore]:
    monkeypatch.setattr(worker, "ignore_hangup", lambda: None)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("FACSIMILE_HOME", str(tmp_path / "home"))
    few = functools.partial(replica_making.make_replicas, count=COUNT)
    monkeypatch.setattr(worker, "make_replicas", few)
    monkeypatch.setattr(replicas, "COUNT", COUNT)
    with RunStore(Workspace(tmp_path / "home")) as opened:
        yield opened


@pytest.fixture
def run(store: RunStore) -> RunRecord:
    """A finished run, whose real rows are gone."""
    table = imports.import_frame(store, sample_table(300), name=SAMPLE_NAME, source="built in")
    table = tables.declare_all(store, tables.confirm_schema(store, table.id, table.schema))
    asked = RunRequest(model="pearl", epsilon=1.0, settings=dict(SETTINGS))
    plan = planning.make_plan(table.schema, table.n, asked)
    store.attest(table.id)
    done = runs.start(store, Here(store), table.id, plan, request_for(plan, rows=120))
    assert done.state is State.DONE, done.error
    store.table_artefacts(table.id).delete(ROWS)
    return done


def spent(store: RunStore, run: RunRecord) -> tuple[Any, bytes]:
    with store.artefacts(run.id).open(METER) as meter:
        return store.ledger.entries(run.account_id), meter.read()


def test_replicas_are_made_after_a_run_without_its_rows(store: RunStore, run: RunRecord) -> None:
    before = spent(store, run)
    assert replicas_of(store.artefacts(run.id)) == () and not replicas.complete(store, run.id)
    done = replicas.start(store, Here(store), run.id)
    assert (done.state, done.message) == (State.DONE, "Done.")
    assert replicas.complete(store, run.id) and not replicas.under_way(store, run.id)
    made = replicas_of(store.artefacts(run.id))
    assert [(len(one.source), len(one.drawn)) for one in made] == [(300, 120)] * COUNT
    assert spent(store, run) == before
    told = runs.progress(store, run.id)
    assert (told.phase, told.step, told.steps) == ("replicas", COUNT, COUNT)
    assert replicas.start(store, Here(store), run.id).state is State.DONE


def test_an_attack_by_refitting_joins_the_report(store: RunStore) -> None:
    table = imports.import_frame(store, sample_table(400), name=SAMPLE_NAME, source="built in")
    table = tables.declare_all(store, tables.confirm_schema(store, table.id, table.schema))
    table = tables.change_holdout(store, table, 0.25)
    asked = RunRequest(model="pearl", epsilon=1.0, settings=dict(SETTINGS))
    plan = planning.make_plan(table.schema, table.training_n, asked)
    store.attest(table.id)
    made = Here(store, compare=None)
    done = runs.start(store, made, table.id, plan, request_for(plan))
    before, report = spent(store, done), reviews.report(store, done.id) or {}
    assert "refitted" not in {attack["key"] for attack in report["attacks"]}
    assert replicas.start(store, made, done.id, attack=0.2).message == "Done."
    after = reviews.report(store, done.id) or {}
    keys = {attack["key"] for attack in after["attacks"]}
    assert keys - {attack["key"] for attack in report["attacks"]} == {"refitted"}
    assert after | {"attacks": ()} == report | {"attacks": ()} and spent(store, done) == before
    assert not replicas.under_way(store, done.id) and not replicas.complete(store, done.id)


def stopping(store: RunStore, run_id: str, signal: str) -> Any:
    """Somebody who asks for a stop once the first replica is kept."""
    write = replica_making.write_replica

    def kept(*given: Any) -> None:
        write(*given)
        store.request(run_id, Signal(signal))

    return kept


def test_a_pause_keeps_what_is_complete(
    store: RunStore, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(replica_making, "write_replica", stopping(store, run.id, "pause"))
        patch.setattr("core.runs.execution.reporter.SIGNAL_SECONDS", 0.0)
        assert replicas.start(store, Here(store), run.id).state is State.PAUSED
    first = numbers_kept(store.artefacts(run.id))
    assert 0 < len(first) < COUNT and replicas.under_way(store, run.id)
    done = runs.resume(store, Here(store), run.id)
    assert done.state is State.DONE and replicas.complete(store, run.id)


def test_a_cancelled_maker_leaves_the_run_done(
    store: RunStore, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_making, "write_replica", stopping(store, run.id, "cancel"))
    monkeypatch.setattr("core.runs.execution.reporter.SIGNAL_SECONDS", 0.0)
    done = replicas.start(store, Here(store), run.id)
    assert done.state is State.DONE and "was stopped" in done.message
    assert not replicas.under_way(store, run.id)


def test_one_that_waits_can_be_cancelled(store: RunStore, run: RunRecord) -> None:
    class Full(Here):
        def _start(self, run_id: str) -> None:
            store.set_state(run_id, State.QUEUED)

    assert replicas.start(store, Full(store), run.id).state is State.QUEUED
    ended = runs.cancel(store, run.id)
    assert ended.state is State.DONE and "was stopped" in ended.message


def test_a_failure_costs_no_result(
    store: RunStore, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(replica_making, "write_replica", fails)
    done = replicas.start(store, Here(store), run.id)
    assert done.state is State.DONE and "ZeroDivisionError" in done.message
    assert store.has_result(run.id) and done.error is None


def test_command_and_function_make_them_too(
    store: RunStore, run: RunRecord, capsys: pytest.CaptureFixture[str]
) -> None:
    before = spent(store, run)
    assert main(["replicas", run.id, "--count", "2", "--json"]) == 0
    assert last_line(capsys.readouterr().out) == {"run": run.id, "replicas": 2}
    made = api.replicas(run.id, count=3)
    assert len(made) == 3 and isinstance(made[0].drawn, pd.DataFrame)
    assert spent(store, run) == before and store.run(run.id).state is State.DONE


def test_a_run_without_a_table_has_none(store: RunStore, run: RunRecord) -> None:
    store.artefacts(run.id).delete("synthetic.parquet")
    with pytest.raises(NotFoundError, match="not made a synthetic table"):
        replicas.start(store, Here(store), run.id)
    with pytest.raises(RunStoreError):
        replicas.make(run.id, lambda event: go_on(event))


def go_on(event: FitEvent) -> Signal:
    return Signal.GO_ON
