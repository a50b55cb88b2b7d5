"""Errors of tables, runs and their storage, and what people are told of them."""

import errno
from typing import Literal

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from core.message import ReportedError
from core.privacy.ledger.transaction import sqlstate

# why a run failed, for whoever watches the server; "refused" by a rule of ours
FailureKind = Literal["memory", "storage", "launcher", "device", "unexpected", "refused"]

NO_RECORDS = "The table holds no records. Nothing was kept."


class RunStoreError(ReportedError):
    """Something cannot be done to a table or run; the message says what to do instead."""


class NotFoundError(RunStoreError):
    """No table, run or artefact of that name."""


class StorageError(RunStoreError):
    """The storage that holds tables and runs does not answer, or refuses."""


_FULL = "The workspace's disk is full. Free some space and try again."
_CLOSED = (
    "The workspace cannot be written to: its disk is full or read-only, or it belongs to another "
    "user account. Ask whoever runs this server."
)
_BUSY = "The workspace's database is busy. Try again in a minute."
_FAILING = (
    "The workspace's database cannot be read or written right now: its disk may be full or "
    "failing. Free some space and try again, or ask whoever runs this server."
)
_AWAY = (
    "The database server cannot be reached or refuses the connection. Try again in a minute, or "
    "ask whoever runs this server."
)
_MEMORY = "This machine does not have enough free memory. Close other programs and try again."
# what a database driver says, in part, and what it means
_DATABASE = {
    "locked": _BUSY,
    "busy": _BUSY,
    "is full": _FULL,
    "no space": _FULL,
    "readonly": _CLOSED,
    "read-only": _CLOSED,
    "unable to open": _CLOSED,
}
# the same of PostgreSQL, by the head of the number that it gives an error, in any language
_STATES = {
    "08": _AWAY,  # the connection
    "28": _AWAY,  # who may come in
    "3D": _AWAY,  # no such database
    "57P": _AWAY,  # it is shut down, or starting
    "53300": _BUSY,  # too many connections
    "55P03": _BUSY,  # the wait for a lock was too long
    "40": _BUSY,  # deadlocks
    "53100": _FULL,
    "25006": _CLOSED,  # it may only be read
    "42501": _CLOSED,  # this account may not write it
}
_NUMBERS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _CLOSED,
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.ENOMEM: _MEMORY,
}


def storage_trouble(error: BaseException) -> str | None:
    """What is wrong with storage, database or memory, and what to do; None where it is no such.

    The words are fixed, so that no value and no path gets into them.
    """
    if isinstance(error, StorageError):
        return str(error)
    if isinstance(error, MemoryError):
        return _MEMORY
    if isinstance(error, PoolTimeoutError):
        return _BUSY
    if isinstance(error, DBAPIError):
        if (words := _of_server(error)) is not None:
            return words
        said = str(error.orig).lower()
        return next((words for part, words in _DATABASE.items() if part in said), _FAILING)
    if isinstance(error, OSError) and error.errno is not None:
        return _NUMBERS.get(error.errno)
    return None


def failure_kind(error: BaseException) -> FailureKind:
    """The kind of an error that no rule of ours raised.

    >>> failure_kind(MemoryError()), failure_kind(KeyError("age"))
    ('memory', 'unexpected')
    """
    trouble = storage_trouble(error)
    if trouble == _MEMORY or type(error).__name__ == "OutOfMemoryError":  # torch's, never imported
        return "memory"
    return "unexpected" if trouble is None else "storage"


def _of_server(error: DBAPIError) -> str | None:
    """What a PostgreSQL server's trouble means; None for one that it has no number for."""
    state = sqlstate(error.orig)
    words = next((words for head, words in _STATES.items() if state.startswith(head)), None)
    if words is None and type(error.orig).__module__.partition(".")[0] == "psycopg" and not state:
        return _AWAY  # what goes wrong before the server answers has no number
    return words
