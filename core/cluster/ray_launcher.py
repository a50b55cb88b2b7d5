"""RayLauncher: runs are handed to a Ray cluster, which queues them and starts their workers.

What talks to Ray is a process of its own (`core.cluster.ray_queue`), started for seconds
whenever something changed: a server that is no part of the cluster cannot fall with it, needs not
wait for it, and never holds Ray in its memory.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from core.cluster.ray_config import HANDING_OVER, Cluster, configured_cluster
from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.execution.launching import children
from core.runs.execution.launching.launcher import SampleRequest, not_resumable
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.records import RESUMABLE
from core.runs.storage.store import RunStore

LOG = "cluster.log"  # in the workspace: what the last talk with the cluster said, for stewards
LOOK_SECONDS = 60.0  # between two looks after runs that wait
_looked: dict[str, float] = {}  # by workspace: launchers are made anew for each click


class RayLauncher:
    """A `Launcher` on a Ray cluster; any number of them may share one store.

    Attributes:
      command: of the process that talks to the cluster, after the interpreter.
    """

    def __init__(
        self,
        store: RunStore,
        cluster: Cluster,
        *,
        command: Sequence[str] = ("-m", "core.cluster.ray_queue"),
    ) -> None:
        self.store = store
        self.cluster = cluster
        self.command = tuple(command)

    @property
    def restarts(self) -> int:
        """See `Launcher`."""
        return self.cluster.restarts

    def submit(self, run_id: str) -> None:
        """See `Launcher.submit`; the cluster has it some seconds later, and decides when."""
        self.store.run(run_id)
        self.store.set_state(run_id, State.QUEUED, HANDING_OVER, expect=(State.QUEUED,))
        self._settle()

    def resume(self, run_id: str) -> None:
        """See `Launcher.resume`."""
        if not self.store.set_state(run_id, State.QUEUED, HANDING_OVER, expect=RESUMABLE):
            state = self.store.run(run_id).state
            raise RunStoreError(not_resumable(state))
        self._settle()

    def pump(self) -> list[str]:
        """See `Launcher.pump`; looks now and then whether the cluster has all runs that wait."""
        children.collect()
        looked = _looked.get(self._home, -LOOK_SECONDS)
        if self.store.queue() and time.monotonic() - looked >= LOOK_SECONDS:
            self._settle()
        return []  # the cluster starts them

    def reachable(self) -> bool:
        """See `Launcher.reachable`: somebody listens where the cluster should be."""
        with suppress(OSError):
            self.cluster.probe()
            return True
        return False

    def withdraw(self, run_id: str) -> None:
        """See `Launcher.withdraw`."""
        self._settle()

    def sample(self, run_id: str, name: str, request: SampleRequest) -> None:
        """See `Launcher.sample`; here, since a download of seconds must not queue behind fits."""
        LocalLauncher(self.store).sample(run_id, name, request)

    @property
    def _home(self) -> str:
        return str(self.store.workspace.home)

    def _settle(self) -> None:
        _looked[self._home] = time.monotonic()
        children.collect()
        command = [sys.executable, *self.command, "--home", self._home]
        children.start(command, self.store.workspace.home / LOG, mode="wb")


def configured_launcher(store: RunStore) -> RayLauncher:
    """The launcher of the cluster that the environment names."""
    cluster = configured_cluster()
    assert cluster is not None
    return RayLauncher(store, cluster)
