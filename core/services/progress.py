"""How far a run is, and what it has released so far, from its events."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from core.privacy.accounting.accountant import epsilon
from core.runs.storage.store import RunStore

__all__ = ["Progress", "epsilon_so_far", "progress"]


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
      phase, title: of the present phase; empty before the first.
      step, steps: of the present phase's loop; 0 of 0 when it has none.
      fraction: step / steps, in [0, 1].
      steps_per_second: in the present phase, or None before it is known.
      eta_seconds: until the present phase ends at that speed, or None.
      elapsed_seconds: since the run's start.
    """

    phase: str
    title: str
    step: int
    steps: int
    fraction: float
    steps_per_second: float | None
    eta_seconds: float | None
    elapsed_seconds: float


def progress(store: RunStore, run_id: str) -> Progress:
    """How far a run is, from its newest events."""
    run = store.run(run_id)
    phase = store.latest(run_id, "phase")
    newest = store.latest(run_id, "progress")
    end = run.ended.timestamp() if run.ended is not None else time.time()
    elapsed = 0.0 if run.started is None else max(0.0, end - run.started.timestamp())
    name = "" if phase is None else str(phase.data.get("name", ""))
    title = "" if phase is None else str(phase.data.get("title", name))
    if phase is None or newest is None or newest.seq < phase.seq:
        return Progress(name, title, 0, 0, 0.0, None, None, elapsed)
    step, steps = int(newest.data.get("step", 0)), int(newest.data.get("steps", 0))
    # a resumed phase begins at the step of its checkpoint: count from its first progress
    first = store.events(run_id, after=phase.seq, kind="progress", limit=1)[0]
    done, seconds = step - int(first.data.get("step", 0)), newest.time - first.time
    speed = done / seconds if done > 0 and seconds > 0 else None
    eta = max(0.0, (steps - step) / speed) if speed else None
    fraction = min(1.0, step / steps) if steps else 0.0
    return Progress(name, title, step, steps, fraction, speed, eta, elapsed)


def epsilon_so_far(store: RunStore, run_id: str) -> float | None:
    """ε of what a running fit has released so far; None where no privacy is claimed.

    Counted from its events: phases before the present one ran in full, the present one as far as
    its newest progress says. Rounded up to a twentieth of a phase, so that few values are computed.
    A picture to watch by: what is claimed at the end comes from the meter.
    """
    run = store.run(run_id)
    if not run.private:
        return None
    newest = store.latest(run_id, "phase")
    present = "" if newest is None else str(newest.data.get("name", ""))
    begun = [e.data.get("name") for e in store.events(run_id, kind="phase", limit=100)]
    executed = []
    for phase in run.plan.phases:
        if phase.name not in begun:
            continue
        count = phase.count
        if phase.name == present and count > 1:
            count = _rounded(progress(store, run_id).fraction, count)
        executed.append(phase.model_copy(update={"count": count}))
    return epsilon(executed, run.plan.budget.delta)[0] if executed else 0.0


def _rounded(fraction: float, count: int) -> int:
    """Runs of a phase that a fraction stands for, rounded up to a twentieth; at least one.

    >>> [_rounded(f, 4000) for f in (0.0, 0.001, 0.05, 0.51, 1.0)]
    [1, 200, 200, 2200, 4000]
    """
    return max(1, min(count, math.ceil(fraction * 20 - 1e-9) * math.ceil(count / 20)))
