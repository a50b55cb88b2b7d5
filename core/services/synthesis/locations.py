"""Where a table lies: a path, or the address of a database or an object store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

PASSWORD = "FACSIMILE_SOURCE_PASSWORD"


class Url(str):
    """An address, which may hold a password and is never printed."""

    @property
    def name(self) -> str:
        """What the table is called."""
        return urlsplit(self).path.rstrip("/").rpartition("/")[2] or "table"

    def __repr__(self) -> str:
        return "Url(…)"


def location(text: str) -> Path | Url:
    """A table's path or address.

    >>> location("rows.csv"), location("postgresql://me:secret@db/shop").name
    (PosixPath('rows.csv'), 'shop')
    """
    return Url(text) if "://" in text else Path(text)
