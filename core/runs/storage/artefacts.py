"""Artefacts: what a run keeps, such as synthetic.parquet, report.json and the folder model.

Whatever reads or writes one as a stream asks for an `ArtefactStore`, so that artefacts can lie
elsewhere. Models, checkpoints, logs and files made by other libraries need a folder of this
machine; their code asks for `LocalArtefacts`.
"""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from pydantic import BaseModel

from core.runs.storage.errors import NotFoundError
from core.runs.storage.workspace import private_folder
from core.table.io.replacing import replacing

__all__ = [
    "BASELINE_TABLE",
    "INSIDE_REPORT",
    "METER",
    "MODELLED_TABLE",
    "OUTSIDE_REPORT",
    "PRIVACY_CERTIFICATE",
    "SYNTHETIC_TABLE",
    "ArtefactStore",
    "LocalArtefacts",
    "load_json",
    "save_json",
]

SYNTHETIC_TABLE, BASELINE_TABLE = "synthetic.parquet", "before.parquet"
MODELLED_TABLE = "modelled.parquet"  # synthetic rows as models see them, if they see others
PRIVACY_CERTIFICATE = "certificate.json"
INSIDE_REPORT, OUTSIDE_REPORT = "report.json", "outside.json"  # by who may see them
METER = "meter.json"
UNFINISHED = (".half", ".part", ".tmp")  # endings of files that are still being written

Model = TypeVar("Model", bound=BaseModel)


class ArtefactStore(Protocol):
    """The artefacts of one run, as streams. Every method refuses a name that is no plain name."""

    def open(self, name: str) -> BinaryIO:
        """The bytes of an artefact, for reading; FileNotFoundError when it is absent."""

    def replacing(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A stream that becomes the artefact when the block ends well, whole or not at all."""

    def exists(self, name: str) -> bool:
        """Whether the artefact, or the folder of that name, is there."""

    def modified(self, name: str) -> float:
        """When the artefact was written, seconds since 1970-01-01 UTC."""

    def names(self, folder: str) -> list[str]:
        """What is complete in a folder of the run; nothing when it is absent."""

    def delete(self, name: str) -> None:
        """Remove an artefact, or a folder with all it holds; nothing happens when it is absent."""

    def within(self, folder: str) -> ArtefactStore:
        """The artefacts in a folder of the run, made when absent."""


@dataclass(frozen=True)
class LocalArtefacts:
    """An `ArtefactStore` in a folder of this machine.

    Attributes:
      folder: of the run, mode 0700; for code that needs real files beside each other.
    """

    folder: Path

    def path(self, name: str) -> Path:
        """Where an artefact lies or would lie, for code that needs a real file or folder.

        Raises:
          NotFoundError: the name is no plain name, so that no link leaves the workspace.
        """
        if not name or Path(name).name != name or name == "..":
            raise NotFoundError("There is no such artefact in this workspace.")
        return self.folder / name

    def open(self, name: str) -> BinaryIO:
        """See `ArtefactStore.open`."""
        return self.path(name).open("rb")

    def replacing(self, name: str) -> AbstractContextManager[BinaryIO]:
        """See `ArtefactStore.replacing`; the file can be read by its owner only."""
        return replacing(self.path(name))

    def exists(self, name: str) -> bool:
        """See `ArtefactStore.exists`."""
        return self.path(name).exists()

    def modified(self, name: str) -> float:
        """See `ArtefactStore.modified`."""
        return self.path(name).stat().st_mtime

    def names(self, folder: str) -> list[str]:
        """See `ArtefactStore.names`."""
        where = self.path(folder)
        return [
            path.name
            for path in (where.iterdir() if where.is_dir() else ())
            if not path.name.startswith(".") and path.suffix not in UNFINISHED
        ]

    def delete(self, name: str) -> None:
        """See `ArtefactStore.delete`."""
        path = self.path(name)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def within(self, folder: str) -> LocalArtefacts:
        """See `ArtefactStore.within`."""
        return LocalArtefacts(private_folder(self.path(folder)))


def save_json(artefacts: ArtefactStore, name: str, value: BaseModel) -> None:
    """Keep a value as JSON.

    Args:
      artefacts: where.
      name: of the artefact.
      value: of any class of pydantic.
    """
    with artefacts.replacing(name) as file:
        file.write(value.model_dump_json().encode())


def load_json(artefacts: ArtefactStore, name: str, kind: type[Model]) -> Model | None:
    """A value that `save_json` kept; None where there is none.

    Args:
      artefacts: where.
      name: of the artefact.
      kind: class of the value.
    """
    try:
        with artefacts.open(name) as file:
            return kind.model_validate_json(file.read())
    except FileNotFoundError:
        return None
