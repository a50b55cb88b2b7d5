"""Whatever is raised, and whatever the disk does, a page ends in one plain sentence."""

from __future__ import annotations

import errno
import logging
import shutil
import sqlite3
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from streamlit.testing.v1 import AppTest

from core.runs.accounts.account import set_limit
from core.runs.errors import storage_trouble
from core.runs.events import State
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.records import RunRecord
from core.runs.storage import engine as storage_engine
from core.runs.storage.store import RunStore
from core.services import runs
from pages.server import faults
from pages.shared import widgets as shared
from tests.pages.screen import press, whole, words
from tests.pages.test_app import PAGES, ROOT

pytestmark = pytest.mark.slow

SECRET = "a value that nobody may see"


class PanicException(BaseException):
    """As libraries written in Rust raise it: no Exception."""


def database_says(text: str) -> OperationalError:
    return OperationalError(SECRET, {}, sqlite3.OperationalError(text))


RAISED = {
    "locked": (
        OperationalError(SECRET, {}, sqlite3.OperationalError("database is locked")),
        "busy",
    ),
    "full database": (
        OperationalError(SECRET, {}, sqlite3.OperationalError("database or disk is full")),
        "is full",
    ),
    "full disk": (OSError(errno.ENOSPC, "No space left", f"/{SECRET}"), "is full"),
    "read-only": (OSError(errno.EROFS, "Read-only file system", f"/{SECRET}"), "read-only"),
    "memory": (MemoryError(SECRET), "memory"),
    "panic": (PanicException(SECRET), faults.UNFORESEEN),
    "any other": (KeyError(SECRET), faults.UNFORESEEN),
}


def broken(error: BaseException):
    def render(*_: object, **__: object) -> None:
        raise error

    return render


def one_sentence(at: AppTest, part: str) -> None:
    assert not at.exception
    (said,) = at.error
    assert part in said.value and SECRET not in words(at) and "\n" not in said.value


@pytest.mark.parametrize("kind", RAISED)
def test_whatever_a_page_raises_is_one_plain_sentence(store, monkeypatch, caplog, kind):
    error, part = RAISED[kind]
    monkeypatch.setattr("pages.tables.page.render", broken(error))
    at = AppTest.from_file(str(ROOT / "pages/server/front.py"), default_timeout=120).run()
    one_sentence(at, part)
    assert caplog.records[-1].levelno == logging.ERROR, "the console has the rest"


@pytest.mark.parametrize("kind", ["locked", "panic"])
def test_any_error_of_a_live_part_is_one_plain_sentence(store, start, show, monkeypatch, kind):
    error, part = RAISED[kind]
    run = start()
    monkeypatch.setattr("pages.training.page._show", broken(error))
    one_sentence(show("training", run=run.id), part)


def test_every_live_part_and_dialog_catches_its_own_faults():
    """They run by themselves, without app.py around them."""
    for path in (ROOT / "pages").rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for line, following in zip(lines, lines[1:], strict=False):
            if line.startswith(("@st.fragment", "@st.dialog")):
                assert following == "@shared.plain_errors()", f"{path.name}: {line}"


def test_no_box_of_the_server_s_own_tells_more():
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert config["client"]["showErrorDetails"] == "none"
    assert config["client"]["showErrorLinks"] == "false"  # else “Ask ChatGPT” on localhost


# -- nothing can be written ---------------------------------------------------------------------


@pytest.fixture
def dead(store: RunStore, start) -> RunRecord:
    """A run whose worker died while nobody looked."""
    run: RunRecord = start()
    assert store.claim(run.id, slots=1)
    process = subprocess.Popen(["sleep", "9"])
    assert store.adopt(run.id, process.pid)
    process.kill()
    process.wait()
    return run


@pytest.fixture
def locked(store: RunStore, dead: RunRecord, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another process is writing and does not end."""
    monkeypatch.setattr(storage_engine, "BUSY_MS", 300)
    monkeypatch.setattr(shared, "launcher", lambda: LocalLauncher(shared.store()))
    store.close()
    other = sqlite3.connect(store.workspace.home / "facsimile.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.close()


@pytest.mark.parametrize("name", PAGES)
def test_looking_works_while_the_database_is_locked(locked, dead, show, name):
    at = whole(show(name, run=dead.id, table=dead.table_id))
    assert not at.error or name == "training", [error.value for error in at.error]
    if name == "training":
        assert "ended unexpectedly" in words(at)


def test_buttons_say_that_the_database_is_locked(locked, dead, show):
    at = press(show("training", run=dead.id), "Give up …")
    one_more = whole(press(at, "End permanently"))
    assert any("database is busy" in error.value for error in one_more.error)


def test_the_store_looks_without_waiting_for_a_writer(store, dead):
    other = sqlite3.connect(store.workspace.home / "facsimile.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        found = store.run(dead.id)  # would wait for 15 s and fail
        assert found.state is State.LOST and found.resumable
        assert [run.state for run in store.runs()] == [State.LOST]
        with runs.open_store(store.workspace.home) as another:
            assert another.run(dead.id).message == found.message
        assert LocalLauncher(store).pump() == []
    finally:
        other.close()
    assert store.run(dead.id).state is State.LOST
    states = [e.data["state"] for e in store.journal.events(dead.id, kind="state")]
    assert states[-1] == "lost", "marked as soon as it can be"


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No write to the database finds room, from when a store is opened again."""

    def refuse(cursor, statement, parameters, context):
        if statement.split()[0] in ("INSERT", "UPDATE", "DELETE"):
            raise sqlite3.OperationalError("database or disk is full")

    make = storage_engine.create_engine

    def engine(*args, **more):
        made = make(*args, **more)
        event.listen(made, "do_execute", refuse)
        return made

    monkeypatch.setattr(storage_engine, "create_engine", engine)
    yield


@pytest.mark.parametrize("name", PAGES)
def test_looking_works_while_the_disk_is_full(dead, full, show, name):
    at = whole(show(name, run=dead.id, table=dead.table_id))
    assert not at.error or name == "training"
    if name == "training":
        assert "ended unexpectedly" in words(at)


def test_buttons_say_that_the_disk_is_full(dead, full, show):
    at = press(show("training", run=dead.id), "Give up …")
    at = whole(press(at, "End permanently"))
    assert any("workspace's disk is full" in error.value for error in at.error)


def test_a_home_that_cannot_be_made_is_one_plain_sentence(store, monkeypatch):
    store.close()
    (store.workspace.home / "facsimile.db").unlink()
    monkeypatch.setattr(storage_engine.os, "open", broken(RAISED["read-only"][0]))
    one_sentence(
        AppTest.from_file(str(ROOT / "pages/server/front.py"), default_timeout=120).run(),
        "read-only",
    )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 4 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a small file system needs the rights of root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(folder: Path) -> Path:
    rest = folder / "rest"
    with rest.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 512):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC
    return rest


def test_a_disk_that_is_really_full(small_disk, home_with_table):
    home = small_disk / "home"
    shutil.copytree(home_with_table, home)
    with runs.open_store(home) as store:
        (table,) = store.tables()
        store.ledger.register("others", 3.0, 1e-6, n=400)
        rest = fill(small_disk)
        assert store.table(table.id).n == 400 and store.attested(table.id)
        with pytest.raises(OSError, match="No space"):
            store.attest(table.id)
        assert store.attested(table.id), "Everything saved before is still there"
        with pytest.raises((OperationalError, OSError)) as full:  # the entry, or the head after it
            for _ in range(50):
                set_limit(store, table.id, epsilon=3.0)
                store.save_schema(table.id, table.schema)
        assert "full" in str(storage_trouble(full.value)) and store.ledger.verify()
        rest.unlink()
        assert set_limit(store, table.id, epsilon=3.0).limit == 3.0


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_workspace_that_nobody_has_open_can_be_looked_at(small_disk, home_with_table, how):
    """SQLite's own lock file finds no room then."""
    home = small_disk / "home"
    shutil.copytree(home_with_table, home)
    if how == "full":
        rest = fill(small_disk)
    else:
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with runs.open_store(home) as store:
        (table,) = store.tables()
        assert store.attested(table.id) and store.runs() == []
        with pytest.raises(OperationalError) as refused:
            store.save_schema(table.id, table.schema)
        assert "full or read-only" in str(storage_trouble(refused.value))
        with pytest.raises(OSError, match=r"No space|Read-only") as unsealed:
            set_limit(store, table.id, epsilon=3.0)
        assert how.removesuffix("-only") in str(storage_trouble(unsealed.value))
        if how == "full":
            rest.unlink()
        else:
            subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
        assert set_limit(store, table.id, epsilon=3.0).limit == 3.0
