"""Launcher: where runs are worked off, on this machine or on others."""

from __future__ import annotations

from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from core.message import Message
from core.models.shaped_output import Shape
from core.runs.events import State

SETTING = "FACSIMILE_LAUNCHER"  # where runs are worked off

REFUSED = 3  # exit status of sampling: the sentence on stdout says why such rows cannot be had


class SampleRequest(BaseModel):
    """Synthetic records to draw from a saved model.

    Attributes:
      rows: how many records, ≥ 1.
      seed: of the sampling; None draws one.
      escape_formulas: write cells that a spreadsheet would run as formulas as text (CSV only).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: int
    seed: int | None = None
    format: Literal["csv", "parquet", "xlsx"] = "csv"
    escape_formulas: bool = False
    shape: Shape = Shape()


def facts_name(table: str) -> str:
    """The file that says what became of a request, beside that of the table that was made."""
    return f"{table}.json"


def not_resumable(state: State) -> Message:
    """Why a run in this state cannot go on."""
    return Message("A run that is {value} cannot be resumed.", value=state.value)


class Launcher(Protocol):
    """Starts workers for the runs of a store, and samples from the models they saved."""

    @property
    def restarts(self) -> int:
        """How often a run whose machine was lost goes on elsewhere by itself, ≥ 0."""

    def submit(self, run_id: str) -> None:
        """Start a queued run, or leave it in the queue until there is room.

        Raises:
          NotFoundError: there is no such run.
        """

    def resume(self, run_id: str) -> None:
        """Queue a paused, lost or failed run again and start it when there is room.

        Raises:
          RunStoreError: the run is in no state to go on.
        """

    def pump(self) -> list[str]:
        """Start queued runs while there is room; the ids of those that this call started.

        Cheap when there is nothing to do, and safe when several processes call it at once.
        """

    def reachable(self) -> bool:
        """Whether a worker could be started now, as far as this process can see; starts none."""

    def withdraw(self, run_id: str) -> None:
        """Give up a place that a run has in a queue of the launcher's own, if it has one.

        To be called when the run was paused or cancelled before it started.
        """

    def sample(self, run_id: str, name: str, request: SampleRequest) -> None:
        """Draw records from a run's saved model into a file of its `exports`; waits for it.

        Raises:
          RunStoreError: the sampling failed, or what is asked for is too rare; no file is left.
        """
