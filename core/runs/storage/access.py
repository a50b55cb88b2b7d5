"""Who may see which table, where people sign in, and which sign-ins are over before their time.

A table without an entry was imported while nobody had to sign in: everybody who may see tables at
all sees it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.runs.storage.database import AccessRow, SignInRow
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


def record_sign_in(store: RunStore, person: str, issued: float) -> None:
    """Record that somebody came with a sign-in, which is known by when the provider issued it.

    Signing out ends every sign-in of a person that was seen until then, on whatever machine: what
    was seen last is kept, so that no two clocks are compared.

    Args:
      issued: when the provider issued the sign-in, in seconds by its clock.
    """
    with suppress(IntegrityError), store.engine.begin() as connection:  # they came before
        connection.execute(insert(SignInRow).values(person=person, newest=issued))
    later = update(SignInRow).where(SignInRow.person == person, SignInRow.newest < issued)
    with store.engine.begin() as connection:
        connection.execute(later.values(newest=issued))


def end_sign_ins(store: RunStore, person: str, issued: float) -> None:
    """End all sign-ins of a person that were seen, and the one at hand."""
    record_sign_in(store, person, issued)
    theirs = update(SignInRow).where(SignInRow.person == person)
    with store.engine.begin() as connection:
        connection.execute(theirs.values(ended=SignInRow.newest))


def sign_in_ended(store: RunStore, person: str, issued: float) -> bool:
    """Whether a person has signed out since a sign-in."""
    ended = select(SignInRow.ended).where(SignInRow.person == person)
    with store.engine.connect() as connection:
        last = connection.execute(ended).scalar()
    return last is not None and issued <= last
