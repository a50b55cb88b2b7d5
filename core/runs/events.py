"""State and RunEvent: what a run says about itself, in order, for anyone who asks later.

"Event" alone is the accountant's word; a `RunEvent` is what a run said. The worker appends, pages
read. Events are never changed.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

EventKind = Literal[
    "phase", "progress", "metrics", "preview", "note", "significant_sets", "state", "device"
]  # fmt: skip


WAITS_FOR_SLOT = "Waiting for a free slot."  # of a queued run, on one machine


class State(StrEnum):
    """Where a run is in its life: queued → running → (paused) → done, failed, cancelled or lost."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"

    @property
    def live(self) -> bool:
        """Whether the run may still change by itself, so that a page should keep looking."""
        return self in (State.QUEUED, State.RUNNING)

    @property
    def final(self) -> bool:
        """Whether nothing can be asked of the run any more."""
        return self in (State.DONE, State.CANCELLED)


class RunEvent(BaseModel):
    """One stored event of a run.

    Kinds are those of `core.models.synthesizer.FitEvent` and two more:
      state: {"state", "message"}: the run changed its state.
      device: {"device", "cpu_percent", "memory_mb"} and, with a graphics card, {"gpu_percent",
        "gpu_memory_mb", "gpu_name"}: readings of the worker process and its machine.

    Attributes:
      seq: number among the run's events, 1, 2, 3 …; 0 before it is stored.
      time: seconds since 1970-01-01 UTC; 0 before it is stored.
      data: JSON-safe values; NaN and ±inf are stored as null.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int = Field(default=0, ge=0)
    time: float = Field(default=0.0, ge=0.0)
    kind: EventKind
    data: dict[str, Any]


def json_safe(value: Any) -> Any:
    """The value with NumPy scalars, dates and non-finite numbers in forms every JSON reader knows.

    >>> json_safe({"loss": float("nan"), "day": date(2024, 2, 29), "step": np.int64(3)})
    {'loss': None, 'day': '2024-02-29', 'step': 3}
    """
    if isinstance(value, dict):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if isinstance(value, np.ndarray):
        return json_safe(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.isoformat() if isinstance(value, datetime | date) else str(value)
