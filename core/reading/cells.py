"""Refusals of tables that are read, limits on their size, marks of missing cells, column names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.message import Message, ReportedError, plural, to_say

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


def unique_names(header: Sequence[str], limits: ReadLimits) -> tuple[list[str], list[str]]:
    """Trimmed names of which none is blank or stands twice, and a sentence on those renamed.

    >>> unique_names(["x", " x", "", "x (2)"], ReadLimits())[0]
    ['x', 'x (3)', 'column 3', 'x (2)']
    """
    names = [name.strip() for name in header]
    if len(names) > limits.max_columns:
        raise TableReadError(
            "The file has {n:,} columns; {most:,} is the most. Keep the columns you need and "
            "try again.",
            n=len(names),
            most=limits.max_columns,
        )
    named = sum(map(bool, names))
    if 2 * named < len(names):
        raise TableReadError(
            "The first row names {named} of {n:,} columns; perhaps a title stands above "
            "the header. Delete the rows above the header and try again.",
            named=named,
            n=len(names),
        )
    if any("\0" in name for name in names):
        raise TableReadError("The header contains NUL characters. Give every column a plain name.")
    unique = _renamed(names)
    new = [f"'{name}'" for name, old in zip(unique, names, strict=True) if name != old]
    words = to_say(
        "Columns without a name or with the name of an earlier column are now called {names}."
    )
    return unique, [Message(words, names=", ".join(new))] if new else []


def _renamed(names: Sequence[str]) -> list[str]:
    """Names of their own; those that the header itself gives go to nobody else."""
    taken, seen = set(names), Counter[str]()
    unique = []
    for position, name in enumerate(names, 1):
        seen[name] += 1
        new = name
        if not name or seen[name] > 1:
            base, copies = name or f"column {position}", seen[name] if name else 1
            new = f"{base} ({copies})" if copies > 1 else base
            while new in taken:
                copies += 1
                new = f"{base} ({copies})"
        taken.add(new)
        unique.append(new)
    return unique


def header_doubts(header: Sequence[str]) -> list[str]:
    """A sentence where the names look like values; none otherwise."""
    if 2 * sum(is_float(name.replace(",", ".")) for name in header) <= len(header):
        return []
    words = to_say(
        "The first line was taken as the header, but it looks like values. If the file "
        "has no header, add one."
    )
    return [Message(words)]
