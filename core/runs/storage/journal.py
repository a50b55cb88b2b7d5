"""Journal: the append-only events of runs, and what live charts draw from them."""

from __future__ import annotations

import time
from typing import Any

import pandas as pd
from sqlalchemy import Engine, func, insert, literal, or_, select
from sqlalchemy.exc import IntegrityError

from core.message import from_json, to_json
from core.models.events import FitEvent
from core.privacy.ledger.transaction import repeatable, sqlstate
from core.runs.errors import RunStoreError
from core.runs.events import EventKind, RunEvent, json_safe
from core.runs.storage.database import EventRow, RunRow
from core.runs.storage.engine import is_shared

WITH_SENTENCES = ("phase", "note", "state")  # kinds of events
MOST_POINTS = 400  # of a chart
APPEND_TRIES = 20  # two writers that chose the same number: the second chooses again
NO_SUCH_RUN = "23503"  # what PostgreSQL calls a broken foreign key, in any language


class Journal:
    """Events of runs: appended once, numbered from 1 in each run, never changed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def append(self, run_id: str, event: FitEvent | RunEvent) -> int:
        """Store an event and return its number among the run's events.

        Raises:
          RunStoreError: the run is gone.
        """
        key = EventRow.run_id == run_id
        number = select(func.coalesce(func.max(EventRow.seq), 0) + 1).where(key).scalar_subquery()
        values = {
            "run_id": run_id,
            "seq": number,
            "time": time.time(),
            "kind": event.kind,
            "data": _stored(event.kind, event.data),
        }
        statement = insert(EventRow).values(values).returning(EventRow.seq)

        @repeatable
        def insert_one() -> int:
            with self._engine.begin() as connection:
                if is_shared(self._engine):
                    # writers there do not wait for each other by themselves; other rows that
                    # refer to the run may be added meanwhile
                    run = select(RunRow.id).where(RunRow.id == run_id)
                    connection.execute(run.with_for_update(key_share=True))
                return int(connection.execute(statement).scalar_one())

        for _ in range(APPEND_TRIES):
            try:
                return insert_one()
            except IntegrityError as error:
                if _names_no_run(error):
                    raise RunStoreError(
                        "The run was deleted, so its event was not saved."
                    ) from None
        raise RunStoreError("Too many processes are writing events of this run. Try again.")

    def events(
        self,
        run_id: str,
        after: int = 0,
        *,
        kind: EventKind | None = None,
        limit: int | None = None,
    ) -> list[RunEvent]:
        """Events in order, those numbered above `after`; the first `limit` of them.

        Args:
          after: number of the last event that is known already, ≥ 0.
        """
        query = select(EventRow.seq, EventRow.time, EventRow.kind, EventRow.data)
        query = query.where(EventRow.run_id == run_id, EventRow.seq > after).order_by(EventRow.seq)
        if kind is not None:
            query = query.where(EventRow.kind == kind)
        if limit is not None:
            query = query.limit(limit)
        with self._engine.connect() as connection:
            return [
                RunEvent(seq=seq, time=when, kind=what, data=_read(what, data))
                for seq, when, what, data in connection.execute(query)
            ]

    def latest(self, run_id: str, kind: EventKind) -> RunEvent | None:
        """The newest event of a kind, or None."""
        query = (
            select(EventRow.seq, EventRow.time, EventRow.data)
            .where(EventRow.run_id == run_id, EventRow.kind == kind)
            .order_by(EventRow.seq.desc())
            .limit(1)
        )
        with self._engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        return (
            None
            if row is None
            else RunEvent(seq=row[0], time=row[1], kind=kind, data=_read(kind, row[2]))
        )

    def series(self, run_id: str) -> pd.DataFrame:
        """A run's metrics, thinned evenly in the database, for live charts.

        Returns:
          About `MOST_POINTS` rows, an event each, the newest among them: `seq`, `time` (s since
          1970-01-01 UTC), `seconds` (since the first), then its numbers by name; empty without any.
        """
        key = (EventRow.run_id == run_id, EventRow.kind == "metrics")
        rank = func.row_number().over(order_by=EventRow.seq)
        ranked = select(EventRow.seq.label("seq"), (rank - 1).label("rank")).where(*key).subquery()
        with self._engine.connect() as connection:
            span = select(func.count(), func.max(EventRow.seq), func.min(EventRow.seq)).where(*key)
            count, newest, oldest = connection.execute(span).one()
            if count == 0:
                return pd.DataFrame({"seq": [], "time": [], "seconds": []})
            stride = max(1, -(-int(count) // MOST_POINTS))
            thin = select(ranked.c.seq).where(
                or_(ranked.c.rank % literal(stride) == 0, ranked.c.seq == newest)
            )
            query = select(EventRow.seq, EventRow.time, EventRow.data)
            query = query.where(EventRow.run_id == run_id, EventRow.seq.in_(thin))
            rows = connection.execute(query.order_by(EventRow.seq)).all()
        first = rows[0].time
        return pd.DataFrame(
            [
                {"seq": seq, "time": when, "seconds": when - first, **_numbers(data)}
                for seq, when, data in rows
            ]
        )


def without_repeated_steps(series: pd.DataFrame) -> pd.DataFrame:
    """A series without steps that a later phase, or a resumed fit, reported again.

    Args:
      series: with a column `step`, in the order of events.

    >>> steps = pd.DataFrame({"step": [1, 2, 3, 4, 3, 4, 5]})  # went on from a checkpoint at 2
    >>> without_repeated_steps(steps).index.tolist()
    [0, 1, 4, 5, 6]
    """
    steps = series["step"]
    least_to_come = steps[::-1].cummin()[::-1].shift(-1)
    return series[~(steps >= least_to_come)]


def _stored(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """An event's data as JSON; only kinds without cells of a table may hold sentences."""
    safe: dict[str, Any] = json_safe(data)
    return to_json(safe) if kind in WITH_SENTENCES else safe


def _read(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return from_json(data) if kind in WITH_SENTENCES else data


def _names_no_run(error: IntegrityError) -> bool:
    return sqlstate(error.orig) == NO_SUCH_RUN or "foreign key" in str(error.orig).lower()


def _numbers(data: dict[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in data.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
