"""PostgreSQL: how it is connected to, and where it is waited for."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from sqlalchemy import Dialect, Engine, create_engine, event
from sqlalchemy.engine import URL

from core.runs.errors import RunStoreError

# Connections a process keeps, and takes at most: a server of 100 serves ten processes.
KEPT, MOST = 3, 10
POOL_SECONDS = 15  # that a thread waits for one of them
RECYCLED = 1800  # seconds after which one is made anew: firewalls forget silent ones
AGAIN_SECONDS = 0.5  # between two tries to reach the server
# A writer waits as long as on SQLite; one that stopped in the middle loses what it has locked.
SESSION = "-c lock_timeout=15s -c idle_in_transaction_session_timeout=60s"
CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "application_name": "facsimile",
}
DRIVER = "postgresql+psycopg"
_NO_DRIVER = (
    "FACSIMILE_DATABASE names a PostgreSQL server, but its driver is not installed. Nothing was "
    "opened. Run: pip install -r requirements-cluster.txt"
)
_OTHER_DRIVER = (
    "FACSIMILE_DATABASE names a driver that Facsimile does not use. Nothing was opened. Begin the "
    "address with postgresql:// alone."
)


def open_postgres(url: URL, *, patience: float = 0.0) -> Engine:
    """An engine on a PostgreSQL database.

    READ COMMITTED, whatever the server's default: what must not change between looking and writing
    is locked or compared in the statement itself, so nothing here fails to serialise.

    Args:
      url: with any query options that libpq knows; `options` there win over those set here.
      patience: seconds to go on trying while the server cannot be reached.

    Raises:
      RunStoreError: the driver is absent, or the address names another one.
    """
    if url.drivername not in ("postgres", "postgresql", DRIVER):
        raise RunStoreError(_OTHER_DRIVER)
    given = url.query.get("options", "")
    options = " ".join([SESSION, *([given] if isinstance(given, str) else given)]).strip()
    defaults = {name: value for name, value in CONNECTION.items() if name not in url.query}
    try:
        engine = create_engine(
            url.set(drivername=DRIVER).difference_update_query(["options"]),
            connect_args={**defaults, "options": options},
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
            pool_size=KEPT,
            max_overflow=MOST - KEPT,
            pool_timeout=POOL_SECONDS,
            pool_recycle=RECYCLED,
            hide_parameters=True,
        )
    except ModuleNotFoundError:
        raise RunStoreError(_NO_DRIVER) from None
    if patience > 0.0:
        event.listen(engine, "do_connect", partial(_connect_patiently, patience))
    return engine


def _connect_patiently(
    patience: float, dialect: Dialect, _record: object, arguments: Any, options: Any
) -> Any:
    """A connection, as soon as the server answers: it may be starting again."""
    end = time.monotonic() + patience
    while True:
        try:
            return dialect.connect(*arguments, **options)
        except dialect.loaded_dbapi.OperationalError:
            if time.monotonic() >= end:
                raise
        time.sleep(AGAIN_SECONDS)
