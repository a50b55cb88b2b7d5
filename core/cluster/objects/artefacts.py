"""ObjectArtefacts: the artefacts of one run or table in an object store.

A file is an object of its name. Folders are published (`PublishedFolder`): the model, and together
the checkpoint and the meter of a fit at work, which must never be of two different moments.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from core.cluster.objects.bucket import Bucket
from core.cluster.objects.published_folder import Manifest, PublishedFolder, Publisher, top_names
from core.runs.storage.artefacts import (
    CHECKPOINT,
    METER,
    MODEL,
    UNFINISHED,
    Readable,
    WorkingFolder,
    plain_name,
)
from core.runs.storage.scratch import Scratch
from core.runs.workspace import private_folder

AT_WORK = (CHECKPOINT, METER)  # what a fit that goes on needs, published as one folder


@dataclass(frozen=True)
class ObjectArtefacts:
    """An `ArtefactStore` under a prefix of a bucket.

    Attributes:
      scratch: of this process, for what has to be a file for a while.
    """

    bucket: Bucket
    scratch: Scratch

    def open(self, name: str) -> BinaryIO:
        """See `ArtefactStore.open`."""
        return self.bucket.open(plain_name(name))

    @contextmanager
    def replacing(self, name: str) -> Iterator[BinaryIO]:
        """See `ArtefactStore.replacing`; the bytes wait on this machine until the block ends."""
        plain_name(name)
        with self.scratch.folder_for("writing") as folder:
            file = folder / "bytes"
            with file.open("wb") as stream:
                yield stream
            self.bucket.upload(file, name)

    @contextmanager
    def readable(self, name: str) -> Iterator[Readable]:
        """See `ArtefactStore.readable`."""
        with self.open(name) as stream:
            yield stream

    def local(self, name: str) -> Path:
        """See `ArtefactStore.local`; a file is fetched at each call, since it may have changed.

        Others may read a copy while it is fetched again: a file takes the place of the one before
        at once, and each model that was published has a folder of its own.
        """
        plain_name(name)
        if name == MODEL:
            return self._local_model()
        copy = self._copies / name
        with self.scratch.folder_for("fetching") as fresh:
            self.bucket.download(name, fresh / "bytes")
            (fresh / "bytes").replace(copy)
        return copy

    @contextmanager
    def filling(self, name: str) -> Iterator[Path]:
        """See `ArtefactStore.filling`."""
        plain_name(name)
        with self.scratch.folder_for("writing") as folder:
            made = folder / name
            yield made
            if made.is_dir():
                self._folder(name).publish(made)
            else:
                self.bucket.upload(made, name)

    @contextmanager
    def working(self) -> Iterator[WorkingFolder]:
        """See `ArtefactStore.working`."""
        with self.scratch.folder_for("run") as folder:
            publisher = self._at_work.publisher(self._at_work.fetch(folder))
            yield _ObjectWorkingFolder(self.bucket, self.scratch, folder, publisher)

    def exists(self, name: str) -> bool:
        """See `ArtefactStore.exists`."""
        plain_name(name)
        if name in AT_WORK:
            paths = self._work().names
            return name in paths or bool(top_names(paths, name))
        if name == MODEL:
            return self._folder(name).manifest() is not None
        return self.bucket.exists(name)

    def modified(self, name: str) -> float:
        """See `ArtefactStore.modified`."""
        return self.bucket.modified(plain_name(name))

    def names(self, folder: str) -> list[str]:
        """See `ArtefactStore.names`."""
        plain_name(folder)
        if folder == CHECKPOINT:
            return top_names(self._work().names, folder)
        if folder == MODEL:
            model = self._folder(folder).manifest() or Manifest()
            return top_names([f"{folder}/{path}" for path in model.names], folder)
        names = top_names(self.bucket.keys(folder), folder)
        return [name for name in names if not _unfinished(name)]

    def delete(self, name: str) -> None:
        """See `ArtefactStore.delete`."""
        plain_name(name)
        if name in AT_WORK:
            self._at_work.drop(name)
        elif name == MODEL:
            self._folder(name).remove()
        else:
            self.bucket.remove([*self.bucket.keys(name), name])

    def clear(self) -> None:
        """See `ArtefactStore.clear`; copies on this machine go too."""
        shutil.rmtree(self._copies, ignore_errors=True)
        self.bucket.remove(self.bucket.keys())

    def within(self, folder: str) -> ObjectArtefacts:
        """See `ArtefactStore.within`."""
        return ObjectArtefacts(self.bucket.under(plain_name(folder)), self.scratch)

    def _local_model(self) -> Path:
        published = self._folder(MODEL)
        manifest = published.manifest()
        if manifest is None:
            raise FileNotFoundError(MODEL)
        copy = private_folder(self._copies / manifest.digest) / MODEL
        if not copy.exists():
            with self.scratch.folder_for("fetching") as fresh:
                published.fetch(private_folder(fresh / MODEL))
                try:
                    (fresh / MODEL).rename(copy)
                except OSError:
                    if not copy.exists():  # else somebody was first: it is the same model
                        raise
        return copy

    @property
    def _copies(self) -> Path:
        return self.scratch.copies(self.bucket.prefix.strip("/"))

    def _folder(self, name: str) -> PublishedFolder:
        return PublishedFolder(self.bucket, name)

    @property
    def _at_work(self) -> PublishedFolder:
        return self._folder("at_work")

    def _work(self) -> Manifest:
        """What was published of checkpoint and meter."""
        return self._at_work.manifest() or Manifest()


@dataclass(frozen=True)
class _ObjectWorkingFolder(ObjectArtefacts):
    """A `WorkingFolder`: a scratch folder whose checkpoint and meter are published.

    It knows what it published, also when the store does not answer.

    Attributes:
      publisher: of the two; every other one that wrote before is behind it.
    """

    folder: Path
    publisher: Publisher

    def publish(self) -> None:
        """See `WorkingFolder.publish`."""
        files = [self.folder / METER, *(self.folder / CHECKPOINT).rglob("*")]
        present = [file for file in files if file.is_file() and not _unfinished(file.name)]
        self.publisher.publish(self.folder, present)

    def delete(self, name: str) -> None:
        """See `ArtefactStore.delete`."""
        if name not in AT_WORK:
            super().delete(name)
            return
        shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / name).unlink(missing_ok=True)
        self.publish()

    def _work(self) -> Manifest:
        return self.publisher.manifest


def _unfinished(name: str) -> bool:
    return name.startswith(".") or Path(name).suffix in UNFINISHED
