"""Counts of real records that a plan bought: released once and kept as an artefact of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from core.models.events import Emitter, Observe, Wish
from core.runs.storage.artefacts import ArtefactStore, save_json

if TYPE_CHECKING:  # both need torch, and pages read through the modules that import this one
    from core.privacy.guarded import PrivateTable
    from core.privacy.mechanisms.additive import Mechanism

__all__ = ["release_once"]

Counted = TypeVar("Counted", bound="Mechanism")


def release_once(
    table: PrivateTable,
    phase_name: str,
    mechanism: Callable[[], Counted],
    value: Callable[[Counted, list[float], float], BaseModel],
    *,
    title: str,
    artefacts: ArtefactStore,
    artefact: str,
    observe: Observe,
) -> None:
    """Release the counts of a phase and keep them; nothing where the plan holds no such phase.

    A release that was charged before a crash and not written is not made again.

    Args:
      table: with the plan.
      phase_name: of the phase that pays.
      mechanism: makes what counts the rows; called only when they are counted.
      value: what is kept, from the mechanism, its counts and the noise's standard deviation.
      title: what people read while rows are counted.
      artefacts: of the run.
      artefact: name of the one that is written.
      observe: hears that the phase begins.

    Raises:
      FitCancelled: the observer's wish was followed.
    """
    plan = table.plan
    if all(phase.name != phase_name for phase in plan.phases) or table.meter.runs(phase_name):
        return
    Emitter(observe, obeys=(Wish.CANCEL,)).phase(phase_name, title, private=True)
    counted = mechanism()
    counts = table.release(phase_name, counted).tolist()
    noise_std = plan.phase(phase_name).noise_multiplier * counted.sensitivity
    save_json(artefacts, artefact, value(counted, counts, noise_std))
