"""Sign-ins that are over before their time, for all servers of the workspace.

A sign-in is known by when the provider issued it. Signing out ends every sign-in of a person that
was seen until then, on whatever machine: what was seen last is kept, so that no two clocks are
compared.
"""

from __future__ import annotations

from contextlib import suppress

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from core.runs.storage.database import SignInRow
from core.runs.storage.table_store import TableStore


def record_sign_in(store: TableStore, person: str, issued: float) -> None:
    """Record that somebody came with a sign-in.

    Args:
      issued: when the provider issued the sign-in, in seconds by its clock.
    """
    with suppress(IntegrityError), store.engine.begin() as connection:  # they came before
        connection.execute(insert(SignInRow).values(person=person, newest=issued))
    later = update(SignInRow).where(SignInRow.person == person, SignInRow.newest < issued)
    with store.engine.begin() as connection:
        connection.execute(later.values(newest=issued))


def end_sign_ins(store: TableStore, person: str, issued: float) -> None:
    """End all sign-ins of a person that were seen, and the one at hand."""
    record_sign_in(store, person, issued)
    theirs = update(SignInRow).where(SignInRow.person == person)
    with store.engine.begin() as connection:
        connection.execute(theirs.values(ended=SignInRow.newest))


def sign_in_ended(store: TableStore, person: str, issued: float) -> bool:
    """Whether a person has signed out since a sign-in."""
    ended = select(SignInRow.ended).where(SignInRow.person == person)
    with store.engine.connect() as connection:
        last = connection.execute(ended).scalar()
    return last is not None and issued <= last
