"""What a fit tells while it runs, and what it is asked in return."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import Any, ClassVar

from core.models.card import Frozen
from core.privacy.plan import Phase


class Signal(StrEnum):
    """What a person asks of a running fit."""

    GO_ON = "go_on"
    PAUSE = "pause"
    CANCEL = "cancel"


class FitCancelled(Exception):
    """The observer asked to cancel; what was released is kept in the checkpoint."""


class FitPaused(Exception):
    """The observer asked to pause; the checkpoint holds everything needed to go on."""


class FitEvent(Frozen):
    """One thing a fit tells its observer; one of the classes below.

    No event may carry anything computed from real rows except through a released statistic.
    """

    kind: ClassVar[str]

    @property
    def data(self) -> dict[str, Any]:
        """The event as plain values, as the journal of a run keeps them."""
        return self.model_dump()


class PhaseStarted(FitEvent):
    """A phase begins.

    Attributes:
      name: as in the plan or in `Card.stages`.
    """

    kind = "phase"
    name: str
    title: str
    private: bool = False


class Progress(FitEvent):
    """`step` of `steps` are done; `unit` says of what."""

    kind = "progress"
    step: int
    steps: int
    phase: str
    unit: str = "steps"


class Metrics(FitEvent):
    """Values for live charts by name, after `step` steps; `Card.charts` says which are drawn."""

    kind = "metrics"
    step: int
    values: dict[str, float]

    @property
    def data(self) -> dict[str, Any]:
        """See `FitEvent.data`: the values beside the step."""
        return {"step": self.step, **self.values}


class Preview(FitEvent):
    """A few synthetic rows as records: post-processing, so free."""

    kind = "preview"
    rows: list[dict[str, Any]]


class Note(FitEvent):
    """A plain sentence."""

    kind = "note"
    text: str


class Interaction(Frozen):
    """Columns that go together beyond noise and chance, going by a release.

    Attributes:
      score: standard deviations above what noise and chance alone show, > 0.
      target: whether how they go together differs between the target's values.
    """

    columns: tuple[str, ...]
    score: float
    target: bool = False


class SignificantSets(FitEvent):
    """All significant sets so far, largest score first; a function of releases, so free to show."""

    kind = "significant_sets"
    sets: tuple[Interaction, ...]

    @property
    def data(self) -> dict[str, Any]:
        """See `FitEvent.data`: as JSON reads it back."""
        return self.model_dump(mode="json")


OnEvent = Callable[[FitEvent], Signal]


class Emitter:
    """Sends events to an observer and does as it asks.

    Args:
      keep: writes the checkpoint before a signal to stop is followed.
      obeys: signals that are followed; where stopping would lose a release that is paid for, fewer.
    """

    def __init__(
        self,
        on_event: OnEvent,
        *,
        keep: Callable[[], None] | None = None,
        obeys: Collection[Signal] = (Signal.PAUSE, Signal.CANCEL),
    ):
        self._on_event = on_event
        self._keep = keep
        self._obeys = frozenset(obeys)

    def send(self, event: FitEvent) -> None:
        """Tell the observer.

        Raises:
          FitCancelled, FitPaused: its signal was followed, after the checkpoint was written.
        """
        signal = self._on_event(event)
        if signal not in self._obeys:
            return
        if self._keep is not None:
            self._keep()
        raise FitCancelled if signal is Signal.CANCEL else FitPaused

    def phase(self, name: str, title: str, *, private: bool = False) -> None:
        """A phase begins; see `PhaseStarted` and `send`."""
        self.send(PhaseStarted(name=name, title=title, private=private))

    def release(self, phase: Phase) -> Callable[[int, int], None]:
        """A release of the plan begins; returns what tells of its rows, see `rows`."""
        self.phase(phase.name, phase.title, private=True)
        return self.rows(phase.name)

    def rows(self, phase: str, *, pausable: bool = False) -> Callable[[int, int], None]:
        """Tells of (rows done, rows in all) while the table is read; see `Progress`.

        Args:
          pausable: whether to follow a signal to pause here too. A release is charged before it
            reads and kept after, so it would be lost; the next event brings the signal again.
        """
        obeys = self._obeys if pausable else self._obeys - {Signal.PAUSE}
        reading = Emitter(self._on_event, keep=self._keep, obeys=obeys)

        def tick(done: int, total: int) -> None:
            reading.send(Progress(step=done, steps=total, phase=phase, unit="rows"))

        return tick
