"""Refusals of tables that are read, limits on their size, and words for missing values."""

from __future__ import annotations

from dataclasses import dataclass

from core.message import Message, ReportedError, plural

MISSING_MARKERS = ("", "na", "n/a", "nan", "null", "none", "?")  # compared trimmed, in lower case


class TableReadError(ReportedError):
    """A source that cannot be read as one table; the message quotes none of its values."""


@dataclass(frozen=True)
class ReadLimits:
    """What is too big to read; bytes are of the file and of what it expands to."""

    max_bytes: int = 2 * 1024**3
    max_rows: int = 50_000_000
    max_columns: int = 2_000


def too_big(limits: ReadLimits) -> TableReadError:
    """The error for a file with too many bytes."""
    size, megabyte = limits.max_bytes, 1024**2
    return TableReadError(
        "The file is larger than {size}, packed or unpacked. Keep only the columns and rows "
        "you need, or save it as Parquet.",
        size=Message("{n:,.0f} MB", n=size / megabyte)
        if size >= megabyte
        else Message("{n:,} bytes", n=size),
    )


def is_float(word: str) -> bool:
    """Whether Python reads a word as a number, or as "nan" or "inf"."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def cells_counted(cells: int) -> str:
    """A number of cells in words."""
    return plural(cells, "{n:,} cell", "{n:,} cells")
