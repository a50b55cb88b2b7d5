"""Who holds a run: statements that take it, keep it, and ask whether it is still one's own."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from sqlalchemy import Engine, Update, and_, func, or_, update

from core.runs.events import State
from core.runs.storage.database import RunRow
from core.runs.storage.engine import is_shared
from core.runs.storage.processes.clock import machine_name, moment


def held_by(engine: Engine, pid: int) -> Any:
    """Whether a process of this machine holds a run, for a statement.

    Where several machines share the database, another one's process may have the same number.
    """
    mine = RunRow.pid == pid
    return and_(mine, RunRow.host == machine_name(shared=True)) if is_shared(engine) else mine


def _signed(engine: Engine) -> dict[str, Any]:
    return {"host": machine_name(shared=is_shared(engine)), "heartbeat": moment(engine)}


def to_claim(engine: Engine, run_id: str, slot: int | None, states: Collection[State]) -> Update:
    """Take a run, to start its worker in a slot.

    Args:
      slot: the number of the slot, no other running run has it; None where others keep the queue.
    """
    now = time.time()
    return (
        update(RunRow)
        .where(RunRow.id == run_id, RunRow.state.in_(list(states)))
        .values(
            state=State.RUNNING,
            ended=None,
            slot=slot,
            claimed=now,
            started=func.coalesce(RunRow.started, now),
            message="Starting.",
            pid=None,
            **_signed(engine),
        )
    )


def to_adopt(engine: Engine, run_id: str, *, pid: int, started: float) -> Update:
    """Say which process of this machine holds a run that was taken."""
    free = or_(RunRow.pid.is_(None), held_by(engine, pid))
    return (
        update(RunRow)
        .where(RunRow.id == run_id, RunRow.state == State.RUNNING, free)
        .values(pid=pid, pid_started=started, **_signed(engine))
    )


def to_beat(engine: Engine, run_id: str, pid: int) -> Update:
    """Give a sign of life of the process that holds a run."""
    return (
        update(RunRow)
        .where(RunRow.id == run_id, RunRow.state == State.RUNNING, held_by(engine, pid))
        .values(heartbeat=moment(engine))
    )
