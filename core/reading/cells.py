"""What can be wrong with a table that is read, what is too big, and which words are no values."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "MISSING_MARKERS",
    "ReadLimits",
    "TableReadError",
    "cells_counted",
    "too_big",
    "too_many_rows",
]

MISSING_MARKERS = ("", "na", "n/a", "nan", "null", "none", "?")  # compared trimmed, in lower case


class TableReadError(ValueError):
    """A file that cannot be read as one table; one plain line saying what happened, what to do."""


@dataclass(frozen=True)
class ReadLimits:
    """What is too big to read.

    Attributes:
      max_bytes: of the file, and of what it expands to when compressed.
    """

    max_bytes: int = 2 * 1024**3
    max_rows: int = 50_000_000
    max_columns: int = 2_000


def too_big(limits: ReadLimits) -> TableReadError:
    """The error for a file with too many bytes."""
    size = limits.max_bytes
    shown = f"{size / 1024**2:,.0f} MB" if size >= 1024**2 else f"{size:,} bytes"
    return TableReadError(
        f"The file is larger than {shown}, unpacked or as it is. "
        "Keep the columns and rows you need, or save it as Parquet."
    )


def too_many_rows(rows: int, limits: ReadLimits) -> TableReadError:
    """The error for a table that is too long."""
    return TableReadError(
        f"The table has {rows:,} rows; {limits.max_rows:,} is the most. "
        "Take a sample of it and try again."
    )


def cells_counted(cells: int) -> str:
    """A number of cells in words.

    >>> cells_counted(1), cells_counted(1200)
    ('1 cell', '1,200 cells')
    """
    return f"{cells:,} cell" if cells == 1 else f"{cells:,} cells"
