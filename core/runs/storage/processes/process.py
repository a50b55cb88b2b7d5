"""Processes and their machine: who holds a run, is a worker alive, and what does it use."""

from __future__ import annotations

import functools
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import psutil
import pynvml
from sqlalchemy import Engine, Update, and_, func, or_, select, update
from sqlalchemy.orm import Session

from core.runs.events import State
from core.runs.storage.database import RunRow
from core.runs.storage.engine import is_shared
from core.runs.storage.processes.clock import SharedClock, machine_name, moment, read_clock

STALE_SECONDS = 60.0  # without a sign of life for so long, a worker on another machine is gone
START_SECONDS = 60.0  # a claimed run whose worker has not shown up by then never started
MIB = 1024.0**2


def started_since_boot(process: psutil.Process) -> float:
    """When the process started, in seconds since the machine did: no clock that is set moves it."""
    while True:
        boot = psutil.boot_time()
        started = process.create_time()
        if psutil.boot_time() == boot:  # else the clock was set between the two
            return float(started - boot)


def process_alive(pid: int, started: float) -> bool:
    """Whether the process with that number *and* start time still works (not a zombie).

    Args:
      started: what `started_since_boot` returned.
    """
    try:
        process = psutil.Process(pid)
        # a number is reused, a start time is not
        same = abs(started_since_boot(process) - started) < 0.1
        return bool(same and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def holder_gone(run: RunRow, machine: str, clock: SharedClock) -> bool:
    """Whether the worker that should hold a running run does not exist any more.

    On this machine the process tells, however long its last heartbeat is ago: a machine that slept
    wakes with its workers. On another machine only the heartbeat can tell.

    Args:
      clock: of the database, read after the run was.
    """
    if run.host != machine:
        return clock.silence(run.heartbeat) > STALE_SECONDS
    if run.pid is None or run.pid_started is None:
        # either way: a clock that was set back must not let it hold its slot until it is made up
        return run.claimed is None or abs(time.time() - run.claimed) > START_SECONDS
    return not process_alive(run.pid, run.pid_started)


@dataclass(frozen=True)
class LostRun:
    """A run whose worker is gone, as it was seen: a sign of life since then makes it untrue."""

    run_id: str
    heartbeat: float | None


def runs_without_worker(engine: Engine) -> list[LostRun]:
    """Running runs whose worker does not exist any more."""
    query = select(RunRow).where(RunRow.state == State.RUNNING)
    machine = machine_name(shared=is_shared(engine))
    with Session(engine) as session:
        rows = session.scalars(query).all()
    clock = read_clock(engine) if rows else SharedClock(0.0)
    return [LostRun(row.id, row.heartbeat) for row in rows if holder_gone(row, machine, clock)]


class Readings:
    """What this process uses of the machine, read again at each call of `read`.

    Attributes:
      peak_memory_mb: largest resident size seen so far, MiB.
    """

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._process.cpu_percent()  # the first call only starts the clock
        self.peak_memory_mb = 0.0

    def read(self, device: str) -> dict[str, Any]:
        """CPU in % of one core, resident memory in MiB, and the first graphics card's if any."""
        memory = self._process.memory_info().rss / MIB
        self.peak_memory_mb = max(self.peak_memory_mb, memory)
        reading = {
            "device": device,
            "cpu_percent": round(self._process.cpu_percent(), 1),
            "memory_mb": round(memory, 1),
        }
        return reading | _gpu_reading()


@functools.cache
def _gpu_handle() -> Any:
    """The first NVIDIA card, or None; asked once, as a machine without a driver never gets one."""
    try:
        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetHandleByIndex(0)
    except pynvml.NVMLError:
        return None


def _gpu_reading() -> dict[str, Any]:
    handle = _gpu_handle()
    if handle is None:
        return {}
    try:
        used = pynvml.nvmlDeviceGetUtilizationRates(handle).gpu
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle).used / MIB
        name = pynvml.nvmlDeviceGetName(handle)
    except pynvml.NVMLError:
        return {}
    return {"gpu_percent": used, "gpu_memory_mb": round(memory, 1), "gpu_name": name}


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
