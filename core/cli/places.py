"""Tables on the command line: a path, or the address of a database or an object store."""

from __future__ import annotations

import argparse
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["PASSWORD", "Url", "files", "place", "table_options"]

PASSWORD = "FACSIMILE_SOURCE_PASSWORD"
TABLE = (
    "CSV, TSV, Parquet or Excel file, a folder of Parquet files, or an address: postgresql://, "
    "sqlite:///, s3://"
)


class Url(str):
    """An address, which may hold a password and is never printed."""

    @property
    def name(self) -> str:
        """What the table is called."""
        return urlsplit(self).path.rstrip("/").rpartition("/")[2] or "table"

    def __repr__(self) -> str:
        return "Url(…)"


def place(text: str) -> Path | Url:
    """What a table is given by, as the options' type.

    >>> place("rows.csv"), place("postgresql://me:secret@db/shop").name
    (PosixPath('rows.csv'), 'shop')
    """
    return Url(text) if "://" in text else Path(text)


def files(*tables: Path | Url | None) -> list[Path]:
    """Those of some tables that are files, which no output may replace."""
    return [table for table in tables if isinstance(table, Path)]


def table_options(command: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """The table, and the query that it needs where it is a database."""
    command.add_argument("table", type=place, nargs="?" if optional else None, help=TABLE)
    command.add_argument(
        "--query",
        default="",
        metavar="SQL",
        help="what to read from a database, one SELECT; the password may stand in "
        f"{PASSWORD} instead of in the address",
    )
