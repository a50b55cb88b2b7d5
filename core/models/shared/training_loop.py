"""The training loop: events by the clock, wishes followed, checkpoints never half-written.

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

from core.models.events import Emitter, Metrics, Observe, Preview, Progress
from core.models.synthesizer import FitContext
from core.privacy.meter import Meter
from core.privacy.plan import Phase

__all__ = ["Checkpoint", "Trainable", "TrainingLoop", "private_loop", "save_whole"]

POINTS = 64  # at least so many points of a curve, however soon a phase is over


@dataclass(frozen=True, kw_only=True)
class TrainingLoop:
    """Steps to the end of a phase.

    Attributes:
      name, title: of the phase, for people.
      start, steps: steps done before, steps in all.
      step: does one step; may return values on the device, read only when told of.
      metrics: those values as named floats; must be functions of releases alone.
      preview: a few synthetic rows as records; none while there is nothing to see.
      keep: writes the checkpoint.
      private: whether steps read real rows, through noise.
    """

    name: str
    title: str
    start: int
    steps: int
    step: Callable[[], Any]
    metrics: Callable[[Any], dict[str, float]]
    preview: Callable[[], list[dict[str, Any]]]
    keep: Callable[[], None]
    private: bool = False
    event_seconds: float = 0.5
    preview_seconds: float = 4.0
    checkpoint_seconds: float = 20.0

    def run(self, observe: Observe) -> None:
        """Do all steps that are left.

        Raises:
          FitCancelled, FitPaused: the observer's wish, after the checkpoint is written.
        """
        emitter = Emitter(observe, keep=self.keep)
        emitter.phase(self.name, self.title, private=self.private)
        self.keep()  # from here on a crash leaves something to go on from
        told = previewed = saved = time.monotonic()
        for step in range(self.start + 1, self.steps + 1):
            values = self.step()
            now = time.monotonic()
            if now - told < self.event_seconds and step < self.steps:
                if step % max(1, self.steps // POINTS) == 0:
                    emitter.send(Metrics(step=step, values=self.metrics(values)))
                continue
            told = now
            emitter.send(Progress(step=step, steps=self.steps, phase=self.name))
            emitter.send(Metrics(step=step, values=self.metrics(values)))
            if now - previewed > self.preview_seconds or step == self.steps:
                previewed = now
                rows = self.preview()
                if rows:
                    emitter.send(Preview(rows=rows))
            if now - saved > self.checkpoint_seconds:
                saved = now
                self.keep()
        self.keep()


class Trainable(Protocol):
    """What a private phase trains, a step at a time.

    Attributes:
      done: steps so far.
    """

    done: int

    def step(self) -> None:
        """One step."""
        ...

    def metrics(self) -> dict[str, float]:
        """Named floats, functions of releases alone."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, tensors and plain values only."""
        ...


def private_loop(
    phase: Phase,
    trained: Trainable,
    *,
    steps: int,
    checkpoint: Checkpoint,
    key: str,
    preview: Callable[[], list[dict[str, Any]]],
    metrics: Callable[[], dict[str, float]] | None = None,
) -> TrainingLoop:
    """The loop of a private phase.

    Args:
      phase: of the plan.
      trained: what it trains.
      steps: in all; one may run the phase's mechanism more than once.
      checkpoint: what is kept of it goes there.
      key: under this name.
      preview: see `TrainingLoop`.
      metrics: what is told of it; its own when None.
    """
    tell = trained.metrics if metrics is None else metrics
    return TrainingLoop(
        name=phase.name,
        title=phase.title,
        start=trained.done,
        steps=steps,
        step=trained.step,
        metrics=lambda _: tell(),
        preview=preview,
        keep=lambda: checkpoint.keep(**{key: trained.state_dict()}),
        private=True,
    )


@dataclass
class Checkpoint:
    """One file that a fit goes on from, and the meter that must never lag behind it.

    Attributes:
      file: where it lies.
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
        save_whole(self.state, self.file)
        self.meter.settle()


def save_whole(state: dict[str, Any], file: Path) -> None:
    """Write tensors and plain values so that a crash leaves the old file or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(".half")
    torch.save(state, half)
    half.replace(file)
