"""Conducting a training loop: events by the clock, wishes followed, checkpoints never half-written.

Knows nothing of any model: a model hands in how to step and what to tell.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from core.models.synthesizer import FitCancelled, FitEvent, FitPaused, Observe, Wish
from core.privacy.meter import Meter
from core.privacy.plan import Phase

__all__ = ["Checkpoint", "Loop", "announce", "follow", "keep_checkpoint", "run_loop"]

POINTS = 64  # at least so many points of a curve, however soon a phase is over


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A training loop seen from outside.

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


def run_loop(loop: Loop, observe: Observe) -> None:
    """Steps to the end.

    Raises:
      FitCancelled, FitPaused: the observer's wish, after the checkpoint is written.
    """
    data = {"name": loop.name, "title": loop.title, "private": loop.private}
    follow(observe(FitEvent(kind="phase", data=data)), loop.keep)
    loop.keep()  # from here on a crash leaves something to go on from
    told = previewed = kept = time.monotonic()
    for step in range(loop.start + 1, loop.steps + 1):
        values = loop.step()
        now = time.monotonic()
        if now - told < loop.event_seconds and step < loop.steps:
            if step % max(1, loop.steps // POINTS) == 0:
                metrics = {"step": step, **loop.metrics(values)}
                follow(observe(FitEvent(kind="metrics", data=metrics)), loop.keep)
            continue
        told = now
        progress = {"step": step, "steps": loop.steps, "phase": loop.name, "unit": "steps"}
        follow(observe(FitEvent(kind="progress", data=progress)), loop.keep)
        metrics = {"step": step, **loop.metrics(values)}
        follow(observe(FitEvent(kind="metrics", data=metrics)), loop.keep)
        if now - previewed > loop.preview_seconds or step == loop.steps:
            previewed = now
            rows = loop.preview()
            if rows:
                event = FitEvent(kind="preview", data={"rows": rows})
                follow(observe(event), loop.keep)
        if now - kept > loop.checkpoint_seconds:
            kept = now
            loop.keep()
    loop.keep()


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
    def open(cls, file: Path, meter: Meter, *, resume: bool, fresh: dict[str, Any]) -> Checkpoint:
        """The kept one when a fit goes on and there is one, else a fresh one."""
        if resume and file.exists():
            return cls(file, meter, torch.load(file, weights_only=True, map_location="cpu"))
        return cls(file, meter, fresh)

    def keep(self, **parts: Any) -> None:
        """Add parts to the state and write it."""
        self.state.update(parts)
        keep_checkpoint(self.state, self.file)
        self.meter.settle()


def announce(observe: Observe, phase: Phase) -> None:
    """Say that a private phase begins; a wish to stop is followed with nothing spent on it."""
    data = {"name": phase.name, "title": phase.title, "private": True}
    follow(observe(FitEvent(kind="phase", data=data)))


def follow(wish: Wish, keep: Callable[[], None] | None = None) -> None:
    """Do as the observer wishes, keeping first what was made."""
    if wish is Wish.GO_ON:
        return
    if keep is not None:
        keep()
    raise FitCancelled if wish is Wish.CANCEL else FitPaused


def keep_checkpoint(state: dict[str, Any], file: Path) -> None:
    """Write tensors and plain values so that a crash leaves the old file or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(".half")
    torch.save(state, half)
    half.replace(file)
