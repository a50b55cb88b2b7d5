"""Tables on the command line: a path, or the address of a database or an object store."""

from __future__ import annotations

import argparse
from pathlib import Path

from core.services.synthesis.locations import PASSWORD, Url, location

TABLE = (
    "CSV, TSV, Parquet or Excel file, a folder of Parquet files, or an address: postgresql://, "
    "sqlite:///, s3://"
)


def files(*tables: Path | Url | None) -> list[Path]:
    """Those of some tables that are files, which no output may replace."""
    return [table for table in tables if isinstance(table, Path)]


def table_options(command: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """The table, and the query that it needs where it is a database."""
    command.add_argument("table", type=location, nargs="?" if optional else None, help=TABLE)
    command.add_argument(
        "--query",
        default="",
        metavar="SQL",
        help="what to read from a database, one SELECT; the password may stand in "
        f"{PASSWORD} instead of in the address",
    )
