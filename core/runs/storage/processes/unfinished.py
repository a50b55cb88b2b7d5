"""Tables that are being brought in: what a killed process leaves of them does not stay.

Beside a table's rows, wherever those lie, stands a folder on this machine that is held while they
are written. One that nobody holds any more says which rows belong to no table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, delete
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from core.message import joined
from core.runs.errors import StorageError
from core.runs.storage.artefacts import ArtefactStore
from core.runs.storage.database import SketchRow, TableRow
from core.runs.storage.scratch import held_folder, remove_leftovers
from core.runs.storage.storages import Storage
from core.runs.workspace import Workspace, private_folder

NOTHING_KEPT = "Nothing of the table was saved."


@dataclass(frozen=True)
class UnfinishedTables:
    """The tables of a workspace that are not whole yet."""

    workspace: Workspace
    storage: Storage
    engine: Engine

    @property
    def root(self) -> Path:
        """Where the folders of imports stand that are under way."""
        return self.workspace.home / "importing"

    @contextmanager
    def begun(self, table_id: str) -> Iterator[tuple[ArtefactStore, Path]]:
        """Where rows are written, and a scratch folder; no rows stay if the block fails.

        Raises:
          StorageError: as the block raised it, saying that nothing was kept.
        """
        with held_folder(private_folder(self.root)) as folder:
            (folder / table_id).mkdir(mode=0o700)
            artefacts = self.storage.table(table_id)
            try:
                yield artefacts, folder / table_id
            except BaseException as error:
                with suppress(StorageError):  # a store that is away cannot be cleared
                    artefacts.clear()
                self._forget_people(table_id)
                if isinstance(error, StorageError):
                    raise StorageError(joined([str(error), NOTHING_KEPT])) from error
                raise

    def forget(self) -> None:
        """Remove what processes of this machine left that were killed."""
        with suppress(OSError):  # a disk that cannot be written can still be looked at
            remove_leftovers(self.root, undo=self._undo)

    def _undo(self, folder: Path) -> None:
        """Clear the rows of tables that never got a record."""
        for one in folder.iterdir():
            try:
                with Session(self.engine) as session:
                    known = session.get(TableRow, one.name) is not None
                if not known:
                    self._forget_people(one.name)
                    self.storage.table(one.name).clear()
            except DBAPIError as error:
                raise StorageError("The database cannot be written to right now.") from error

    def _forget_people(self, table_id: str) -> None:
        """Keep nothing that the people of a table would be recognised by."""
        with self.engine.begin() as connection:
            connection.execute(delete(SketchRow).where(SketchRow.table_id == table_id))
