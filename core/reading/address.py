"""Addresses: a path, a database or an object store, told apart, and who may open which.

An address may hold a password or a token. Only `Address.words` is ever shown or stored; errors
never repeat an address.

Opening an address makes this machine reach for it: for a file that only the server's account may
read, a database that only its network reaches. Where people sign in from elsewhere only what
`FACSIMILE_SOURCES` names can be opened, links followed first, and web addresses never.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

from core.message import Message
from core.reading.cells import TableReadError

if TYPE_CHECKING:
    from sqlalchemy import URL

EXTRAS = "pip install -r requirements-cluster.txt"  # drivers of databases and stores
SOURCES, STORAGE = "FACSIMILE_SOURCES", "FACSIMILE_STORAGE"
DATABASES = ("postgresql", "sqlite")
STORES = ("s3", "gs", "gcs", "az", "abfs", "abfss", "memory")
OWN = "This is the product's own storage. Nothing was read. Choose another folder or address."
# what a PostgreSQL address may add: nothing that names a file or service of the server's account
PARAMETERS = {"host", "port", "sslmode", "connect_timeout", "application_name"}


def is_url(text: str) -> bool:
    """Whether a text names a database or a store rather than a path.

    >>> is_url("s3://bucket/rows"), is_url("/srv/rows.parquet")
    (True, False)
    """
    return "://" in text


@dataclass(frozen=True)
class Address:
    """Where a table lies; `path` is of a file or folder of this machine, links followed."""

    kind: str
    path: Path | None = None
    url: URL | None = field(default=None, repr=False)
    store: str = field(default="", repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    query: str = field(default="", repr=False)

    @classmethod
    def of(cls, text: str, *, query: str = "", password: str = "") -> Self:
        """An address as people write it."""
        text, query = text.strip(), query.strip().rstrip(";").rstrip()
        scheme = text.partition("://")[0].lower().partition("+")[0] if is_url(text) else ""
        if scheme in DATABASES:
            return cls._database(text, query, password)
        if query:
            raise TableReadError(
                "A query needs the address of a database, such as postgresql://host/name. "
                "Nothing was read."
            )
        if scheme in ("", "file"):
            return cls._path(unquote(urlsplit(text).path) if scheme else text)
        if scheme in STORES and "::" not in text:
            return cls._store(text, password)
        raise TableReadError(
            "This kind of address cannot be opened. Nothing was read. Enter a path, or an "
            "address that begins with {beginnings}.",
            beginnings=", ".join(f"{one}://" for one in (*DATABASES, *STORES[:4])),
        )

    @classmethod
    def _path(cls, text: str) -> Self:
        if not text or "\0" in text:
            raise TableReadError("No path was given. Nothing was read. Enter one.")
        return cls("path", path=Path(text).expanduser().resolve())

    @classmethod
    def _database(cls, text: str, query: str, password: str) -> Self:
        from sqlalchemy import URL, make_url  # reading a file must not wait for it
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(text)
        except (ArgumentError, ValueError):
            raise TableReadError(
                "The address of the database is incomplete. Nothing was read. Write it as "
                "postgresql://user@host/name or sqlite:///path."
            ) from None
        if not query:
            raise TableReadError("A database needs a query, such as SELECT * FROM visits.")
        if url.get_backend_name() == "sqlite":
            if not url.database or url.database.startswith("file:") or url.query:
                raise TableReadError(
                    "Write the address of an SQLite database as sqlite:/// and its path. "
                    "Nothing was read."
                )
            file = Path(url.database).expanduser().resolve()
            return cls(
                "database", path=file, url=URL.create("sqlite", database=str(file)), query=query
            )
        strange = sorted(set(url.query) - PARAMETERS)
        if strange:
            raise TableReadError(
                "The address of a database must not set '{name}'. Nothing was read. It may "
                "set {names}.",
                name=strange[0],
                names=", ".join(sorted(PARAMETERS)),
            )
        return cls("database", url=url.set(password=password) if password else url, query=query)

    @classmethod
    def _store(cls, text: str, password: str) -> Self:
        parts = urlsplit(text)
        secret = password or parts.password or ""
        user = unquote(parts.username or "")
        scheme = parts.scheme.lower()
        options = _credentials(scheme, user, unquote(secret))
        if parts.query or parts.fragment:
            raise TableReadError(
                "The address of an object store must not contain a question mark or a hash. "
                "Nothing was read. Enter user and password instead of a signed address."
            )
        if ".." in parts.path.split("/"):
            raise TableReadError("The address of a store must not contain '..'. Nothing was read.")
        host = parts.netloc.rpartition("@")[2]
        return cls("store", store=f"{scheme}://{host}{parts.path}", options=options)

    @property
    def name(self) -> str:
        """What a table from here is called."""
        if self.url is not None and self.path is None:
            return self.url.database or "database"
        where = self.store if self.path is None else str(self.path)
        return where.rstrip("/").rpartition("/")[2] or "table"

    @property
    def words(self) -> str:
        """Where it lies, for people; without user, password and query."""
        if self.kind == "store":
            return self.store
        if self.url is None:
            return f"path {self.path}"
        if self.path is not None:
            return f"SQLite database {self.path.name}"
        host = self.url.host or self.url.query.get("host") or Message("this machine")
        return f"database {self.url.database} on {host}"

    @property
    def reach(self) -> str:
        """What `FACSIMILE_SOURCES` is compared with: the address without anything secret."""
        if self.url is None:
            return self.store
        port = f":{self.url.port}" if self.url.port else ""
        asked = {name: self.url.query[name] for name in ("host", "port") if name in self.url.query}
        if asked:  # the driver takes these before the host and port of the address itself
            return "postgresql://?" + "&".join(f"{name}={text}" for name, text in asked.items())
        return f"postgresql://{self.url.host or ''}{port}/{self.url.database or ''}"


def _credentials(scheme: str, user: str, secret: str) -> dict[str, Any]:
    """Options of a store's file system; without user and password it finds its own."""
    if not user and not secret:
        return {}
    names = {"s3": ("key", "secret"), "az": ("account_name", "account_key")}
    key, word = names["s3" if scheme in ("s3", "memory") else "az"]
    if scheme in ("gs", "gcs"):
        raise TableReadError(
            "Google Cloud Storage cannot be opened with a password. Nothing was read. Sign the "
            "server in with Google's own tools."
        )
    return {key: user, word: secret}


@dataclass(frozen=True)
class Allowed:
    """Which addresses may be opened: folders, and beginnings of addresses; None for all."""

    entries: tuple[str, ...] | None
    forbidden: Path
    storage: str = ""

    @classmethod
    def here(
        cls, *, signed_in: bool, forbidden: Path, environment: Mapping[str, str] = os.environ
    ) -> Self:
        """What this server allows; where people sign in, nothing that is not named."""
        named, storage = environment.get(SOURCES), environment.get(STORAGE, "")
        entries: tuple[str, ...] | None = () if signed_in else None
        if named is not None:
            entries = tuple(one.strip() for one in named.split(",") if one.strip())
        return cls(entries, forbidden, storage)

    def check(self, address: Address) -> None:
        """Refuse an address that may not be opened."""
        if address.path is not None:
            self.check_own(address.path)
        if address.kind == "store" and self._meets_storage(address.store):
            raise TableReadError(OWN)
        if self.entries is None:
            return
        if address.path is not None:
            folders = [Path(one).expanduser() for one in self.entries if not is_url(one)]
            if any(self.holds(folder, address.path) for folder in folders):
                return
        elif any(self._begins(address.reach, one) for one in self.entries if is_url(one)):
            return
        raise TableReadError(
            "This server does not let anyone open this address. Nothing was read. Whoever runs "
            "it lists permitted folders and addresses in {variable}; or upload the file.",
            variable=SOURCES,
        )

    def check_own(self, path: Path) -> None:
        """Refuse a file or folder in the product's own folder."""
        if self.holds(self.forbidden, path):
            raise TableReadError(OWN)

    def _meets_storage(self, store: str) -> bool:
        """Whether an object store's address holds the product's own rows, or lies among them."""
        own, address = _bare(self.storage), _bare(store)
        return bool(own) and (self._begins(own, address) or self._begins(address, own))

    @staticmethod
    def holds(folder: Path, path: Path) -> bool:
        """Whether a path lies in a folder, links followed."""
        return path.resolve().is_relative_to(folder.resolve())

    @staticmethod
    def _begins(reach: str, entry: str) -> bool:
        """An entry ends at a slash or with the address."""
        beginning = entry.rstrip("/")
        return reach == beginning or reach.startswith(f"{beginning}/")


def _bare(store: str) -> str:
    parts = urlsplit(store)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
