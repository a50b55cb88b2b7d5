"""Runs on a Ray cluster of real nodes; the model is a toy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.cluster.ray_config import IN_QUEUE
from core.cluster.ray_launcher import RayLauncher
from core.cluster.ray_queue import NAMESPACE
from core.privacy.guarded import CHUNK_ROWS
from core.reading.raw_cells import raw_frame
from core.runs.events import State
from core.runs.execution.launching.launcher import SETTING
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.schema.schema import Schema
from core.services import runs
from tests.cluster import toy_node
from tests.cluster.conftest import Nodes, all_said, launcher_of
from tests.runs.workers import ended, releases, start, stepping, toy_plan, until

pytestmark = [
    pytest.mark.cluster,
    # Ray leaves files of its own open
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestWarning"),
]


def actors(nodes: Nodes) -> list[str]:
    """Runs that Ray knows, at work or waiting."""
    import ray

    ray.init(address=nodes.address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    try:
        return sorted(ray.util.list_named_actors())
    finally:
        ray.shutdown()


def test_a_run_goes_on_elsewhere_when_its_node_is_lost(
    store: RunStore, launcher: RayLauncher, table: TableRecord, nodes: Nodes
) -> None:
    nodes.add("one")
    run = start(store, launcher, toy_plan(table, steps=90, nap=0.1))
    until(lambda: stepping(store, run.id))
    assert store.run(run.id).host == "one"
    nodes.add("two")
    until(lambda: runs.progress(store, run.id).step >= 10)
    nodes.kill("one")
    until(lambda: store.run(run.id).state is State.LOST)
    assert "spends nothing" in store.run(run.id).message
    done = ended_elsewhere(store, run.id)
    assert (done.state, done.host, done.error, done.attempt) == (State.DONE, "two", None, 1)
    events = store.journal.events(run.id, kind="progress", limit=10_000)
    steps = [event.data["step"] for event in events if event.data["phase"] == "fit"]
    assert steps[-1] == 90 and steps.count(1) <= 1, "it went on, not from the start"
    assert releases(store, table) == 1 and store.ledger.verify()
    assert store.has_result(run.id) and done.guarantee is not None
    until(lambda: actors(nodes) == [])


def ended_elsewhere(store: RunStore, run_id: str):  # type: ignore[no-untyped-def]
    """Nobody asks for it: not the server, and not a person."""
    until(lambda: store.run(run_id).state is State.RUNNING)
    return ended(store, run_id)


def test_pause_resume_and_cancel_and_a_server_that_comes_later(
    store: RunStore, launcher: RayLauncher, table: TableRecord, nodes: Nodes
) -> None:
    nodes.add("one")
    run = start(store, launcher, toy_plan(table, steps=2000, nap=0.05))
    until(lambda: stepping(store, run.id))
    runs.pause(store, run.id, launcher)
    paused = ended(store, run.id)
    assert paused.state is State.PAUSED and paused.resumable
    at = store.artefacts(run.id).path("checkpoint").joinpath("step.json").read_text()
    with RunStore(store.workspace) as other:  # as after a restart of the server
        later = RayLauncher(other, launcher.cluster, command=launcher.command)
        runs.resume(other, later, run.id)
        until(lambda: runs.progress(other, run.id).step > json.loads(at)["step"])
        later.pump()
        until(all_said)
        assert actors(nodes) == [f"run-{run.id}"]
        runs.cancel(other, run.id, later)
        cancelled = ended(other, run.id)
    assert cancelled.state is State.CANCELLED and "stays spent" in cancelled.message
    assert releases(store, table) == 1 and cancelled.debit == paused.debit
    assert not store.artefacts(run.id).exists("synthetic.parquet")
    until(lambda: actors(nodes) == [])


def test_a_cancelled_run_leaves_the_queue(
    store: RunStore, launcher: RayLauncher, table: TableRecord, nodes: Nodes
) -> None:
    nodes.add("one")
    first = start(store, launcher, toy_plan(table, steps=2000, nap=0.05))
    until(lambda: stepping(store, first.id))
    second = start(store, launcher, toy_plan(table))
    third = start(store, launcher, toy_plan(table))
    until(lambda: store.run(third.id).message == store.run(second.id).message == IN_QUEUE)
    assert actors(nodes) == sorted(f"run-{run.id}" for run in (first, second, third))
    assert (
        runs.cancel(store, second.id, launcher).message
        == "Cancelled. Nothing was spent on this run."
    )
    until(lambda: actors(nodes) == sorted(f"run-{run.id}" for run in (first, third)))
    assert store.run(third.id).state is State.QUEUED and releases(store, table) == 1
    runs.cancel(store, first.id, launcher)
    assert ended(store, third.id).state is State.DONE
    assert store.run(third.id).host == "one" and releases(store, table) == 2


def test_an_outside_server_submits_without_secrets_in_ray(
    store: RunStore,
    table: TableRecord,
    nodes: Nodes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("grpc", reason="needs Ray's client: requirements-cluster.txt")
    secret = "7261.25"
    url = f"{store.workspace.database_url}?timeout={secret}"
    monkeypatch.setenv("FACSIMILE_DATABASE", url)
    launcher = launcher_of(store, nodes.client, monkeypatch)
    nodes.add("bare", FACSIMILE_DATABASE="")
    refused = ended(store, start(store, launcher, toy_plan(table)).id)
    assert refused.state is State.FAILED and refused.error is not None
    assert "lacks FACSIMILE_DATABASE." in refused.error and secret not in refused.error
    nodes.clear()
    nodes.add("told", FACSIMILE_DATABASE=url)
    run = start(store, launcher, toy_plan(table))
    assert ended(store, run.id).state is State.DONE
    assert store.run(run.id).host == "told" and releases(store, table) == 1
    assert secret not in known_to_ray(nodes)
    # else nothing would be found at all
    assert run.id in known_to_ray(nodes)


def test_a_worker_shares_its_statistic_with_tasks(
    store: RunStore,
    launcher: RayLauncher,
    schema: Schema,
    nodes: Nodes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = 4 * CHUNK_ROWS
    frame = pd.DataFrame({"age": np.arange(rows) % 100, "sex": np.resize(["f", "m"], rows)})
    big = store.add_table(
        raw_frame(frame),
        name="big",
        schema=schema,
        profile={"n": rows},
        source="test",
        account_id="p1",
    )
    store.attest(big.id)
    marks = tmp_path / "marks"
    marks.mkdir()
    for name in ("one", "two"):
        nodes.add(name, cpus=2, **{toy_node.MARKS: str(marks)})
    monkeypatch.setenv(SETTING, f"ray:{nodes.address}?tasks=2")
    run = ended(store, start(store, launcher, toy_plan(big)).id)
    assert (run.state, run.error) == (State.DONE, None)
    who = {path.name for path in marks.iterdir()} - {"released"}
    assert str(run.pid) in who and len(who) > 1, "the worker and tasks share the blocks"
    noisy = float((marks / "released").read_text())
    assert 0 < abs(noisy - rows) < 10 * run.plan.phase("sum").noise_multiplier


def known_to_ray(nodes: Nodes) -> str:
    """What Ray wrote down, and what its state tells whoever asks."""
    import ray
    from ray._private.state import actors as every_actor

    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    try:
        told = json.dumps(every_actor(), default=str) + json.dumps(ray.nodes(), default=str)
    finally:
        ray.shutdown()
    files = [path for path in Path(nodes.session).rglob("*") if path.is_file()]
    return told + "".join(path.read_text(errors="replace") for path in files)
