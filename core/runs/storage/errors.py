"""What goes wrong in a run store, and what keeps one from being read or written, in words."""

import errno

from sqlalchemy.exc import DBAPIError

__all__ = ["NotFoundError", "RunStoreError", "StorageError", "storage_trouble"]


class RunStoreError(ValueError):
    """Something cannot be done to a table or run; the message says what to do instead."""


class NotFoundError(RunStoreError):
    """No table, run or artefact of that name."""


class StorageError(RunStoreError):
    """The storage that holds tables and runs does not answer, or refuses."""


_FULL = "The disk that holds the workspace is full. Make room on it and try again."
_CLOSED = (
    "The workspace cannot be written: its disk is full or read-only, or it belongs to another "
    "account of this machine. Ask whoever runs this server."
)
_BUSY = "Another process keeps the workspace's database busy. Try again in a minute."
_FAILING = (
    "The workspace's database cannot be read or written at the moment: the disk may be full or "
    "failing. Make room on it and try again, or ask whoever runs this server."
)
_MEMORY = "This machine has too little free memory for it. End something else and try again."
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
    if isinstance(error, DBAPIError):
        said = str(error.orig).lower()
        return next((words for part, words in _DATABASE.items() if part in said), _FAILING)
    if isinstance(error, OSError) and error.errno is not None:
        return _NUMBERS.get(error.errno)
    return None
