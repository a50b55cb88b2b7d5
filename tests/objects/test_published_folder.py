"""Folders in an object store: whole or not there, and never those of a writer that was replaced."""

from __future__ import annotations

import uuid
from pathlib import Path

import fsspec
import pytest

from core.cluster.objects.bucket import Bucket
from core.cluster.objects.published_folder import SMALL, Manifest, PublishedFolder, Publisher
from core.runs.errors import StorageError

LARGE = b"w" * (SMALL + 1)


@pytest.fixture
def bucket() -> Bucket:
    return Bucket(fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def publish(publisher: Publisher, folder: Path, **contents: bytes) -> None:
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    publisher.publish(folder, sorted(folder.iterdir()))


def fetched(bucket: Bucket, into: Path) -> dict[str, bytes]:
    into.mkdir()
    PublishedFolder(bucket, "f").fetch(into)
    return {path.name: path.read_bytes() for path in into.iterdir()}


class Dies(Bucket):
    """A bucket whose process dies at the first object whose key begins so."""

    def dying(self, key: str) -> None:
        if key.startswith(self.at):  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    def write(self, key: str, content: bytes) -> None:
        self.dying(key)
        super().write(key, content)

    def upload(self, file: Path, key: str) -> None:
        self.dying(key)
        super().upload(file, key)


@pytest.mark.parametrize("at", ["_parts/f/", "_folders/f/"])
def test_half_a_folder_is_never_fetched(bucket, folder, tmp_path, at):
    publish(PublishedFolder(bucket, "f").publisher(), folder, a=LARGE, b=b"1")
    dying = Dies(bucket.files, bucket.prefix)
    object.__setattr__(dying, "at", at)
    with pytest.raises(KeyboardInterrupt):
        publish(PublishedFolder(dying, "f").publisher(), folder, a=LARGE + b"2", b=b"2")
    assert fetched(bucket, tmp_path / "seen") == {"a": LARGE, "b": b"1"}
    publish(PublishedFolder(bucket, "f").publisher(), folder, a=LARGE + b"3", b=b"3")
    assert fetched(bucket, tmp_path / "later") == {"a": LARGE + b"3", "b": b"3"}
    assert len(bucket.keys()) == 2, "what the dead one left is gone"


def test_a_pointer_that_came_first_would_be_fetched_half(bucket, folder, tmp_path):
    """The broken twin of the test above: the manifest before its parts."""
    manifest = Manifest(parts={"a": "_parts/f/never"}, texts={"b": b"2".hex()})
    bucket.write("_folders/f/00000000000000000001", manifest.model_dump_json().encode())
    with pytest.raises(StorageError, match="kept changing"):
        fetched(bucket, tmp_path / "seen")


def test_a_writer_that_was_replaced_replaces_nothing(bucket, folder, tmp_path):
    slept = PublishedFolder(bucket, "f").publisher()
    publish(slept, folder, a=LARGE, meter=b"1")
    later = PublishedFolder(bucket, "f").publisher()
    publish(later, folder, a=LARGE + b"later", meter=b"7")
    publish(slept, folder, a=LARGE + b"slept", meter=b"2")
    assert fetched(bucket, tmp_path / "1") == {"a": LARGE + b"later", "meter": b"7"}
    publish(later, folder, a=LARGE + b"later", meter=b"8")
    assert fetched(bucket, tmp_path / "2") == {"a": LARGE + b"later", "meter": b"8"}


def test_a_writer_that_slept_through_a_deletion_stays_older(bucket, folder, tmp_path):
    slept = PublishedFolder(bucket, "f").publisher()
    publish(slept, folder, meter=b"1")
    PublishedFolder(bucket, "f").remove()
    publish(PublishedFolder(bucket, "f").publisher(), folder, meter=b"7")
    publish(slept, folder, meter=b"2")
    assert fetched(bucket, tmp_path / "1") == {"meter": b"7"}


def test_what_did_not_change_is_not_sent_again(bucket, folder, monkeypatch):
    sent = []
    upload, write = Bucket.upload, Bucket.write
    monkeypatch.setattr(Bucket, "upload", lambda *a: (sent.append("part"), upload(*a))[1])
    monkeypatch.setattr(Bucket, "write", lambda *a: (sent.append("manifest"), write(*a))[1])
    publisher = PublishedFolder(bucket, "f").publisher()
    publish(publisher, folder, a=LARGE, meter=b"1")
    assert sent == ["part", "manifest"]
    publisher.publish(folder, sorted(folder.iterdir()))
    assert sent == ["part", "manifest"]
    (folder / "meter").write_bytes(b"2")
    publisher.publish(folder, sorted(folder.iterdir()))
    assert sent == ["part", "manifest", "manifest"]
    assert len(bucket.keys()) == 2


@pytest.mark.parametrize("path", ["../evil", "/evil", "a/../../evil", "a//b", "", "."])
def test_a_manifest_leads_nowhere_else(bucket, tmp_path, path):
    manifest = Manifest(texts={path: b"1".hex()})
    bucket.write("_folders/f/00000000000000000001", manifest.model_dump_json().encode())
    with pytest.raises(StorageError, match="outside its folder"):
        fetched(bucket, tmp_path / "seen")
    assert not (tmp_path / "evil").exists()


def test_dropping_leaves_the_rest(bucket, folder, tmp_path):
    publish(PublishedFolder(bucket, "f").publisher(), folder, a=LARGE, b=LARGE + b"b", meter=b"1")
    PublishedFolder(bucket, "f").drop("a")
    assert fetched(bucket, tmp_path / "1") == {"b": LARGE + b"b", "meter": b"1"}
    assert len(bucket.keys()) == 2
    PublishedFolder(bucket, "f").drop("nothing")
    PublishedFolder(bucket, "f").drop("b")
    PublishedFolder(bucket, "f").drop("meter")
    assert bucket.keys() == []
