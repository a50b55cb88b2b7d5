"""The workspace's secrets: whole, or refused; never half of one, whatever happens to the disk."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.records import TableRecord
from core.runs.storage.storages import LocalStorage
from core.runs.storage.store import RunStore
from core.runs.storage.workspace_secrets import WorkspaceLedgerFiles, people_key, shift_key
from core.runs.workspace import Workspace
from tests.runs.workers import HereLauncher, releases, start, toy_plan

pytestmark = pytest.mark.slow

SECRETS = {
    "shift.key": lambda home: shift_key(home, "p"),
    "people.key": people_key,
    "ledger.key": lambda home: WorkspaceLedgerFiles(LocalStorage(home)).make_key(),
}


@pytest.fixture
def home(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "home")


@pytest.mark.parametrize("left", [b"", b"x" * 31, b"x" * 33], ids=["empty", "half", "long"])
@pytest.mark.parametrize("name", SECRETS)
def test_anything_but_32_bytes_is_refused_and_left_as_it_is(home, name, left):
    (home.home / name).write_bytes(left)
    with pytest.raises(RunStoreError, match=f"{name} has {len(left)} bytes instead of 32"):
        SECRETS[name](home)
    assert (home.home / name).read_bytes() == left


class FullDisk:
    """A file that takes some bytes of what is written, and then there is no room."""

    def __init__(self, file, room: int) -> None:
        self._file, self._room = file, room

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data: bytes) -> None:
        self._file.write(data[: self._room])
        self._file.flush()
        raise OSError(errno.ENOSPC, "No space left on device")


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["write nothing", "write half", "fsync", "link"])
@pytest.mark.parametrize("name", SECRETS)
def test_a_full_disk_leaves_no_secret_and_the_next_one_is_whole(home, name, step, monkeypatch):
    with monkeypatch.context() as broken:
        if step.startswith("write"):
            opened, room = os.fdopen, 16 if step == "write half" else 0
            broken.setattr(os, "fdopen", lambda *a, **k: FullDisk(opened(*a, **k), room))
        else:
            broken.setattr(os, step, full)
        with pytest.raises(OSError, match="No space"):
            SECRETS[name](home)
    assert list(home.home.iterdir()) == [], "not even a temporary file"
    assert len(SECRETS[name](home)) == 32 == len((home.home / name).read_bytes())


def test_the_bytes_are_on_disk_before_they_have_their_name(home, monkeypatch):
    """A power cut between the two must not leave a name with nothing behind it."""
    seen, fsync, link = [], os.fsync, os.link
    monkeypatch.setattr(os, "fsync", lambda handle: (seen.append("fsync"), fsync(handle))[1])
    monkeypatch.setattr(os, "link", lambda *paths: (seen.append("link"), link(*paths))[1])
    people_key(home)
    assert seen == ["fsync", "link", "fsync"]  # the bytes, the name, the folder that holds it


def test_processes_that_make_it_at_once_end_with_one(home):
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: people_key(home), range(32)))
    assert len(keys) == 1


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["shift.key", "ledger.key"])
def test_a_run_under_a_broken_secret_spends_nothing(
    store: RunStore, table: TableRecord, name: str
) -> None:
    (store.workspace.home / name).write_bytes(b"")
    run = start(store, HereLauncher(store), toy_plan(table))
    assert run.state is State.FAILED and run.debit is None
    assert run.error is not None and f"{name} has 0 bytes" in run.error
    assert releases(store, table) == 0


@pytest.mark.usefixtures("here")
def test_a_run_over_a_broken_chain_reads_and_spends_nothing(
    store: RunStore, table: TableRecord
) -> None:
    first = start(store, HereLauncher(store), toy_plan(table))
    assert first.state is State.DONE
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE ledger SET account_id = 'x' WHERE seq = 2")
    run = start(store, HereLauncher(store), toy_plan(table))
    assert run.state is State.FAILED and run.debit is None
    assert run.error is not None and "Nothing was read or spent" in run.error
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM ledger").scalar_one() == 2
