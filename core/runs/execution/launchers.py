"""Who works runs off: this machine, or the cluster that the environment names."""

from __future__ import annotations

from core.runs.execution.cluster import configured_cluster
from core.runs.execution.launcher import Launcher
from core.runs.execution.local_launcher import LocalLauncher
from core.runs.execution.ray_launcher import RayLauncher
from core.runs.storage.store import RunStore

__all__ = ["configured_launcher"]


def configured_launcher(store: RunStore) -> Launcher:
    """The launcher that FACSIMILE_LAUNCHER names: one at a time on this machine when not set.

    Raises:
      LauncherError: it names none.
    """
    cluster = configured_cluster()
    return LocalLauncher(store) if cluster is None else RayLauncher(store, cluster)
