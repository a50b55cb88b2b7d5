"""Bring a Ray cluster's queue in line with the run store's; a process of a few seconds.

    python -m core.cluster.ray_queue --home HOME

Every run that waits gets an actor of its own, by its name, that belongs to no process (detached):
Ray queues it until a machine has room, starts it again elsewhere when its machine is lost, and
keeps it whatever becomes of the server. The actor starts the worker and ends with it. Actors of
runs that no longer wait are taken out of the queue. Said twice, or by several processes at once,
it changes nothing more.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from core.cluster import ray_config as config
from core.cluster import ray_supervisor
from core.cluster.ray_config import Cluster
from core.cluster.ray_supervisor import LACKS, FacsimileRun
from core.runs.errors import NotFoundError
from core.runs.events import State
from core.runs.execution.launching.launcher import SETTING
from core.runs.storage.store import RunStore
from core.runs.workspace import PROJECT_ROOT, Workspace

NAMESPACE = "facsimile"
SETTLE_SECONDS = 30.0  # that a start which fails at once has to say so
PAUSES = (0.0, 10.0, 20.0)  # seconds before each try to reach the cluster: its head may be starting
FOR_WORKERS = ("FACSIMILE_DATABASE", "FACSIMILE_STORAGE", SETTING)  # home is an argument
ENDED = (State.DONE, State.CANCELLED, State.PAUSED, State.FAILED)


def main(
    arguments: Sequence[str] | None = None,
    *,
    worker: Sequence[str] = ("-m", "core.runs.execution.worker"),
) -> int:
    """Hand over what waits; 0 when the cluster has it all.

    Args:
      worker: command of a worker, after the interpreter.
    """
    parser = argparse.ArgumentParser(prog="core.cluster.ray_queue")
    parser.add_argument("--home", type=Path, required=True)
    options = parser.parse_args(arguments)
    os.umask(0o077)
    cluster = config.configured_cluster()
    if cluster is None:
        return 0
    with RunStore(Workspace(options.home)) as store:
        try:
            import ray  # an extra: only servers with a cluster have it
        except ImportError:
            _say(store, config.ABSENT)
            return 1
        for pause in PAUSES:
            time.sleep(pause)
            try:
                _connect(ray, cluster)
                _Queue(ray, store, cluster, worker).settle()
                return 0
            except Exception:
                # the edge to another system: people get one line, the log the rest
                traceback.print_exc()
                _say(store, config.UNREACHABLE)
                ray.shutdown()
    return 1


def _say(store: RunStore, words: str, runs: Sequence[str] | None = None) -> None:
    """Say of waiting runs why they do, where they do not say so yet."""
    for run_id in store.queue() if runs is None else runs:
        if store.run(run_id).message != words:
            store.set_state(run_id, State.QUEUED, words, expect=(State.QUEUED,))


def _connect(ray: Any, cluster: Cluster) -> None:
    """Fails within seconds where nobody listens: Ray itself would try for minutes."""
    cluster.probe()
    ray.init(
        address=cluster.address, namespace=NAMESPACE, log_to_driver=False, logging_level="WARNING"
    )


def environment_of_workers(server: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Variables that workers get from the server, and those that their machines must have.

    A URL without a name, a password or parameters is passed on. Whatever may hold a secret is not,
    since Ray stores what it gets: such a variable has to be in the environment of each machine.
    """
    variables, needed = {}, []
    for name in FOR_WORKERS:
        value = server.get(name, "")
        if name == SETTING or ("://" in value and not set(value) & set("@?#")):
            variables[name] = value
        elif value:
            needed.append(name)
    return variables, needed


class _Queue:
    """A store's runs and the actors that stand for them."""

    def __init__(self, ray: Any, store: RunStore, cluster: Cluster, worker: Sequence[str]) -> None:
        self.ray, self.store, self.cluster = ray, store, cluster
        self.worker = list(worker)
        self.variables, self.needed = environment_of_workers(os.environ)
        ray.cloudpickle.register_pickle_by_value(ray_supervisor)
        # runs for which this process made an actor, with when each began to wait: one that was
        # paused and resumed between two looks waits anew, and needs another
        self.made: set[tuple[str, datetime]] = set()
        self.asked: dict[Any, str] = {}  # answers to come, of actors that are made, and their runs

    def settle(self) -> None:
        """Until every run that waits has an actor, and none that would fail at once is left."""
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            actors = self._actors()
            for run_id in actors:
                self._withdraw(run_id)
            waiting = self.store.queue()
            # an actor of a run that was paused and resumed at once may be there and about to go:
            # the next look makes another
            for run_id in (run for run in waiting if run not in actors):
                wait = (run_id, self.store.run(run_id).queued)
                if wait in self.made:
                    self._failed(run_id, config.EARLY)
                else:
                    self.made.add(wait)
                    self._create(run_id)
            _say(self.store, config.IN_QUEUE, [run for run in waiting if run in actors])
            self._listen()
            if not self.store.queue() or time.monotonic() > end:
                return

    def _actors(self) -> list[str]:
        """Runs that have an actor in Ray, be it at work or not yet."""
        return [name.removeprefix("run-") for name in self.ray.util.list_named_actors()]

    def _withdraw(self, run_id: str) -> None:
        """Take a run that ended or was paused out of Ray's queue."""
        try:
            if self.store.run(run_id).state not in ENDED:
                return
            self.ray.kill(self.ray.get_actor(f"run-{run_id}"), no_restart=True)
        except (NotFoundError, ValueError):
            return  # of another workspace, or deleted: its worker will see; or gone by now

    def _create(self, run_id: str) -> None:
        cluster, home = self.cluster, str(self.store.workspace.home)
        options: dict[str, Any] = {
            "name": f"run-{run_id}",
            "lifetime": "detached",
            "get_if_exists": True,
            "num_cpus": cluster.cpus,
            "num_gpus": self._gpus(run_id),
            "max_restarts": cluster.restarts,
        }
        if cluster.memory_gb is not None:
            options["memory"] = int(cluster.memory_gb * 1e9)
        actor = self.ray.remote(FacsimileRun).options(**options)
        handle = actor.remote(
            run_id, home, self.worker, str(PROJECT_ROOT), self.variables, self.needed
        )
        self.asked[handle.__ray_ready__.remote()] = run_id

    def _gpus(self, run_id: str) -> float:
        device = self.store.run(run_id).request.device
        if device == "cpu":
            return 0.0
        if self.cluster.gpus is not None:
            return self.cluster.gpus
        there = self.ray.cluster_resources().get("GPU", 0.0) >= 1.0
        return 1.0 if device == "cuda" or there else 0.0

    def _listen(self) -> None:
        """Hear for a second of actors that stand, or cannot."""
        if not self.asked:
            time.sleep(1.0)
            return
        answers, _ = self.ray.wait(list(self.asked), num_returns=len(self.asked), timeout=1.0)
        for answer in answers:
            run_id = self.asked.pop(answer)
            try:
                self.ray.get(answer)
            except self.ray.exceptions.RayActorError as error:
                lacks = re.search(rf"{LACKS} (.*)", str(error))
                if lacks is not None:  # else it stood, and is gone with its work
                    self._failed(run_id, config.machine_lacks(lacks.group(1)))

    def _failed(self, run_id: str, error: str) -> None:
        expect = (State.QUEUED,)
        self.store.set_state(
            run_id, State.FAILED, config.NOT_STARTED, error=error, failure="launcher", expect=expect
        )


if __name__ == "__main__":
    sys.exit(main())
