"""Who may see which table, and which sign-ins are over."""

from __future__ import annotations

from collections.abc import Iterable

from core.runs.storage.access import (
    Access,
    accesses,
    end_sign_ins,
    record_sign_in,
    set_access,
    sign_in_ended,
)
from core.runs.storage.store import RunStore

__all__ = ["access_of", "end_sign_ins", "hidden_tables", "record_sign_in", "share", "sign_in_ended"]


def access_of(store: RunStore, table_id: str) -> Access | None:
    """Who may see a table; None for one without an owner, which everybody with a role may see."""
    return accesses(store).get(table_id)


def hidden_tables(store: RunStore, address: str, *, steward: bool) -> set[str]:
    """Ids of the tables that an address in lower case, of a steward or of a reviewer, may not see.

    Tables without an owner are hidden from nobody.
    """
    return {
        table_id
        for table_id, access in accesses(store).items()
        if not access.admits(address, steward=steward)
    }


def share(store: RunStore, table_id: str, shared: Iterable[str], *, stewards: bool) -> None:
    """Say with whom a table's owner shares it, instead of what was said before.

    Args:
      shared: addresses; blank ones are left out.
      stewards: whether every steward sees it.
    """
    owner = accesses(store)[table_id].owner
    set_access(store, table_id, owner=owner, shared=shared, stewards=stewards)
