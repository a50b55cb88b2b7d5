"""Which launcher the environment names, and what a run says that a cluster cannot be asked for."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from core.cluster import ray_launcher, ray_queue
from core.cluster.ray_config import (
    ABSENT,
    EARLY,
    HANDING_OVER,
    UNREACHABLE,
    Cluster,
    LauncherError,
)
from core.cluster.ray_launcher import RayLauncher
from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.execution.launching import children, local_launcher
from core.runs.execution.launching.launcher import SETTING, SampleRequest
from core.runs.execution.launching.launchers import configured_launcher
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.services import runs
from tests.requests_for import request_for
from tests.runs.workers import queued, releases, start, toy_plan, until


@pytest.mark.parametrize("text", ["", "local"])
def test_runs_stay_on_this_machine_unless_a_cluster_is_named(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(SETTING, text)
    launcher = configured_launcher(store)
    assert isinstance(launcher, LocalLauncher) and launcher.slots == 1


def test_a_cluster_is_named_with_what_a_run_takes_of_it(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, "ray://head:10001?cpus=2&gpus=0.5&memory_gb=8&restarts=1&tasks=6")
    launcher = configured_launcher(store)
    assert isinstance(launcher, RayLauncher)
    assert launcher.cluster == Cluster(
        address="ray://head:10001", cpus=2.0, gpus=0.5, memory_gb=8.0, restarts=1, tasks=6
    )


@pytest.mark.parametrize(
    "text",
    ["slurm", "ray", "ray:", "http://x", "ray:auto?cpus=0", "ray:auto?cpus=-1", "ray:auto?cpus=a",
     "ray:auto?cores=2", "ray:auto?cpus=nan", "ray:auto?memory_gb=inf", "ray:auto?tasks=1.5"],
)  # fmt: skip
def test_anything_else_is_refused_in_one_line(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(SETTING, text)
    with pytest.raises(LauncherError, match="Nothing was started") as refused:
        configured_launcher(store)
    assert "\n" not in str(refused.value)


def test_a_run_waits_where_ray_is_not_installed(
    store: RunStore, table: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = builtins.__import__

    def without_ray(name: str, *more: Any) -> Any:
        if name.split(".")[0] == "ray":
            raise ImportError(name)
        return genuine(name, *more)

    monkeypatch.setattr(builtins, "__import__", without_ray)
    monkeypatch.setenv(SETTING, "ray:auto")
    run = queued(store, table, toy_plan(table))
    assert ray_queue.main(["--home", str(store.workspace.home)]) == 1
    waiting = store.run(run.id)
    assert (waiting.state, waiting.message) == (State.QUEUED, ABSENT)
    assert "requirements-cluster.txt" in ABSENT and releases(store, table) == 0
    told = len(store.journal.events(run.id))
    ray_queue.main(["--home", str(store.workspace.home)])
    assert len(store.journal.events(run.id)) == told, "it says so once"


def test_a_run_waits_where_the_cluster_cannot_be_reached(
    store: RunStore, table: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(shutdown=lambda: None))
    monkeypatch.setattr(ray_queue, "PAUSES", (0.0, 0.0))
    monkeypatch.setenv(SETTING, "ray://127.0.0.1:1")
    run = queued(store, table, toy_plan(table))
    assert ray_queue.main(["--home", str(store.workspace.home)]) == 1
    assert store.run(run.id).message == UNREACHABLE and store.run(run.id).state is State.QUEUED
    assert releases(store, table) == 0


def test_the_cluster_is_asked_on_changes_and_at_times(
    store: RunStore, table: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[RayLauncher] = []
    monkeypatch.setattr(ray_launcher, "_looked", {})
    genuine = RayLauncher._settle

    def settle(launcher: RayLauncher) -> None:
        asked.append(launcher)
        genuine(launcher)

    monkeypatch.setattr(RayLauncher, "_settle", settle)
    launcher = RayLauncher(store, Cluster(address="auto"), command=("-c", "pass"))
    assert launcher.pump() == [] and not asked, "nothing waits"
    run = start(store, launcher, toy_plan(table))
    assert (run.state, run.message, len(asked)) == (State.QUEUED, HANDING_OVER, 1)
    launcher.pump()
    assert len(asked) == 1, "it was asked a moment ago"
    monkeypatch.setattr(ray_launcher, "_looked", {})
    launcher.pump()
    assert len(asked) == 2
    runs.pause(store, run.id, launcher)
    assert len(asked) == 3 and runs.resume(store, launcher, run.id).state is State.QUEUED
    runs.cancel(store, run.id, launcher)
    assert len(asked) == 5

    def over() -> bool:
        children.collect()
        return not children._children

    until(over)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("sqlite:////shared/facsimile.db", True),
        ("postgresql://database/runs", True),
        ("postgresql://ann:secret@database/runs", False),
        ("postgresql://database/runs?password=secret", False),
        ("secret", False),
    ],
)
def test_workers_are_told_what_cannot_be_a_secret(value: str, told: bool) -> None:
    server = {"FACSIMILE_DATABASE": value, SETTING: "ray:auto", "FACSIMILE_HOME": "/x"}
    known, needed = ray_queue.environment_of_workers(server)
    assert known.pop(SETTING) == "ray:auto"
    assert (known, needed) == (
        ({"FACSIMILE_DATABASE": value}, []) if told else ({}, ["FACSIMILE_DATABASE"])
    )


class Fake:
    """A cluster with so many graphics cards."""

    cloudpickle = SimpleNamespace(register_pickle_by_value=lambda module: None)

    def __init__(self, cards: float) -> None:
        self.cards = cards

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 4.0} | ({"GPU": self.cards} if self.cards else {})


@pytest.mark.parametrize(
    ("device", "asked", "cards", "given"),
    [
        ("cpu", None, 2.0, 0.0),
        ("cpu", 1.0, 2.0, 0.0),
        ("auto", None, 0.0, 0.0),
        ("auto", None, 2.0, 1.0),
        ("auto", 0.5, 2.0, 0.5),
        ("cuda", None, 0.0, 1.0),  # it waits until a machine with a card joins
        ("cuda", 2.0, 2.0, 2.0),
    ],
)
def test_a_run_takes_the_cards_that_it_can_use(
    store: RunStore,
    table: TableRecord,
    device: str,
    asked: float | None,
    cards: float,
    given: float,
) -> None:
    plan = toy_plan(table)
    run = store.create_run(
        table.id,
        plan,
        request_for(plan, rows=5, seed=0, device=device),
        schema=table.schema,
    )
    cluster = Cluster(address="auto", gpus=asked)
    queue = ray_queue._Queue(Fake(cards), store, cluster, worker=())
    assert queue._gpus(run.id) == given


class Actors(Fake):
    """A cluster whose actors do at each look what the test says, and are then gone.

    Attributes:
      made: how many actors there have been.
    """

    def __init__(self, *looks: Callable[[], object]) -> None:
        super().__init__(cards=0.0)
        self.looks, self.made = list(looks), 0
        self.util = SimpleNamespace(list_named_actors=list)

    def remote(self, kind: type) -> Actors:
        return self

    def options(self, **options: Any) -> SimpleNamespace:
        self.made += 1
        ready = SimpleNamespace(remote=lambda: f"answer {self.made}")
        handle = SimpleNamespace(__ray_ready__=ready)
        return SimpleNamespace(remote=lambda *arguments: handle)

    def wait(self, answers: list[str], **options: Any) -> tuple[list[str], list[str]]:
        self.looks.pop(0)()
        return [], answers


def test_a_run_resumed_between_two_looks_gets_another_actor(
    store: RunStore, table: TableRecord
) -> None:
    run = queued(store, table, toy_plan(table))

    def paused_and_resumed() -> None:
        assert store.claim(run.id, slots=None)
        for state in (State.PAUSED, State.QUEUED):
            store.set_state(run.id, state)

    ray = Actors(paused_and_resumed, lambda: store.claim(run.id, slots=None))
    ray_queue._Queue(ray, store, Cluster(address="auto"), worker=()).settle()
    assert ray.made == 2 and store.run(run.id).state is State.RUNNING


def test_a_run_whose_worker_ends_at_once_has_failed(store: RunStore, table: TableRecord) -> None:
    run = queued(store, table, toy_plan(table))
    ray = Actors(lambda: None, lambda: None)
    ray_queue._Queue(ray, store, Cluster(address="auto"), worker=()).settle()
    failed = store.run(run.id)
    assert (failed.state, failed.error, ray.made) == (State.FAILED, EARLY, 1)


def test_what_is_said_of_a_waiting_run_leaves_it_its_place(
    store: RunStore, table: TableRecord
) -> None:
    first, second = (queued(store, table, toy_plan(table)) for _ in range(2))
    store.set_state(first.id, State.QUEUED, ABSENT, expect=(State.QUEUED,))
    assert store.queue() == [first.id, second.id]


def test_sampling_that_hangs_is_stopped_and_said_in_a_sentence(
    store: RunStore, table: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = queued(store, table, toy_plan(table))
    hangs = (sys.executable, "-c", "import time; time.sleep(60)")
    monkeypatch.setattr(LocalLauncher, "_command", lambda *_: list(hangs))
    monkeypatch.setattr(local_launcher, "SAMPLING_SECONDS", 0.2)
    with pytest.raises(
        RunStoreError, match="longer than 0 minutes and was stopped. No file was saved"
    ):
        LocalLauncher(store).sample(run.id, "rows.csv", SampleRequest(rows=5))
