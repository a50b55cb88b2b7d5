"""The run store's database tables and its engine: SQLite in WAL mode, or PostgreSQL by URL.

Everything below the engine's set-up is plain SQLAlchemy, so that both databases take it.
"""

from __future__ import annotations

import os
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    JSON,
    Dialect,
    Engine,
    Float,
    ForeignKey,
    Index,
    LargeBinary,
    Text,
    create_engine,
    event,
    insert,
    inspect,
    literal,
    select,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.schema import CreateIndex, CreateTable

__all__ = [
    "UNRECORDED",
    "AccessRow",
    "EventRow",
    "InsideViewRow",
    "NoteRow",
    "PurchaseRow",
    "RunRow",
    "SketchRow",
    "TableRow",
    "can_write",
    "create_tables",
    "open_engine",
]

BUSY_MS = 15_000  # how long a writer waits for another one before it gives up
UNRECORDED = ""  # author of a look that may have been taken before looks were recorded


class Base(DeclarativeBase):
    """Common metadata of the run store."""


class TableRow(Base):
    """An imported table; its rows lie in a Parquet file beside it."""

    __tablename__ = "tables"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    n: Mapped[int]
    source: Mapped[str]
    created: Mapped[float] = mapped_column(Float(53))
    people: Mapped[str]
    schema: Mapped[str] = mapped_column(Text)
    profile: Mapped[dict[str, Any]] = mapped_column(JSON)


class AccessRow(Base):
    """Who may see a table where people sign in; older tables have none."""

    __tablename__ = "access"

    table_id: Mapped[str] = mapped_column(
        ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True
    )
    owner: Mapped[str]
    shared: Mapped[list[str]] = mapped_column(JSON)
    stewards: Mapped[bool]


class RunRow(Base):
    """One run: what was asked, where it is, which process holds it, what it executed.

    `slot` is unique among running runs: taking one is how two pumps agree on who starts what.
    """

    __tablename__ = "runs"

    id: Mapped[str] = mapped_column(primary_key=True)
    table_id: Mapped[str] = mapped_column(ForeignKey("tables.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    plan: Mapped[str] = mapped_column(Text)
    schema: Mapped[str] = mapped_column(Text)
    rows: Mapped[int]
    seed: Mapped[int | None]
    device: Mapped[str]
    confirmation: Mapped[str] = mapped_column(default="")
    shift_words: Mapped[str] = mapped_column(default="", server_default="")
    state: Mapped[str] = mapped_column(index=True)
    wish: Mapped[str]
    message: Mapped[str] = mapped_column(Text, default="")
    error: Mapped[str | None] = mapped_column(Text)
    created: Mapped[float] = mapped_column(Float(53))
    queued: Mapped[float] = mapped_column(Float(53))
    started: Mapped[float | None] = mapped_column(Float(53))
    ended: Mapped[float | None] = mapped_column(Float(53))
    slot: Mapped[int | None] = mapped_column(unique=True)
    claimed: Mapped[float | None] = mapped_column(Float(53))
    host: Mapped[str | None]
    pid: Mapped[int | None]
    pid_started: Mapped[float | None] = mapped_column(Float(53))
    heartbeat: Mapped[float | None] = mapped_column(Float(53))
    attempt: Mapped[int] = mapped_column(default=1)
    debit: Mapped[str | None]
    guarantee: Mapped[str | None] = mapped_column(Text)
    seconds: Mapped[dict[str, float]] = mapped_column(JSON)
    peak_memory_mb: Mapped[float | None]


class SketchRow(Base):
    """What is kept of a table to recognise its people; it outlives the table.

    `table_id` is no foreign key: what was released about the people stays in the ledger when the
    table is deleted, and so does what they are recognised by.
    """

    __tablename__ = "sketches"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    table_id: Mapped[str | None] = mapped_column(index=True)
    people: Mapped[str] = mapped_column(index=True)
    title: Mapped[str]
    created: Mapped[float] = mapped_column(Float(53))
    exact: Mapped[str]
    body: Mapped[bytes] = mapped_column(LargeBinary)
    alike: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    words: Mapped[str] = mapped_column(Text, default="")


class PurchaseRow(Base):
    """Bounds and lists that an account bought; rows are added and never changed.

    No foreign key: what was bought is known for good, also when the table is deleted.
    """

    __tablename__ = "purchases"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    people: Mapped[str] = mapped_column(index=True)
    entry: Mapped[str] = mapped_column(unique=True)
    created: Mapped[float] = mapped_column(Float(53))
    body: Mapped[str] = mapped_column(Text)


class EventRow(Base):
    """One event; (run, seq) is the key, so events are append-only and in order."""

    __tablename__ = "events"
    __table_args__ = (Index("events_by_kind", "run_id", "kind", "seq"),)

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[float] = mapped_column(Float(53))
    kind: Mapped[str]
    data: Mapped[dict[str, Any]] = mapped_column(JSON)


class NoteRow(Base):
    """One thing a person said about a run or a table; rows are added and never changed."""

    __tablename__ = "notes"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    table_id: Mapped[str] = mapped_column(ForeignKey("tables.id", ondelete="CASCADE"), index=True)
    run_id: Mapped[str | None] = mapped_column(
        ForeignKey("runs.id", ondelete="CASCADE"), index=True
    )
    time: Mapped[float] = mapped_column(Float(53))
    author: Mapped[str]
    kind: Mapped[str]
    view: Mapped[str]
    about: Mapped[str]
    text: Mapped[str] = mapped_column(Text)


class InsideViewRow(Base):
    """Who had the inside view of a run open, and when first; rows are added and never changed.

    No foreign keys: a look is not undone by deleting the run or the table.
    """

    __tablename__ = "looks"

    run_id: Mapped[str] = mapped_column(primary_key=True)
    author: Mapped[str] = mapped_column(primary_key=True)
    table_id: Mapped[str] = mapped_column(index=True)
    people: Mapped[str] = mapped_column(index=True)
    time: Mapped[float] = mapped_column(Float(53))


def _prepare_sqlite(connection: Any, _record: object) -> None:
    """Settings every SQLite connection needs; the wait comes first, the rest may need it."""
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def open_engine(url: str) -> Engine:
    """An engine on the database; a SQLite file is made with mode 0600 when absent."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    engine = create_engine(url)
    if parsed.database:
        # made here, not by SQLite, so that the file (and its -wal and -shm) is private at once
        path = Path(parsed.database)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError:
            if not path.exists():
                raise  # else it may be looked at
        event.listen(engine, "do_connect", partial(_connect_or_look, path))
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "checkin", _forget_look)
    return engine


def _connect_or_look(
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
    return sqlite3.connect(look, uri=True, check_same_thread=False, factory=_Look)


class _Look(sqlite3.Connection):
    """A connection that cannot see what others change; it serves once."""


def _forget_look(connection: Any, record: ConnectionPoolEntry) -> None:
    if isinstance(connection, _Look):
        record.invalidate()


def can_write(engine: Engine) -> bool:
    """Whether no other process is writing just now; does not wait for one that is."""
    if engine.dialect.name != "sqlite":
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


def create_tables(engine: Engine) -> None:
    """Make what is absent; safe when several processes do it at once."""
    no_views_yet = not inspect(engine).has_table(InsideViewRow.__tablename__)
    with engine.begin() as connection:
        for table in Base.metadata.sorted_tables:
            connection.execute(CreateTable(table, if_not_exists=True))
            for index in table.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))
    _add_columns(engine)
    if no_views_yet:
        _count_older_runs(engine)


def _add_columns(engine: Engine) -> None:
    """Columns that workspaces of older versions lack."""
    wanted = RunRow.__table__.c.shift_words
    if _has(engine, RunRow.__tablename__, wanted.name):
        return
    kind, default = wanted.type.compile(engine.dialect), "''"
    statement = f"ALTER TABLE {RunRow.__tablename__} ADD COLUMN {wanted.name} {kind}"
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"{statement} NOT NULL DEFAULT {default}")
    except DBAPIError:
        if not _has(engine, RunRow.__tablename__, wanted.name):  # else another process was first
            raise


def _has(engine: Engine, table: str, column: str) -> bool:
    return column in {one["name"] for one in inspect(engine).get_columns(table)}


def _count_older_runs(engine: Engine) -> None:
    """Count runs that ended before looks were recorded as looked at: nobody can say they were not.

    Once for a workspace, when the table of looks is made.
    """
    columns = ("run_id", "author", "table_id", "people", "time")
    ended = (
        select(
            RunRow.id,
            literal(UNRECORDED),
            RunRow.table_id,
            TableRow.people,
            RunRow.created,
        )
        .join(TableRow, TableRow.id == RunRow.table_id)
        .where(RunRow.guarantee.is_not(None))
    )
    try:
        with engine.begin() as connection:
            connection.execute(insert(InsideViewRow).from_select(columns, ended))
    except IntegrityError:  # another process opened the workspace at the same moment
        return
