"""Tables to an SQL database, all of them or none, with keys that hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import sqlalchemy as sql
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from core.reading.arrow_types import arrow_table
from core.reading.cells import TableReadError
from core.schema.column import Column

BATCH = 10_000  # rows of one statement
_TYPES = (
    (pa.types.is_integer, sql.BigInteger),
    (pa.types.is_floating, sql.Float),
    (pa.types.is_boolean, sql.Boolean),
    (pa.types.is_date, sql.Date),
    (pa.types.is_timestamp, sql.DateTime),
    (pa.types.is_decimal, sql.Numeric),
    (pa.types.is_time, sql.Time),
)


class SqlTable(NamedTuple):
    """Rows and their columns; `link` is a column, and the table and column that it refers to."""

    name: str
    rows: pd.DataFrame
    columns: tuple[Column, ...]
    key: str | None = None
    link: tuple[str, str, str] | None = None


class SqlTarget:
    """A PostgreSQL or SQLite database that new tables go to.

    Raises:
      TableReadError: the address names no such database; it is not repeated.
    """

    def __init__(self, address: str, password: str = ""):
        try:
            url = sql.make_url(address)
        except ArgumentError:
            raise TableReadError("this is no address of a database (--to)") from None
        kind = url.get_backend_name()
        if kind not in ("postgresql", "sqlite") or not url.database:
            raise TableReadError(
                "tables go to postgresql://user@host/name or sqlite:///path (--to)"
            )
        url = url.set(drivername="postgresql+psycopg" if kind == "postgresql" else kind)
        url = url.set(password=password) if password else url
        try:
            self._engine = sql.create_engine(url, poolclass=sql.NullPool)
        except ModuleNotFoundError:
            raise TableReadError("PostgreSQL needs a driver: pip install psycopg[binary]") from None
        if kind == "sqlite":  # whose driver begins no transaction for new tables by itself
            sql.event.listen(self._engine, "connect", _begun_by_us)
            sql.event.listen(self._engine, "begin", lambda one: one.exec_driver_sql("BEGIN"))

    def check(self, names: Iterable[str]) -> None:
        """Refuse tables that are there already, and a database that is not reached."""
        try:
            with self._engine.connect() as connection:
                there = set(sql.inspect(connection).get_table_names()).intersection(names)
        except (SQLAlchemyError, OSError) as error:
            fault = type(error).__name__
            raise TableReadError("the database cannot be reached ({fault})", fault=fault) from None
        if there:
            raise TableReadError("the database has a table '{name}' already", name=min(there))

    def write(self, tables: Iterable[SqlTable]) -> None:
        """Write new tables, those first that others refer to."""
        kept = sql.MetaData()
        try:
            with self._engine.begin() as connection:
                for table in tables:
                    rows = arrow_table(table.rows, table.columns)
                    columns = (_column(field, table, kept) for field in rows.schema)
                    made = sql.Table(table.name, kept, *columns)
                    made.create(connection)
                    for batch in rows.to_batches(BATCH):
                        connection.execute(made.insert(), batch.to_pylist())
        except (SQLAlchemyError, OSError) as error:
            fault = type(error).__name__  # whose words may quote rows and the password
            raise TableReadError(
                "the database took none of the tables ({fault})", fault=fault
            ) from None


def _column(field: pa.Field, table: SqlTable, known: sql.MetaData) -> sql.Column[Any]:
    kind = next((sql_type for check, sql_type in _TYPES if check(field.type)), sql.Text)
    links = []
    if table.link is not None and table.link[0] == field.name:
        links = [sql.ForeignKey(known.tables[table.link[1]].c[table.link[2]])]
    return sql.Column(field.name, kind(), *links, primary_key=field.name == table.key)


def _begun_by_us(connection: Any, _: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
