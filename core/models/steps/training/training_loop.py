"""The training loop: events by the clock, signals followed, checkpoints never half-written.

Knows nothing of any model: a model hands in what is trained and what to show of it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from core.models.events import Emitter, Metrics, OnEvent, PhaseStarted, Preview, Progress
from core.models.step import FitContext
from core.privacy.meter import Meter
from core.privacy.plan import Phase
from core.writing.whole_files import replacing

POINTS = 64  # at least so many points of a curve, however soon a phase is over
EVENT_SECONDS, PREVIEW_SECONDS, CHECKPOINT_SECONDS = 0.5, 4.0, 20.0
PREVIEW_SHARE = 0.03  # of the time, at most, that goes into previews


class Trainable(Protocol):
    """What a phase trains, a step at a time."""

    done: int

    def step(self) -> None:
        """One step."""

    def metrics(self) -> dict[str, float]:
        """Named floats, functions of releases alone."""

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, tensors and plain values only."""


def train(
    phase: PhaseStarted,
    trained: Trainable,
    *,
    steps: int,
    checkpoint: Checkpoint,
    key: str,
    preview: Callable[[], list[dict[str, Any]]],
    on_event: OnEvent,
) -> None:
    """Do all steps of a phase that are left.

    Args:
      steps: in all; one may run the phase's mechanism more than once.
      preview: a few synthetic rows as records; none while there is nothing to see.
      on_event: receives events by the clock, but of `POINTS` metrics at least.

    Raises:
      FitCancelled, FitPaused: the observer's signal, after the checkpoint is written.
    """

    def keep() -> None:
        checkpoint.keep(**{key: trained.state_dict()})

    emitter = Emitter(on_event, keep=keep)
    emitter.send(phase)
    keep()  # from here on a crash leaves something to go on from
    reported = saved = time.monotonic()
    preview_at = reported + PREVIEW_SECONDS
    for step in range(trained.done + 1, steps + 1):
        trained.step()
        now = time.monotonic()
        if now - reported < EVENT_SECONDS and step < steps:
            if step % max(1, steps // POINTS) == 0:
                emitter.send(Metrics(step=step, values=trained.metrics()))
            continue
        reported = now
        emitter.send(Progress(step=step, steps=steps, phase=phase.name))
        emitter.send(Metrics(step=step, values=trained.metrics()))
        if now > preview_at or step == steps:
            rows = preview()
            if rows:
                emitter.send(Preview(rows=rows))
            took = time.monotonic() - now
            preview_at = now + max(PREVIEW_SECONDS, took / PREVIEW_SHARE)
        if now - saved > CHECKPOINT_SECONDS:
            saved = now
            keep()
    keep()


def private(phase: Phase) -> PhaseStarted:
    """The beginning of a phase of the plan."""
    return PhaseStarted(name=phase.name, title=phase.title, private=True)


@dataclass
class Checkpoint:
    """One file that a fit goes on from, and the meter that must never lag behind it.

    Attributes:
      meter: of the guarded table; settled after each write, so that a resumed fit knows exactly
        how much of every phase is left.
      state: tensors and plain values; the fit adds to it as it goes.
    """

    file: Path
    meter: Meter
    state: dict[str, Any]

    @classmethod
    def open(cls, context: FitContext, name: str, meter: Meter) -> Checkpoint:
        """The one that lies in the context's folder when a fit goes on, else one with a seed."""
        file = context.folder / name
        if context.resume and file.exists():
            return cls(file, meter, torch.load(file, weights_only=True, map_location="cpu"))
        seed = secrets.randbits(62) if context.seed is None else context.seed
        return cls(file, meter, {"seed": seed})

    @property
    def seed(self) -> int:
        """Of the fit's data-free randomness."""
        return int(self.state["seed"])

    def keep(self, **parts: Any) -> None:
        """Add parts to the state and write it."""
        self.state.update(parts)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.file) as file:
            torch.save(self.state, file)
        self.meter.settle()
