"""Modules of `core.cluster`, loaded by name where the environment asks for one of them.

Nothing else refers to that package: a copy of the product without it works, on one machine.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from core.runs.errors import RunStoreError


def cluster_module(name: str, *, setting: str) -> Any:
    """A module of `core.cluster`.

    Raises:
      RunStoreError: this copy of the product lacks it.
    """
    try:
        return import_module(f"core.cluster.{name}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("core."):
            raise
        raise RunStoreError(
            "{setting} asks for something that only a team server needs, and the folder "
            "core/cluster is missing here. Nothing was read. Install Facsimile with that "
            "folder, or leave {setting} empty.",
            setting=setting,
        ) from None
