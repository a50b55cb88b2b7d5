"""Whose clock and whose process number: what several machines on one database agree on.

Heartbeats are written and judged by the database server's clock, since the machines' own may differ
by more than a heartbeat may be old. Who uses a SQLite file has one clock.
"""

from __future__ import annotations

import functools
import hashlib
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Engine, func, select

from core.runs.storage.engine import is_shared

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PROCESSES = "/proc/self/ns/pid"


def elapsed() -> float:
    """Seconds since this machine started, those included in which it was asleep.

    `time.monotonic` leaves them out on Linux: who slept would believe that it has just been heard.
    """
    asleep_too = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if asleep_too is None else time.clock_gettime(asleep_too)


@dataclass(frozen=True)
class SharedClock:
    """The database's clock, read once.

    Attributes:
      now: seconds since 1970-01-01 UTC.
      since: when the database began to answer, likewise; 0 for a SQLite file. Nobody could give a
        sign of life before.
    """

    now: float
    since: float = 0.0

    def silence(self, heartbeat: float | None) -> float:
        """Seconds since a sign of life, or since one could be given; inf for none.

        Never negative: a sign from the future says that the clock was set back since.
        """
        return float("inf") if heartbeat is None else abs(self.now - max(heartbeat, self.since))


def moment(engine: Engine) -> Any:
    """The present moment for a statement to write, by the clock that all users share."""
    return _epoch(func.clock_timestamp()) if is_shared(engine) else time.time()


def read_clock(engine: Engine) -> SharedClock:
    """What the clock says that `moment` writes."""
    if not is_shared(engine):
        return SharedClock(time.time())
    question = select(_epoch(func.clock_timestamp()), _epoch(func.pg_postmaster_start_time()))
    with engine.connect() as connection:
        now, since = connection.execute(question).one()
    return SharedClock(float(now), float(since))


def _epoch(moment: Any) -> Any:
    return func.date_part("epoch", moment)


def machine_name(*, shared: bool) -> str:
    """What tells whether a process number is one of this machine.

    Args:
      shared: several machines use the database. Two of them may have one name (copies of an image,
        containers), so there it is what this kernel drew when it started, and in which space of
        process numbers this process is.
    """
    return _kernel() if shared else socket.gethostname()


@functools.cache
def _kernel() -> str:
    try:
        identity = BOOT_ID.read_text(encoding="ascii") + os.readlink(PROCESSES)
    except OSError:  # no Linux
        identity = f"{socket.gethostname()} {psutil.boot_time():.0f}"
    return hashlib.sha256(identity.encode()).hexdigest()[:16]
