"""bring_up_to_date: the database as this version wants it, whoever made it and however long ago.

Which step a database has seen stands in it (Alembic's own table), so that a look at one value is
all it takes mostly. A new database is made from the models at once and marked; an earlier one goes
through the steps in `versions`, all or none of them, while no other process can be at it.
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

from core.privacy.ledger.entries import entries_table
from core.privacy.ledger.transaction import repeatable, writing_alone
from core.runs.errors import RunStoreError
from core.runs.storage.database import Base
from core.runs.storage.engine import is_shared

__all__ = ["HEAD", "METADATA", "bring_up_to_date", "migrating"]

HEAD = "0004"  # the newest step in `versions`
METADATA = (Base.metadata, entries_table.metadata)  # of every table in the database
FOLDER = Path(__file__).parent
LOCK = 4_102_276_817  # of PostgreSQL's advisory locks; any number that nobody else takes
WAIT = "10min"  # for another process that is at it

_mark = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_NEWER = (
    "A newer version of Facsimile has used this workspace, and this one cannot read its database. "
    "Nothing was changed. Start the newer version."
)
_ENCODING = (
    "The PostgreSQL database does not store text as UTF-8. Nothing was changed. Make one that "
    "does: CREATE DATABASE facsimile ENCODING 'UTF8' TEMPLATE template0."
)


def bring_up_to_date(engine: Engine) -> None:
    """Make what is absent and change what earlier versions had otherwise; safe at any moment.

    Raises:
      RunStoreError: a newer version made it what it is; nothing was changed.
    """
    if _seen(engine) != HEAD:
        _change(engine)


@repeatable
def _change(engine: Engine) -> None:
    with migrating(engine) as connection:
        seen = _read(connection) if inspect(connection).has_table(_mark.name) else None
        if seen == HEAD:
            return  # another process was first
        if seen is not None and not (FOLDER / "versions" / f"step_{seen}.py").exists():
            raise RunStoreError(_NEWER)
        known = {name for metadata in METADATA for name in metadata.tables}
        if seen is None and not known & set(inspect(connection).get_table_names()):
            _make(connection)
        else:
            _upgrade(connection)


def _seen(engine: Engine) -> str | None:
    """The newest step that the database has seen; None where it does not say."""
    with engine.connect() as connection:
        try:
            return _read(connection)
        except DBAPIError:
            connection.rollback()
            if not inspect(connection).has_table(_mark.name):
                return None
        return _read(connection)  # another process made it just now, or this raises again


def _read(connection: Connection) -> str | None:
    return connection.execute(select(_mark.c.version_num)).scalar()


def _make(connection: Connection) -> None:
    """All tables of a new database."""
    if is_shared(connection.engine):
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
        if encoding != "UTF8":
            raise RunStoreError(_ENCODING)
    for metadata in (*METADATA, _mark.metadata):
        metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(_mark).values(version_num=HEAD))


def _upgrade(connection: Connection) -> None:
    """The steps that the database has not seen."""
    from alembic import command  # takes a tenth of a second, once for each new version
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)


@contextmanager
def migrating(engine: Engine) -> Iterator[Connection]:
    """A transaction for changes of tables, that one process at a time is in; all of it or nothing.

    SQLite rebuilds a table to change it, and dropping the old one would delete, by its foreign
    keys, the rows that hang on it: they are off meanwhile, and looked at before the end.
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
