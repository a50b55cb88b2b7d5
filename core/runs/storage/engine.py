"""The run store's engine: SQLite in WAL mode, or PostgreSQL by `FACSIMILE_DATABASE`."""

from __future__ import annotations

import os
import sqlite3
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Dialect, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from core.runs.errors import RunStoreError
from core.runs.extensions import cluster_module

BUSY_MS = 15_000  # how long a writer waits for another one before it gives up
# the address may hold a password, so no part of it is quoted
_ADDRESS = (
    "FACSIMILE_DATABASE is not the address of a database that Facsimile can use. Nothing was "
    "opened. Write it as postgresql://USER:PASSWORD@HOST/DATABASE, with special characters of the "
    "password written as %40 and the like."
)


def open_engine(url: str, *, patience: float = 0.0) -> Engine:
    """An engine on the database; a SQLite file is made with mode 0600 when absent.

    Errors never quote the values that a statement carried.

    Args:
      patience: seconds to wait for a server that cannot be reached; none for a SQLite file.

    Raises:
      RunStoreError: no such address, or the driver of PostgreSQL is absent.
    """
    parsed = _parsed(url)
    if parsed.get_backend_name() != "sqlite":
        postgres = cluster_module("postgres", setting="FACSIMILE_DATABASE")
        opened: Engine = postgres.open_postgres(parsed, patience=patience)
        return opened
    wait = {"timeout": BUSY_MS / 1000}  # from the first statement on, before `_prepare_sqlite`
    engine = create_engine(parsed, hide_parameters=True, connect_args=wait)
    if parsed.database:
        # made here, not by SQLite, so that the file (and its -wal and -shm) is private at once
        path = Path(parsed.database)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError:
            if not path.exists():
                raise  # else it may be looked at
        event.listen(engine, "do_connect", partial(_connect_or_read_only, path))
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "checkin", _invalidate_read_only)
    return engine


def is_shared(engine: Engine) -> bool:
    """Whether processes of other machines may use the database too."""
    return engine.dialect.name != "sqlite"


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        raise RunStoreError(_ADDRESS) from None  # what was raised may quote the address
    if backend not in ("sqlite", "postgresql", "postgres"):
        raise RunStoreError(_ADDRESS)
    return parsed


def _prepare_sqlite(connection: Any, _record: object) -> None:
    """Settings every SQLite connection needs; the wait comes first, the rest may need it."""
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    _switch_to_wal(cursor)
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _switch_to_wal(cursor: Any) -> None:
    """Write to a log of changes from now on; only the first connection of a file has to.

    Two connections that switch at once would wait for each other, so SQLite fails one of them
    at once, however long the busy timeout.
    """
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = (error.sqlite_errorcode & 0xFF) == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _connect_or_read_only(
    path: Path, dialect: Dialect, _record: object, arguments: Any, options: Any
) -> Any:
    """A connection; where the disk has no room even for SQLite's lock file, one for looking only.

    On a full or read-only disk a database that nobody has open cannot be opened as usual. Without
    a log of changes beside it (`-wal`) its file is whole and can be read as it is.
    """
    connection = dialect.connect(*arguments, **options)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").close()
        return connection
    except sqlite3.OperationalError as error:
        log = path.with_name(f"{path.name}-wal")
        busy = (error.sqlite_errorcode & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        if busy or (log.exists() and log.stat().st_size):
            raise
    connection.close()
    look = f"file:{quote(str(path))}?mode=ro&immutable=1"
    return sqlite3.connect(look, uri=True, check_same_thread=False, factory=_ReadOnlyConnection)


class _ReadOnlyConnection(sqlite3.Connection):
    """A connection that cannot see what others change; it serves once."""


def _invalidate_read_only(connection: Any, record: ConnectionPoolEntry) -> None:
    if isinstance(connection, _ReadOnlyConnection):
        record.invalidate()


def can_write(engine: Engine) -> bool:
    """Whether no other process is writing just now; does not wait for one that is."""
    if is_shared(engine):
        return True  # writers there lock rows, and only for an instant
    with engine.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.exec_driver_sql("PRAGMA busy_timeout = 0")
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            connection.exec_driver_sql("ROLLBACK")
        except OperationalError:
            return False
        finally:
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {BUSY_MS}")
    return True
