"""Processes and their machine: is a worker alive, and what does it use."""

from __future__ import annotations

import functools
import socket
import time
from typing import Any

import psutil
import pynvml

from core.runs.storage.database import RunRow

__all__ = ["Readings", "holder_gone", "process_alive"]

STALE_SECONDS = 60.0  # without a sign of life for so long, a worker on another machine is gone
START_SECONDS = 60.0  # a claimed run whose worker has not shown up by then never started
MIB = 1024.0**2


def process_alive(pid: int, started: float) -> bool:
    """Whether the process with that number *and* start time still works (not a zombie).

    Args:
      pid: process number on this machine.
      started: its start time as psutil tells it, seconds since 1970-01-01.
    """
    try:
        process = psutil.Process(pid)
        # a number is reused, a start time is not; 2 s absorb corrections of the machine's clock
        same = abs(process.create_time() - started) < 2.0
        return bool(same and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def holder_gone(run: RunRow) -> bool:
    """Whether the worker that should hold a running run does not exist any more.

    On this machine the process tells, however long its last heartbeat is ago: a machine that slept
    wakes with its workers. On another machine only the heartbeat can tell.
    """
    now = time.time()
    if run.host != socket.gethostname():
        return run.heartbeat is None or now - run.heartbeat > STALE_SECONDS
    if run.pid is None or run.pid_started is None:
        return run.claimed is None or now - run.claimed > START_SECONDS
    return not process_alive(run.pid, run.pid_started)


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
        """CPU in % of one core, resident memory in MiB, and the first graphics card's if any.

        Args:
          device: the name that the fit runs on, passed through.
        """
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
