"""What goes wrong in a run store."""

__all__ = ["NotFoundError", "RunStoreError"]


class RunStoreError(ValueError):
    """Something cannot be done to a table or run; the message says what to do instead."""


class NotFoundError(RunStoreError):
    """No table, run or artefact of that name."""
