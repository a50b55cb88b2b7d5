"""InsideView: whose inside view was open, by whom and when first.

An inside view is made from real rows without noise, so whoever chooses among runs after seeing some
makes a private access that no plan paid for. What is recorded here decides what certificates say.
A report that was computed and never opened is no look; a comment or a verdict written inside is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.runs.storage.database import InsideViewRow, TableRow
from core.runs.storage.table_store import TableStore

SOMEBODY = "someone (no name given)"  # without sign-in, and before a name was given


@dataclass(frozen=True)
class InsideView:
    """One person's first sight of a run's inside view.

    Attributes:
      run_id: of the run, which may have been deleted since.
      time: when first (UTC).
    """

    run_id: str
    author: str
    time: datetime


def record_view(store: TableStore, *, table_id: str, run_id: str, author: str) -> None:
    """Record that somebody has a run's inside view open; the first time of each person is kept.

    Args:
      author: who; blank counts as `SOMEBODY`.
    """
    name = " ".join(author.split())[:120] or SOMEBODY
    with Session(store.engine) as session:
        if session.get(InsideViewRow, (run_id, name)) is not None:
            return
    row = InsideViewRow(
        run_id=run_id,
        author=name,
        table_id=table_id,
        account_id=store.table(table_id).account_id,
        time=time.time(),
    )
    try:
        with Session(store.engine) as session, session.begin():
            session.add(row)
    except IntegrityError:  # two pages of one person opened it at once
        return


def recorded_views(store: TableStore, account_id: str) -> tuple[InsideView, ...]:
    """Every look at a run about these people, oldest first, those at deleted runs too."""
    theirs = select(TableRow.id).where(TableRow.account_id == account_id)
    query = (
        select(InsideViewRow.run_id, InsideViewRow.author, InsideViewRow.time)
        .where(or_(InsideViewRow.account_id == account_id, InsideViewRow.table_id.in_(theirs)))
        .order_by(InsideViewRow.time)
    )
    with store.engine.connect() as connection:
        return tuple(
            InsideView(run_id, author, datetime.fromtimestamp(seconds, UTC))
            for run_id, author, seconds in connection.execute(query)
        )


def viewed_runs(store: TableStore, account_id: str) -> frozenset[str]:
    """Ids of the runs about these people whose inside view was open."""
    return frozenset(one.run_id for one in recorded_views(store, account_id))
