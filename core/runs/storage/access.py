"""Who may see which table, where people sign in: its owner, and whom the owner shared it with.

A table without an entry was imported while nobody had to sign in: everybody who may see tables at
all sees it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.runs.storage.database import AccessRow
from core.runs.storage.store import RunStore


@dataclass(frozen=True)
class Access:
    """Who may see a table.

    Attributes:
      owner: address of who brought it in, in lower case.
      shared: addresses it was shared with, in lower case.
      stewards: whether every steward sees it.
    """

    owner: str
    shared: tuple[str, ...] = ()
    stewards: bool = False

    def admits(self, address: str, *, steward: bool) -> bool:
        """Whether it admits an address in lower case, of a steward or of somebody else."""
        return address == self.owner or address in self.shared or (steward and self.stewards)


def accesses(store: RunStore) -> dict[str, Access]:
    """What was said of tables, by their ids; tables without an owner are not among them."""
    with Session(store.engine) as session:
        return {
            row.table_id: Access(row.owner, tuple(row.shared), row.stewards)
            for row in session.scalars(select(AccessRow))
        }


def set_access(
    store: RunStore,
    table_id: str,
    *,
    owner: str,
    shared: Iterable[str] = (),
    stewards: bool = False,
) -> Access:
    """Say who may see a table, instead of what was said before.

    Args:
      shared: addresses of people who may see it too; blank ones are left out.
    """
    others = sorted({one.strip().lower() for one in shared} - {"", owner.lower()})
    access = Access(owner.lower(), tuple(others), stewards)
    row = AccessRow(
        table_id=store.table(table_id).id, owner=access.owner, shared=others, stewards=stewards
    )
    with Session(store.engine) as session, session.begin():
        session.merge(row)
    return access
