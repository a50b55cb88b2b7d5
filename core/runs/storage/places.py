"""Places: where the artefacts of a workspace's tables and runs lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from core.runs.storage.artefacts import ArtefactStore, LocalArtefacts
from core.runs.storage.workspace import Workspace, private_folder

__all__ = ["LocalPlaces", "Places", "open_places"]


class Places(Protocol):
    """Where artefacts lie. Ids are plain: the stores that ask have looked at them."""

    def table(self, table_id: str) -> ArtefactStore:
        """A table's rows, and what is kept beside them."""

    def run(self, run_id: str) -> ArtefactStore:
        """What a run keeps."""


@dataclass(frozen=True)
class LocalPlaces:
    """`Places` in the workspace's own folder.

    Attributes:
      workspace: the folder.
    """

    workspace: Workspace

    def table(self, table_id: str) -> LocalArtefacts:
        """See `Places.table`; the folder is made when absent."""
        return LocalArtefacts(private_folder(self.workspace.tables_dir / table_id))

    def run(self, run_id: str) -> LocalArtefacts:
        """See `Places.run`."""
        return LocalArtefacts(self.workspace.runs_dir / run_id)


def open_places(workspace: Workspace) -> Places:
    """Where the artefacts of a workspace lie."""
    return LocalPlaces(workspace)
