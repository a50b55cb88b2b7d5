"""Where a workspace keeps things: this machine unless told otherwise, and secrets for all."""

from __future__ import annotations

import importlib
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import fsspec
import pytest
from sqlalchemy import create_engine

from core.cluster.objects.bucket import AWAY, REFUSED, Bucket
from core.privacy.ledger.ledger import Ledger
from core.runs.errors import RunStoreError, StorageError
from core.runs.storage import storages
from core.runs.storage.artefacts import METER, LocalArtefacts
from core.runs.storage.storages import forget_logs, open_storage, random_secret
from core.runs.storage.store import RunStore
from core.runs.storage.workspace_secrets import WorkspaceLedgerFiles, people_key, shift_key
from core.runs.workspace import Workspace

SECRET_URL = "s3://someone:hunter2@bucket/prefix"


@pytest.mark.parametrize("named", [None, ""])
def test_everything_lies_on_this_machine_by_default(tmp_path, monkeypatch, named):
    monkeypatch.delenv("FACSIMILE_STORAGE", raising=False)
    if named is not None:
        monkeypatch.setenv("FACSIMILE_STORAGE", named)
    with RunStore(Workspace(tmp_path / "home")) as store:
        run = store.artefacts("abcdef")
        assert isinstance(run, LocalArtefacts) and run.folder == store.workspace.runs_dir / "abcdef"
        with run.working() as working_folder:
            assert working_folder.folder == run.folder, "the fit works where artefacts lie: no copy"
        assert run.local("model") == run.folder / "model"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (SECRET_URL, "contains a password"),
        ("s3:///", "is not the address of an object storage"),
        ("nonsense://bucket/prefix", "is not the address of an object storage"),
        ("memory://", "is not the address of an object storage"),
    ],
)
def test_a_storage_that_cannot_be_used_is_one_plain_line(tmp_path, monkeypatch, url, words):
    if url.startswith("s3"):
        pytest.importorskip("s3fs", reason="the driver comes with requirements-cluster.txt")
    monkeypatch.setenv("FACSIMILE_STORAGE", url)
    with pytest.raises(StorageError, match=words) as refused:
        open_storage(Workspace(tmp_path / "home"))
    assert "hunter2" not in str(refused.value) and "someone" not in str(refused.value)


def test_a_driver_that_is_absent_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("FACSIMILE_STORAGE", "s3://bucket/prefix")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    known = importlib.import_module("fsspec.registry")
    monkeypatch.delitem(known._registry, "s3", raising=False)
    with pytest.raises(StorageError, match="pip install -r requirements-cluster.txt"):
        open_storage(Workspace(tmp_path / "home"))


def machines(tmp_path, count: int) -> list[Workspace]:
    return [Workspace(tmp_path / f"machine-{number}") for number in range(count)]


def test_all_machines_have_the_same_secrets(tmp_path, storage):
    homes = machines(tmp_path, 8)
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(people_key, homes * 4))
    assert len(keys) == 1 and len(*keys) == 32
    assert len({shift_key(home, "p") for home in homes}) == 1
    assert not list(tmp_path.rglob("*.key")), "a secret lies in the store alone"


def test_a_secret_that_there_was_goes_on(tmp_path, storage):
    """A second key would show what the first one hides."""
    first, second = machines(tmp_path, 2)
    (first.home / "shift.key").write_bytes(b"k" * 32)
    assert shift_key(first, "p") == shift_key(second, "p")
    assert random_secret(open_storage(second), "shift.key", 32) == b"k" * 32


def test_of_two_machines_at_once_one_settles_a_secret_for_all(tmp_path, storage):
    homes = machines(tmp_path, 4)
    with ThreadPoolExecutor(4) as pool:
        kept = list(
            pool.map(
                lambda i: open_storage(homes[i]).create_secret("shifts/a.json", b"%d" % i), range(4)
            )
        )
    assert len(set(kept)) == 1
    assert {open_storage(home).read_secret("shifts/a.json") for home in homes} == set(kept)
    assert open_storage(homes[0]).read_secret("shifts/b.json") is None


def test_all_machines_seal_one_ledger(tmp_path, storage):
    homes, engine = machines(tmp_path, 2), create_engine(f"sqlite:///{tmp_path / 'ledger.db'}")
    first, second = (Ledger(engine, WorkspaceLedgerFiles(open_storage(home))) for home in homes)
    first.register("a", 3.0, 1e-5, n=100)
    second.register("b", 3.0, 1e-5, n=100)
    assert first.verify() and second.verify().entries == 2
    assert not list(tmp_path.rglob("ledger.[hk]*")), "key and head lie in the store alone"
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM ledger WHERE seq = 2")
    assert "missing at the end" in first.verify().problem
    engine.dispose()


def test_a_ledger_that_moves_to_a_store_goes_on(tmp_path, storage, monkeypatch):
    (home,) = machines(tmp_path, 1)
    engine = create_engine(f"sqlite:///{tmp_path / 'ledger.db'}")
    with monkeypatch.context() as before:
        before.delenv("FACSIMILE_STORAGE")
        Ledger(engine, WorkspaceLedgerFiles(open_storage(home))).register("a", 3.0, 1e-5, n=100)
    moved = Ledger(engine, WorkspaceLedgerFiles(open_storage(home)))
    assert moved.verify()
    moved.register("b", 3.0, 1e-5, n=100)
    assert moved.verify().entries == 2
    engine.dispose()


def test_a_secret_that_is_not_whole_is_refused(tmp_path, storage):
    (home,) = machines(tmp_path, 1)
    (home.home / "people.key").write_bytes(b"half")
    with pytest.raises(RunStoreError, match="has 4 bytes instead of 32"):
        people_key(home)


def test_logs_of_runs_that_are_gone_are_removed(tmp_path, storage, monkeypatch):
    (home,) = machines(tmp_path, 1)
    for run in ("kept01", "gone01"):
        (home.runs_dir / run).mkdir()
        (home.runs_dir / run / "worker.log").write_text("a traceback may quote a value")
    forget_logs(home, ["kept01"])
    assert len(list(home.runs_dir.iterdir())) == 2, "too young: it may be a new run's"
    now = time.time()
    monkeypatch.setattr(storages.time, "time", lambda: now + 2 * storages.FRESH_SECONDS)
    forget_logs(home, ["kept01"])
    assert [folder.name for folder in home.runs_dir.iterdir()] == ["kept01"]
    monkeypatch.delenv("FACSIMILE_STORAGE")
    forget_logs(home, [])
    assert [folder.name for folder in home.runs_dir.iterdir()] == ["kept01"]


class Failing:
    """A file system that raises what it is given, so often, and then answers."""

    def __init__(self, error: Exception, times: int) -> None:
        self.error, self.left = error, times

    def cat_file(self, path: str) -> bytes:
        if self.left:
            self.left -= 1
            raise self.error
        return b"answer"


def failing(error: Exception, times: int, patience: float) -> tuple[Bucket, list[float]]:
    waits: list[float] = []
    return Bucket(Failing(error, times), "/b", patience, waits.append), waits


class EndpointConnectionError(Exception):
    """As a driver has it, with what people must not read."""


class NoCredentialsError(Exception):
    """Likewise."""


def test_a_silent_store_is_retried_ever_more_rarely():
    bucket, waits = failing(EndpointConnectionError("http://10.0.0.1/key"), 7, patience=1000.0)
    assert bucket.read("a") == b"answer"
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0]


@pytest.mark.parametrize("error", [EndpointConnectionError("http://10.0.0.1"), OSError(5, "key")])
def test_words_name_no_address_and_no_key(error):
    bucket, waits = failing(error, 1, patience=0.0)
    with pytest.raises(StorageError) as away:
        bucket.read("a")
    assert str(away.value) == AWAY and waits == []


@pytest.mark.parametrize("error", [PermissionError("denied"), NoCredentialsError("none")])
def test_a_refusal_is_not_asked_again(error):
    bucket, waits = failing(error, 1, patience=1000.0)
    with pytest.raises(StorageError) as refused:
        bucket.read("a")
    assert str(refused.value) == REFUSED and waits == []


@pytest.mark.parametrize("error", [TypeError("ours"), OSError(28, "No space left on device")])
def test_what_is_no_fault_of_the_store_is_not_called_one(error):
    bucket, waits = failing(error, 1, patience=1000.0)
    with pytest.raises(type(error)):
        bucket.read("a")
    assert waits == []


def test_a_large_object_is_read_in_parts():
    files = fsspec.filesystem("memory")
    bucket = Bucket(files, f"/{uuid.uuid4().hex}")
    content = bytes(range(256)) * 100_000  # three times what is asked for at once
    bucket.write("a", content)
    with bucket.open("a") as stream:
        assert stream.read(10) == content[:10]
        stream.seek(-10, 2)
        assert stream.read() == content[-10:] and stream.read() == b""
        stream.seek(9_000_000)
        assert stream.read(9_000_000) == content[9_000_000:18_000_000]
        stream.seek(0)
        assert stream.read() == content


KMS = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "key-1"}


def test_objects_are_encrypted_as_the_driver_is_told(tmp_path, bucket, s3_server, monkeypatch):
    monkeypatch.setitem(fsspec.config.conf, "s3", {"s3_additional_kwargs": dict(KMS)})
    home = Workspace(tmp_path / "home")
    people_key(home)  # put where there was none
    run = open_storage(home).run("abcdef")
    with run.working() as working_folder:
        (working_folder.folder / METER).write_text("{}")
        working_folder.publish()
    with run.replacing("large") as file:  # in several parts
        file.write(bytes(120_000_000))
    keys = s3_server.keys(bucket)
    assert len(keys) == 3
    heads = [s3_server.client.head_object(Bucket=bucket, Key=key) for key in keys]
    for head in heads:
        assert {name: head.get(name) for name in KMS} == KMS
    assert max(head["ContentLength"] for head in heads) == 120_000_000


def test_an_upload_that_fails_leaves_no_part(tmp_path, bucket, s3_server, monkeypatch):
    run = open_storage(Workspace(tmp_path / "home")).run("abcdef")
    s3fs = pytest.importorskip("s3fs")
    part, sent = s3fs.S3FileSystem._call_s3, []

    async def breaks(self, method, *args, **kwargs):
        if method == "upload_part":
            sent.append(method)
            if len(sent) > 1:
                raise OSError(5, "the line is cut")
        return await part(self, method, *args, **kwargs)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", breaks)
    with pytest.raises(StorageError), run.replacing("large") as file:
        file.write(bytes(120_000_000))
    assert len(sent) > 1 and s3_server.keys(bucket) == []
