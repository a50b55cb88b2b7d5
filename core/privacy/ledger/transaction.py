"""A transaction that no other writer can be in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

__all__ = ["exclusive_transaction"]


@contextmanager
def exclusive_transaction(engine: Engine, table: str) -> Iterator[Connection]:
    """A transaction that no other writer can be in, on disk when it ends.

    Looking and writing must be one step: with SQLite's lazy BEGIN two processes could both read,
    both find room and both pay. The store's `synchronous = NORMAL` may lose the last transactions
    in a power cut, and a lost debit is a lost charge, so FULL is asked for.

    Args:
      engine: SQLite (the whole database is locked) or PostgreSQL (the table is).
      table: its name.
    """
    if engine.dialect.name != "sqlite":
        with engine.begin() as connection:
            connection.exec_driver_sql(f"LOCK TABLE {table} IN EXCLUSIVE MODE")
            yield connection
        return
    with engine.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.exec_driver_sql("PRAGMA synchronous = FULL")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.exec_driver_sql("ROLLBACK")
            raise
        connection.exec_driver_sql("COMMIT")
