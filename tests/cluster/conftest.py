"""A Ray cluster on this machine: a head that works nothing off, and nodes with a name each."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.cluster import ray_launcher
from core.cluster.ray_config import Cluster
from core.cluster.ray_launcher import RayLauncher
from core.runs.execution.launching import children
from core.runs.execution.launching.launcher import SETTING
from core.runs.storage.store import RunStore
from core.runs.workspace import PROJECT_ROOT, Workspace
from tests.cluster import toy_node
from tests.ports import free_port
from tests.runs import workers
from tests.runs.conftest import frame, schema, table  # noqa: F401
from tests.runs.workers import until

STORE_BYTES = 80_000_000


class Nodes:
    """A cluster whose nodes come and go.

    Attributes:
      client: address of Ray's client server, for machines that are no part of the cluster.
    """

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster as RayCluster

        head = {
            "num_cpus": 0,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
            "ray_client_server_port": free_port(),
        }
        self.client = f"ray://127.0.0.1:{head['ray_client_server_port']}"
        self._ray = RayCluster(initialize_head=True, head_node_args=head)
        self._nodes: dict[str, Any] = {}

    @property
    def address(self) -> str:
        return str(self._ray.address)

    @property
    def session(self) -> Path:
        """Where Ray keeps what it writes down."""
        return Path(self._ray.head_node.get_session_dir_path())

    def add(self, name: str, cpus: int = 1, **variables: str) -> None:
        node = self._ray.add_node(
            num_cpus=cpus,
            object_store_memory=STORE_BYTES,
            env_vars={toy_node.NODE: name, **variables},
        )
        self._nodes[name] = node

    def kill(self, name: str) -> None:
        """As when its power is cut: nothing of it can say good-bye."""
        self._ray.remove_node(self._nodes.pop(name), allow_graceful=False)

    def clear(self) -> None:
        """Let all nodes leave in good order: those that are killed are missed for a while."""
        for name in list(self._nodes):
            self._ray.remove_node(self._nodes.pop(name), allow_graceful=True)

    def shutdown(self) -> None:
        self._ray.shutdown()


@pytest.fixture(scope="session")
def _cluster() -> Iterator[Nodes]:
    pytest.importorskip("ray", reason="needs Ray: pip install -r requirements-cluster.txt")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_worker_niceness"] = "0"  # else what else this machine does comes first, by far
    os.environ["PYTHONPATH"] = str(PROJECT_ROOT)
    nodes = Nodes()
    yield nodes
    nodes.shutdown()


@pytest.fixture
def nodes(_cluster: Nodes) -> Iterator[Nodes]:
    yield _cluster
    _cluster.clear()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunStore]:
    """A store as a server sees it that is no machine of the cluster."""
    monkeypatch.setattr("core.runs.storage.processes.process.STALE_SECONDS", toy_node.STALE_SECONDS)
    monkeypatch.setattr(socket, "gethostname", lambda: "server")
    with RunStore(Workspace(tmp_path / "home")) as opened:
        yield opened


@pytest.fixture
def launcher(
    store: RunStore, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RayLauncher]:
    yield launcher_of(store, f"ray:{nodes.address}", monkeypatch)
    until(all_said)


def all_said() -> bool:
    """Whether every talk with the cluster is over."""
    children.collect()
    return not children._children


def launcher_of(store: RunStore, text: str, monkeypatch: pytest.MonkeyPatch) -> RayLauncher:
    """What a server has whose environment names that cluster."""
    monkeypatch.setenv(SETTING, text)
    monkeypatch.setattr(ray_launcher, "_looked", {})
    monkeypatch.setattr(workers, "PATIENCE", 180.0)  # a lost node is missed after some 15 s
    return RayLauncher(store, Cluster.parse(text), command=toy_node.QUEUE)
