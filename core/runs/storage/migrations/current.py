"""bring_up_to_date: create or migrate the database.

The database holds its own revision, in Alembic's table, so that opening it usually takes one query.
A new database is created from the models. An earlier revision is migrated by the steps in
`versions`, all of them in one transaction that locks out other processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    insert,
    inspect,
    select,
)
from sqlalchemy.exc import DBAPIError

from core.message import to_say
from core.privacy.ledger.entries import entries_table
from core.privacy.ledger.transaction import repeatable, writing_alone
from core.runs.errors import RunStoreError
from core.runs.storage.database import Base
from core.runs.storage.engine import is_shared

HEAD = "0.1.0"  # the newest revision in `versions`
METADATA = (Base.metadata, entries_table.metadata)  # of every table in the database
FOLDER = Path(__file__).parent
LOCK = 4_102_276_817  # of PostgreSQL's advisory locks; any number that nobody else takes
WAIT = "10min"  # for another process that is at it

_revision = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_OTHER_VERSION = to_say(
    "The database '{name}' was made by another version of Facsimile, which this one cannot read. "
    "Nothing was changed. Start that version, or choose a new workspace with FACSIMILE_HOME or "
    "FACSIMILE_DATABASE."
)
_ENCODING = (
    "The PostgreSQL database does not store text as UTF-8. Nothing was changed. Make one that "
    "does: CREATE DATABASE facsimile ENCODING 'UTF8' TEMPLATE template0."
)


def bring_up_to_date(engine: Engine) -> None:
    """Create or migrate the database; several processes may call this at once.

    Raises:
      RunStoreError: another version made the database; nothing was changed.
    """
    if _revision_of(engine) != HEAD:
        _change(engine)


@repeatable
def _change(engine: Engine) -> None:
    with migrating(engine) as connection:
        found = _read(connection) if inspect(connection).has_table(_revision.name) else None
        if found == HEAD:
            return  # another process was first
        ours = {name for metadata in METADATA for name in metadata.tables}
        if found is None and not ours & set(inspect(connection).get_table_names()):
            create_tables(connection)
            _revision.create(connection)
            connection.execute(insert(_revision).values(version_num=HEAD))
        elif found is not None and (FOLDER / "versions" / _file_name(found)).exists():
            _upgrade(connection)
        else:
            database = engine.url.database or ""
            name = database if is_shared(engine) else Path(database).name
            raise RunStoreError(_OTHER_VERSION, name=name)


def _file_name(revision: str) -> str:
    return f"step_{revision.replace('.', '_')}.py"


def _revision_of(engine: Engine) -> str | None:
    """The database's revision; None where it holds none."""
    with engine.connect() as connection:
        try:
            return _read(connection)
        except DBAPIError:
            connection.rollback()
            if not inspect(connection).has_table(_revision.name):
                return None
        return _read(connection)  # another process made it just now, or this raises again


def _read(connection: Connection) -> str | None:
    return connection.execute(select(_revision.c.version_num)).scalar()


def create_tables(connection: Connection) -> None:
    """Create all tables, as the models describe them.

    Raises:
      RunStoreError: a PostgreSQL database that does not store text as UTF-8.
    """
    if is_shared(connection.engine):
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
        if encoding != "UTF8":
            raise RunStoreError(_ENCODING)
    for metadata in METADATA:
        metadata.create_all(connection, checkfirst=False)


def _upgrade(connection: Connection) -> None:
    """Run the steps that the database lacks."""
    from alembic import command  # late: importing it takes a tenth of a second
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)


@contextmanager
def migrating(engine: Engine) -> Iterator[Connection]:
    """A transaction that changes tables; one process at a time, all of it or nothing.

    SQLite rebuilds a table to change it, and dropping the old one would delete the rows that refer
    to it. Foreign keys are therefore off meanwhile, and checked at the end.
    """
    if is_shared(engine):
        with engine.begin() as connection:
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{WAIT}'")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
            yield connection
        return
    with engine.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
        try:
            with writing_alone(connection):
                yield connection
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
                if broken is not None:
                    raise RuntimeError(f"rows of {broken[0]} lost what they belong to")
        finally:
            connection.exec_driver_sql("PRAGMA synchronous = NORMAL")
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
