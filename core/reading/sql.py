"""Rows of a database query, some at a time, over a cursor that stays on the server.

The transaction is read-only and never kept; in SQLite the connection may neither write nor attach
other files. What a database says of a failure may quote rows, the query and the password, so none
of it is repeated. Each batch lies in the table's folder as a file of the types that its values have
until `ParquetParts` settles what type all have.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import URL, Connection, Engine, create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from core.message import Message, to_say
from core.reading.address import EXTRAS
from core.reading.cells import ReadLimits, TableReadError, unique_names
from core.reading.parquet import ParquetParts, check_kind
from core.reading.raw_cells import batch_rows

CONNECT_SECONDS = 20
FAILURES = (SQLAlchemyError, sqlite3.Error)
_READING = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_TRANSACTION,
)


def query_rows(url: URL, query: str, folder: Path) -> ParquetParts:
    """The rows of one query, fetched."""
    files: list[str] = []
    exact: set[str] = set()
    with _connected(url) as connection:
        try:
            # a colon would name a parameter, and there is none
            result = connection.execute(text(query.replace(":", r"\:")))
            if not result.returns_rows:
                raise TableReadError("The query returns no rows. Nothing was kept. Write a SELECT.")
            names, doubts = unique_names([str(name) for name in result.keys()], ReadLimits())
            for rows in result.partitions(batch_rows(len(names))):
                columns = dict(zip(names, zip(*rows, strict=True), strict=True))
                exact |= {name for name, cells in columns.items() if _any(cells, Decimal)}
                files.append(str(folder / f"part-{len(files):05d}.parquet"))
                table = pa.table({name: _column(cells, name) for name, cells in columns.items()})
                pq.write_table(table, files[-1])
        except FAILURES as error:  # no OSError: a full disk is not the database's doing
            raise TableReadError(
                "The database did not carry out the query ({error}). Nothing was kept. Try the "
                "query in the database's own program first.",
                error=type(error).__name__,
            ) from None
    if not files:
        raise TableReadError("The query returns no rows. Nothing was kept. Change the query.")
    source = ParquetParts(files)
    words = to_say("'{name}' holds exact decimals; they were read as floating-point numbers.")
    rounded = [Message(words, name=name) for name in sorted(exact)]
    source.doubts = (*doubts, *rounded, *source.doubts)
    return source


def _any(cells: Sequence[Any], kinds: Any) -> bool:
    return any(isinstance(cell, kinds) for cell in cells)


def _column(cells: Sequence[Any], name: str) -> pa.Array:
    """Values in the narrowest type that holds all; never decimal, whose digits one record sets."""
    # whole ones too may have more digits than floats
    numbers = (int, Decimal) if _any(cells, float | Decimal) else ()
    plain = [float(cell) if isinstance(cell, numbers) else cell for cell in cells]
    try:
        column = pa.array(plain)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        column = None
    if column is None or isinstance(column.type, pa.BaseExtensionType):  # keys, addresses, ranges
        if _any(plain, int | float | str | bytes):
            raise TableReadError(
                "The column '{name}' holds values of different types. Nothing was kept. "
                "Convert them to one type in the query, with CAST.",
                name=name,
            )
        column = pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    check_kind(column.type, name)
    return column


@contextmanager
def _connected(url: URL) -> Iterator[Connection]:
    """A connection for reading; whatever was done is undone."""
    try:
        connection = _engine(url).connect()
    except (*FAILURES, OSError):
        raise TableReadError(
            "The database could not be reached, or it refused this user. Nothing was read. Check "
            "the address, the user and the password."
        ) from None
    with connection:
        options: dict[str, Any] = {"stream_results": True}
        if url.get_backend_name() == "postgresql":
            options["postgresql_readonly"] = True
        else:
            raw: Any = connection.connection.driver_connection
            raw.set_authorizer(
                lambda action, *_: sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY
            )
        yield connection.execution_options(**options)
        connection.rollback()


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        file = f"file:{quote(url.database or '')}?mode=ro"  # cannot write
        creator = partial(sqlite3.connect, file, uri=True)
        return create_engine("sqlite://", creator=creator, poolclass=NullPool)
    try:
        return create_engine(
            url.set(drivername="postgresql+psycopg"),
            poolclass=NullPool,
            connect_args={"connect_timeout": CONNECT_SECONDS},
        )
    except ModuleNotFoundError:
        raise TableReadError(
            "Reading PostgreSQL needs a driver. Nothing was read. Install it with `{command}`.",
            command=EXTRAS,
        ) from None
