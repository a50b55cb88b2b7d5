"""Artefacts: what a run or a table keeps, such as synthetic.parquet and the folder model.

They lie on this machine or in an object store. Whoever reads or writes one asks an `ArtefactStore`
for a stream or, where a library needs files, for a path of this machine. A fit asks for a
`WorkingFolder` and says when what lies there must outlive the machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from core.runs.errors import NotFoundError
from core.runs.workspace import private_folder
from core.writing.whole_files import replacing

ROWS = "rows.parquet"  # of a table

SYNTHETIC_TABLE, BASELINE_TABLE = "synthetic.parquet", "before.parquet"
MODELLED_TABLE = "modelled.parquet"  # synthetic rows as models see them, if they see others
PRIVACY_CERTIFICATE = "certificate.json"
INSIDE_REPORT, OUTSIDE_REPORT = "report.json", "outside.json"  # by who may see them
REPORT_INTERVALS = "intervals.json"  # how far figures of the outside report may be off
METER, CHECKPOINT, MODEL = "meter.json", "checkpoint", "model"  # a file and two folders
LEARNED_DOMAIN = "domain.json"  # what a run learned before its model was trained
ROWS_DIGEST = "rows.sha256"  # of the rows that a run began with; it stays inside
# there while a worker shall fit a finished run again: for error bars, or minutes for an attack
REFITS_WANTED = "refits.wanted"
ATTEMPT = "attempt-"  # and its number: in the checkpoint, the folder of an attempt after the first
UNFINISHED = (".half", ".part", ".tmp")  # endings of files that are still being written

Model = TypeVar("Model", bound=BaseModel)
Readable: TypeAlias = Path | BinaryIO  # what pandas and pyarrow read a table's columns from


def plain_name(name: str) -> str:
    """The name of an artefact, which leads nowhere else.

    Raises:
      NotFoundError: it holds a path, so that no link leaves the workspace.
    """
    if not name or Path(name).name != name or name == "..":
        raise NotFoundError("There is no such artefact in this workspace.")
    return name


class ArtefactStore(Protocol):
    """The artefacts of one run or table. Every method refuses a name that is no plain name."""

    def open(self, name: str) -> BinaryIO:
        """The bytes of an artefact, for reading; FileNotFoundError when it is absent."""

    def replacing(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A stream that becomes the artefact when the block ends well, whole or not at all."""

    def readable(self, name: str) -> AbstractContextManager[Readable]:
        """A Parquet file, to be read by columns and row groups while the block lasts.

        Its path where it lies on this machine, else a stream that can seek, which asks for the
        parts that are read. Raises FileNotFoundError when it is absent.
        """

    def local(self, name: str) -> Path:
        """An artefact as a file or folder of this machine, for reading.

        It is the artefact itself where that lies on this machine, else a copy that goes when this
        process ends. Raises FileNotFoundError when it is absent.
        """

    def filling(self, name: str) -> AbstractContextManager[Path]:
        """Where a file or folder is to be made on this machine; afterwards it is the artefact.

        Elsewhere than on this machine it is put in place when the block ends well, at once.
        """

    def working(self) -> AbstractContextManager[WorkingFolder]:
        """A folder of this machine for a fit to work in, with checkpoint and meter of the run."""

    def exists(self, name: str) -> bool:
        """Whether the artefact, or the folder of that name, is there."""

    def modified(self, name: str) -> float:
        """When the artefact was written, seconds since 1970-01-01 UTC."""

    def names(self, folder: str) -> list[str]:
        """What is complete in a folder of the run; nothing when it is absent."""

    def delete(self, name: str) -> None:
        """Remove an artefact, or a folder with all it holds; nothing happens when it is absent."""

    def clear(self) -> None:
        """Remove all there is, the folder itself too."""

    def within(self, folder: str) -> ArtefactStore:
        """The artefacts in a folder of the run, made when absent."""


class WorkingFolder(ArtefactStore, Protocol):
    """Artefacts of a run beside a folder of this machine that its fit works in.

    The folder holds checkpoint and meter; whatever else is written there goes afterwards, unless
    the artefacts lie in it themselves.
    """

    @property
    def folder(self) -> Path:
        """Of this machine, mode 0700."""

    def publish(self) -> None:
        """Let another machine go on from the checkpoint and the meter as they are now.

        To be called when the meter has been written: before a private access that it charges,
        and after each checkpoint. Costs nothing where the folder itself is the artefacts' place.
        """


@dataclass(frozen=True)
class LocalArtefacts:
    """An `ArtefactStore` in a folder of this machine; a `WorkingFolder` too.

    Attributes:
      folder: of the run, mode 0700; for code that needs real files beside each other.
    """

    folder: Path

    def path(self, name: str) -> Path:
        """Where an artefact lies or would lie, for code that needs a real file or folder.

        Raises:
          NotFoundError: the name is no plain name, so that no link leaves the workspace.
        """
        return self.folder / plain_name(name)

    def open(self, name: str) -> BinaryIO:
        """See `ArtefactStore.open`."""
        return self.path(name).open("rb")

    def replacing(self, name: str) -> AbstractContextManager[BinaryIO]:
        """See `ArtefactStore.replacing`; the file can be read by its owner only."""
        return replacing(self.path(name))

    @contextmanager
    def readable(self, name: str) -> Iterator[Readable]:
        """See `ArtefactStore.readable`."""
        yield self.path(name)

    def local(self, name: str) -> Path:
        """See `ArtefactStore.local`."""
        return self.path(name)

    @contextmanager
    def filling(self, name: str) -> Iterator[Path]:
        """See `ArtefactStore.filling`."""
        yield self.path(name)

    @contextmanager
    def working(self) -> Iterator[LocalArtefacts]:
        """See `ArtefactStore.working`."""
        yield self

    def publish(self) -> None:
        """See `WorkingFolder.publish`."""

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

    def clear(self) -> None:
        """See `ArtefactStore.clear`."""
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def within(self, folder: str) -> LocalArtefacts:
        """See `ArtefactStore.within`."""
        return LocalArtefacts(private_folder(self.path(folder)))


def save_json(artefacts: ArtefactStore, name: str, value: BaseModel) -> None:
    """Keep a value as JSON."""
    with artefacts.replacing(name) as file:
        file.write(value.model_dump_json().encode())


def load_json(artefacts: ArtefactStore, name: str, kind: type[Model]) -> Model | None:
    """A value that `save_json` kept; None where there is none."""
    try:
        with artefacts.open(name) as file:
            return kind.model_validate_json(file.read())
    except FileNotFoundError:
        return None
