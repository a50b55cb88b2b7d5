"""Where the key and the head of a test's ledger lie; light, since racing processes import it."""

from __future__ import annotations

from pathlib import Path

from core.runs.storage.storages import LocalStorage
from core.runs.storage.workspace_secrets import WorkspaceLedgerFiles
from core.runs.workspace import Workspace

__all__ = ["ledger_files"]


def ledger_files(home: Path | str) -> WorkspaceLedgerFiles:
    """Those of the workspace in a folder, which is made when absent."""
    return WorkspaceLedgerFiles(LocalStorage(Workspace(Path(home))))
