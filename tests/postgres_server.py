"""A PostgreSQL server for tests: private to this process, on a Unix socket, gone at the end.

`postgres_server` is the server, `postgres_url` a fresh and empty database on it. Both skip where
the server's programs or the driver are absent. Everybody who connects needs the password, so that
a test can look for it where it must not be.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

__all__ = ["PASSWORD", "PostgresServer", "postgres_server", "postgres_url", "why_not"]

PASSWORD = "word-that-nobody-may-see"
USER = "facsimile"
PATIENCE = 60  # seconds that the server may take to start or stop
SETTINGS = (
    "-c listen_addresses= -c fsync=off -c max_connections=120 -c shared_buffers=32MB "
    "-c unix_socket_directories={folder}"
)


def programs() -> Path | None:
    """The folder of the server's programs; None where there is none."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


def why_not() -> str | None:
    """Why there is no server for tests, in words; None where there is one."""
    if programs() is None:
        return "needs a PostgreSQL server (Debian package postgresql)"
    if find_spec("psycopg") is None:
        return "needs psycopg: pip install -r requirements-cluster.txt"
    return None


@dataclass(frozen=True)
class PostgresServer:
    """A server with its files in one folder.

    Attributes:
      folder: with the data, the socket and the log.
      account: of this machine, that the server runs as.
    """

    folder: Path
    account: pwd.struct_passwd

    def url(self, database: str = "postgres", *, password: str = PASSWORD) -> str:
        """SQLAlchemy's address of a database."""
        return f"postgresql+psycopg://{USER}:{password}@/{database}?host={self.folder}"

    def fresh(self) -> str:
        """The address of a new, empty database."""
        name = f"facsimile_{secrets.token_hex(5)}"
        self.run("createdb", "-h", str(self.folder), "-U", USER, name)
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is still connected to it."""
        name = url.partition("?")[0].rpartition("/")[2]
        self.run("dropdb", "--force", "--if-exists", "-h", str(self.folder), "-U", USER, name)

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = SETTINGS.format(folder=self.folder)
        log = self.folder / "log"
        self.control("start", "-o", settings, "-l", str(log))

    def stop(self, mode: str = "fast") -> None:
        """End it: "fast" ends sessions, "immediate" is as good as a power cut."""
        self.control("stop", "-m", mode)

    def control(self, *arguments: str) -> None:
        """Call pg_ctl on the server's data and wait for it."""
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-t", str(PATIENCE), *arguments)

    def run(self, program: str, *arguments: str) -> None:
        """Call one of the server's programs as its account; the server refuses to be root."""
        folder = programs()
        assert folder is not None
        root = os.geteuid() == 0
        done = subprocess.run(
            [str(folder / program), *arguments],
            cwd=self.folder,
            env={"PATH": os.defpath, "PGPASSWORD": PASSWORD, "LC_ALL": "C.UTF-8"},
            user=self.account.pw_uid if root else None,
            group=self.account.pw_gid if root else None,
            extra_groups=[] if root else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # no pipe: the server would keep it open
            stderr=subprocess.STDOUT,
            timeout=2 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{program} {arguments}"


def _account() -> pwd.struct_passwd:
    """Whom the server runs as: this process's account, or a humble one where that is root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running server; one a test process."""
    missing = why_not()
    if missing is not None:
        pytest.skip(missing)
    account = _account()
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path must be short
    try:
        os.chown(folder, account.pw_uid, account.pw_gid)
        server = PostgresServer(folder, account)
        word = folder / "password"
        word.write_text(PASSWORD)
        word.chmod(0o600)
        os.chown(word, account.pw_uid, account.pw_gid)
        ways = ("-A", "scram-sha-256", "--pwfile", str(word), "-E", "UTF8", "--no-sync")
        server.run("initdb", "-D", str(folder / "data"), "-U", USER, *ways)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """SQLAlchemy's address of a fresh database, with the password in it."""
    url = postgres_server.fresh()
    yield url
    postgres_server.drop(url)
