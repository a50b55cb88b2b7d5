"""ObjectStorage: tables, runs and secrets of a workspace under one prefix of a bucket."""

from __future__ import annotations

from dataclasses import dataclass

import fsspec

from core.cluster.objects.artefacts import ObjectArtefacts
from core.cluster.objects.bucket import Bucket
from core.runs.errors import StorageError
from core.runs.storage.scratch import Scratch
from core.runs.workspace import Workspace

FRESH = {"use_listings_cache": False}  # another machine may have written since the last look


@dataclass(frozen=True)
class ObjectStorage:
    """`core.runs.storage.storages.Storage` in an object store."""

    workspace: Workspace
    bucket: Bucket
    scratch: Scratch

    def table(self, table_id: str) -> ObjectArtefacts:
        """See `Storage.table`."""
        return ObjectArtefacts(self.bucket.under(f"tables/{table_id}"), self.scratch)

    def run(self, run_id: str) -> ObjectArtefacts:
        """See `Storage.run`."""
        return ObjectArtefacts(self.bucket.under(f"runs/{run_id}"), self.scratch)

    def read_secret(self, name: str) -> bytes | None:
        """See `Storage.read_secret`.

        One that the workspace had before its artefacts moved to the store goes on: a second key
        would show what the first one hides.
        """
        try:
            return self.bucket.read(f"secrets/{name}")
        except FileNotFoundError:
            here = self.workspace.home / name
            return self.create_secret(name, here.read_bytes()) if here.exists() else None

    def create_secret(self, name: str, content: bytes) -> bytes:
        """See `Storage.create_secret`."""
        key = f"secrets/{name}"
        self.bucket.create(key, content)
        return self.bucket.read(key)  # another machine may have been first; its bytes are used

    def write_secret(self, name: str, content: bytes) -> None:
        """See `Storage.write_secret`."""
        self.bucket.write(f"secrets/{name}", content)


def open_object_storage(workspace: Workspace, url: str, *, patience: float) -> ObjectStorage:
    """Storage in the storage that a URL names.

    Args:
      url: one of fsspec's, such as s3://bucket/prefix.
      patience: seconds to go on trying when the store does not answer, ≥ 0.

    Raises:
      StorageError: no driver for it is installed, or it names no bucket; nothing was read.
    """
    try:
        files, prefix = fsspec.core.url_to_fs(url, **FRESH)
    except ImportError:
        raise StorageError(
            "The driver of the storage that FACSIMILE_STORAGE names is not installed. Nothing was "
            "read. Run: pip install -r requirements-cluster.txt"
        ) from None
    except ValueError:
        prefix = ""
    if not prefix.strip("/"):
        raise StorageError(
            "FACSIMILE_STORAGE is not the address of an object storage. Nothing was read. Write "
            "it as s3://bucket/prefix, or leave it empty to keep everything on this machine."
        )
    bucket = Bucket(files, prefix.rstrip("/"), patience=patience)
    return ObjectStorage(workspace, bucket, Scratch(workspace.home / "scratch"))
