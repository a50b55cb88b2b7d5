"""A transaction that no other writer can be in, and what to do where one is cut off."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, Table, inspect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateTable

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

TRIES = 3  # of a transaction whose connection breaks
ENDED_BY_SERVER = "40"  # class of errors: a deadlock, or what could not be put in an order


@contextmanager
def exclusive_transaction(engine: Engine, *tables: str) -> Iterator[Connection]:
    """A transaction that no other writer can be in, on disk when it ends.

    Looking and writing must be one step: with SQLite's lazy BEGIN two processes could both find
    room and both pay. `synchronous = NORMAL` may lose the last transactions in a power cut, and a
    lost debit is a lost charge, so FULL is asked for. On PostgreSQL the lock comes before the first
    look, which would otherwise miss what the writer before has written; readers go on meanwhile.

    Args:
      engine: SQLite (the whole database is locked) or PostgreSQL (the tables are).
      tables: all that must not change meanwhile, those that others hang on first, so that no two
        transactions wait for each other.
    """
    if engine.dialect.name != "sqlite":
        with engine.begin() as connection:
            connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
            connection.exec_driver_sql(f"LOCK TABLE {', '.join(tables)} IN EXCLUSIVE MODE")
            yield connection
        return
    with engine.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        with writing_alone(connection):
            yield connection


@contextmanager
def writing_alone(connection: Connection) -> Iterator[None]:
    """A SQLite transaction that no other writer is in; its connection is in autocommit."""
    connection.exec_driver_sql("PRAGMA synchronous = FULL")
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")


def make_absent(engine: Engine, table: Table) -> None:
    """Make a table where it is absent; safe when several processes do it at once."""
    if engine.dialect.name != "sqlite" and inspect(engine).has_table(table.name):
        return  # whoever may not make tables there may still use them
    try:
        with engine.begin() as connection:
            connection.execute(CreateTable(table, if_not_exists=True))
    except DBAPIError:
        if not inspect(engine).has_table(table.name):  # else another process was first
            raise


def repeatable(transaction: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """A function of one transaction that is done again where it was cut off.

    When a connection breaks at the very end, nobody knows whether the transaction counted, so it
    must be one that may be done twice. A SQLite file breaks no connections.
    """

    @functools.wraps(transaction)
    def again(*given: Given.args, **more: Given.kwargs) -> Answer:
        for _ in range(TRIES - 1):
            try:
                return transaction(*given, **more)
            except DBAPIError as error:
                ended = sqlstate(error.orig).startswith(ENDED_BY_SERVER)
                if not (ended or error.connection_invalidated):
                    raise
        return transaction(*given, **more)

    return again


def sqlstate(error: BaseException | None) -> str:
    """The five characters by which PostgreSQL tells errors, in any language; "" without any."""
    return getattr(error, "sqlstate", None) or ""
