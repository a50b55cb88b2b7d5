"""Counts of real records that a plan buys: a phase, released once, kept as a run's artefact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from core.models.events import Emitter, OnEvent, Signal
from core.privacy.accounting.split import noise_for_share
from core.privacy.plan import Budget, Phase
from core.runs.storage.artefacts import ArtefactStore, save_json
from core.schema.schema import Domain

if TYPE_CHECKING:  # both need torch, and pages read through the modules that import this one
    from core.privacy.guarded import PrivateTable
    from core.privacy.mechanisms.additive import Mechanism

__all__ = ["PaidCounts", "shown_columns"]

Counted = TypeVar("Counted", bound="Mechanism")


def shown_columns(domain: Domain) -> list[str]:
    """Columns whose counts may be bought: modelled, and not tagged as hidden."""
    hidden = {name for names in domain.sensitive.values() for name in names}
    return [column.name for column in domain.modelled if column.name not in hidden]


@dataclass(frozen=True, kw_only=True)
class PaidCounts:
    """Counts of all columns that may be shown, as a plan may buy them.

    Attributes:
      name, title: of the phase.
      what: what is released, for the names of the columns and their domain.
      label, purpose: what the share and the columns are for, in refusals.
      counting: what people read while rows are counted.
      artefact: name of the one that keeps them.
    """

    name: str
    title: str
    what: Callable[[list[str], Domain], str]
    label: str
    purpose: str
    counting: str
    artefact: str

    def phase(self, domain: Domain, budget: Budget, share: float, *, attempts: int = 1) -> Phase:
        """The phase that releases them.

        Args:
          domain: whose columns; tagged ones are left out.
          budget: of the whole plan, with ε < ∞.
          share: of it, in (0, ½].
          attempts: of the plan; the release is made once but all attempts are paid for.

        Raises:
          ValueError: a share out of range, or every column is tagged.
        """
        if not 0.0 < share <= 0.5:
            raise ValueError(f"The {self.label} in 0 to 0.5, not {share:g}.")
        names = shown_columns(domain)
        if not names:
            raise ValueError(f"Every column is hidden, so there is none to {self.purpose}.")
        from dp_accounting.gaussian_mechanism import get_sigma_gaussian  # costs 65 MB

        whole = float(get_sigma_gaussian(budget.epsilon, budget.delta))
        return Phase(
            name=self.name,
            title=self.title,
            what=self.what(names, domain),
            share=share,
            noise_multiplier=noise_for_share(whole, share, count=attempts),
        )

    def release(
        self,
        table: PrivateTable,
        mechanism: Callable[[], Counted],
        value: Callable[[Counted, list[float], float], BaseModel],
        *,
        artefacts: ArtefactStore,
        on_event: OnEvent,
    ) -> None:
        """Release the counts and keep them; nothing where the plan holds no such phase.

        A release that was charged before a crash and not written is not made again.

        Args:
          table: with the plan; charged for the release.
          mechanism: makes what counts the rows; called only when they are counted.
          value: what is kept, from the mechanism, its counts and the noise's standard deviation.

        Raises:
          FitCancelled: the observer's signal was followed.
        """
        plan = table.plan
        if all(phase.name != self.name for phase in plan.phases) or table.meter.runs(self.name):
            return
        Emitter(on_event, obeys=(Signal.CANCEL,)).phase(self.name, self.counting, private=True)
        counted = mechanism()
        counts = table.release(self.name, counted).tolist()
        noise_std = plan.phase(self.name).noise_multiplier * counted.sensitivity
        save_json(artefacts, self.artefact, value(counted, counts, noise_std))
