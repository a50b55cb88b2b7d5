"""PublishedFolder: a folder kept in an object store, seen as it was or as it is, never half.

Its files are put first, under keys that were never used before; then one small object, the
manifest, which says which files there are and where. A reader takes the newest manifest. Small
files stand in it themselves, so that writing one is a single request.

A manifest's name begins with its writer's number, and later writers have larger ones. A process
that slept while another one took its run over therefore replaces nothing: what it still writes is
older than what is read.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from core.cluster.objects.bucket import Bucket
from core.runs.errors import StorageError
from core.runs.workspace import private_folder
from core.writing.whole_files import replacing

SMALL = 2**14  # bytes; a file of so many stands in the manifest
TRIES = 5  # a reader whose parts were replaced while it read looks again


class Manifest(BaseModel):
    """What a folder holds.

    Attributes:
      parts: key of each large file's bytes, by path in the folder.
      texts: each small file's bytes in hexadecimal, likewise.
    """

    parts: dict[str, str] = Field(default_factory=dict)
    texts: dict[str, str] = Field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Paths of all files in the folder."""
        return sorted([*self.parts, *self.texts])

    @property
    def digest(self) -> str:
        """16 hex digits; a folder with other files, or published again, has another one."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    def without(self, name: str) -> Manifest:
        """The same but for a file of that name, or a folder with all it holds."""

        def left(files: dict[str, str]) -> dict[str, str]:
            return {p: v for p, v in files.items() if p != name and not p.startswith(f"{name}/")}

        return Manifest(parts=left(self.parts), texts=left(self.texts))


class PublishedFolder:
    """One folder in an object store."""

    def __init__(self, bucket: Bucket, name: str) -> None:
        self._bucket, self._name = bucket, name

    @property
    def _manifests(self) -> str:
        return f"_folders/{self._name}"

    @property
    def _parts(self) -> str:
        return f"_parts/{self._name}"

    def manifest(self) -> Manifest | None:
        """The newest manifest; None where nothing was published."""
        for _ in range(TRIES):
            keys = self._bucket.keys(self._manifests)
            if not keys:
                return None
            try:
                return Manifest.model_validate_json(self._bucket.read(keys[-1]))
            except FileNotFoundError:
                continue  # replaced since by a newer one
        raise StorageError(_CHANGING)

    def fetch(self, folder: Path) -> Manifest | None:
        """Copy the published files into an empty folder of this machine; None without any."""
        for _ in range(TRIES):
            manifest = self.manifest()
            if manifest is None:
                return None
            try:
                for path, key in manifest.parts.items():
                    self._bucket.download(key, _inside(folder, path))
                for path, text in manifest.texts.items():
                    with replacing(_inside(folder, path)) as file:
                        file.write(bytes.fromhex(text))
            except FileNotFoundError:
                continue
            return manifest
        raise StorageError(_CHANGING)

    def publisher(self, fetched: Manifest | None = None) -> Publisher:
        """Whoever publishes from now on, in place of earlier ones; it may have fetched before."""
        publisher = Publisher(self._bucket, self._manifests, self._parts)
        publisher.manifest = fetched or Manifest()
        return publisher

    def publish(self, folder: Path) -> None:
        """Publish all files of a folder of this machine."""
        self.publisher().publish(folder, [path for path in folder.rglob("*") if path.is_file()])

    def drop(self, name: str) -> None:
        """Remove what has that name in the folder, a file or a folder with all it holds."""
        manifest = self.manifest() or Manifest()
        rest = manifest.without(name)
        if rest == manifest:
            return
        if not rest.names:
            self.remove()
            return
        earlier = self._bucket.keys(self._manifests)
        newest = rest.model_dump_json().encode()
        self._bucket.write(f"{self._manifests}/{_number(earlier):020d}", newest)
        gone = set(self._bucket.keys(self._parts)) - set(rest.parts.values())
        self._bucket.remove([*earlier, *gone])

    def remove(self) -> None:
        """Remove the folder: first its manifests, so that nobody sees half of it."""
        for folder in (self._manifests, self._parts):
            self._bucket.remove(self._bucket.keys(folder))


class Publisher:
    """Publishes one folder again and again; files that did not change since are not sent again.

    Attributes:
      manifest: the newest one that this process knows of.
    """

    def __init__(self, bucket: Bucket, manifests: str, parts: str) -> None:
        self._bucket, self._parts = bucket, parts
        earlier = bucket.keys(manifests)
        self._key = f"{manifests}/{_number(earlier):020d}"
        # what earlier writers left goes when this one has published; nothing of it is used again
        self._old = {*earlier, *bucket.keys(parts)}
        self._sent: dict[str, tuple[object, str]] = {}
        self.manifest = Manifest()

    def publish(self, folder: Path, files: Iterable[Path]) -> None:
        """Make these files of a folder all that there is to be read, at once."""
        manifest = Manifest()
        sent: dict[str, tuple[object, str]] = {}
        for file in files:
            path, seen = file.relative_to(folder).as_posix(), file.stat()
            if seen.st_size <= SMALL:
                manifest.texts[path] = file.read_bytes().hex()
                continue
            state = (seen.st_ino, seen.st_mtime_ns, seen.st_size)
            before = self._sent.get(path)
            if before is not None and before[0] == state:
                key = before[1]
            else:
                key = f"{self._parts}/{secrets.token_hex(10)}"
                self._old.add(key)  # until a manifest names it
                self._bucket.upload(file, key)
            manifest.parts[path], sent[path] = key, (state, key)
        if manifest == self.manifest:
            return
        self._bucket.write(self._key, manifest.model_dump_json().encode())
        self.manifest = manifest
        self._old |= {key for _, key in self._sent.values()}
        self._old -= {key for _, key in sent.values()}
        self._sent = sent
        self._tidy()

    def _tidy(self) -> None:
        """Remove what no manifest names; where that fails, the next one tries again."""
        try:
            self._bucket.remove(self._old)
        except StorageError:
            return
        self._old = set()


_CHANGING = (
    "Files in the workspace's object storage kept changing while they were read. Try again in a "
    "minute."
)


def _number(earlier: Sequence[str]) -> int:
    """A manifest's number, above those that are there and, by the clock, those that were."""
    newest = int(earlier[-1].rpartition("/")[2]) if earlier else 0
    return max(newest + 1, time.time_ns())


def _inside(folder: Path, path: str) -> Path:
    """Where a published file lies in a folder of this machine, and nowhere else."""
    parts = path.split("/")
    if not path or path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise StorageError(
            "A manifest in the workspace's object storage names a file outside its folder."
        )
    file = folder.joinpath(*parts)
    private_folder(file.parent)
    return file


def top_names(paths: Iterable[str], folder: str) -> list[str]:
    """What lies directly in a folder, by the paths of all files.

    >>> top_names(["checkpoint/a", "checkpoint/b/c", "meter.json"], "checkpoint")
    ['a', 'b']
    """
    start = f"{folder}/"
    inside = (path.removeprefix(start) for path in paths if path.startswith(start))
    return sorted({path.split("/")[0] for path in inside})
