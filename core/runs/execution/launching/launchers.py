"""Where runs are worked off, and who adds up their statistics: as FACSIMILE_LAUNCHER says."""

from __future__ import annotations

import os
from typing import Any

from core.privacy.summation import Summation
from core.runs.execution.launching.launcher import SETTING, Launcher
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.extensions import cluster_module
from core.runs.storage.store import RunStore


def configured_launcher(store: RunStore) -> Launcher:
    """The launcher that FACSIMILE_LAUNCHER names: one run at a time on this machine when not set.

    Raises:
      RunStoreError: it names none.
    """
    if not _names_cluster():
        return LocalLauncher(store)
    launcher: Launcher = _cluster_module("ray_launcher").configured_launcher(store)
    return launcher


def configured_summation() -> Summation | None:
    """Adds up statistics over all records on the cluster's machines; None where they stay here."""
    if not _names_cluster():
        return None
    summation: Summation | None = _cluster_module("ray_summation").configured_summation()
    return summation


def _names_cluster() -> bool:
    return os.environ.get(SETTING, "").strip() not in ("", "local")


def _cluster_module(name: str) -> Any:
    return cluster_module(name, setting=SETTING)
