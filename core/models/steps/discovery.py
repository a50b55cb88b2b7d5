"""DiscoverDomain: what nobody has declared of a table is learned with noise, as a run begins."""

from __future__ import annotations

from dataclasses import dataclass

from core.models.steps.counting.design import list_share
from core.privacy.discovery.open_domain import OpenDomain
from core.privacy.discovery.planning import FAILURES, discovery_phases
from core.privacy.plan import Budget, Phase
from core.schema.schema import Domain


@dataclass(frozen=True)
class DiscoverDomain:
    """The phases before those of any model, on rows that no domain describes yet.

    A list gets as much of the budget as counting gives to one column, and its counts take the place
    of those.

    Attributes:
      failure: the probability that a label is shown which one unit alone holds; part of δ.
    """

    wanted: OpenDomain
    failure: float

    @classmethod
    def of(cls, wanted: OpenDomain, budget: Budget) -> DiscoverDomain:
        """For a budget, whose δ pays for what lists may show."""
        return cls(wanted, FAILURES * budget.delta)

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """See `Step`; the domain is made up where it is open."""
        each = list_share(len(domain.modelled))
        return discovery_phases(self.wanted, scale, each=each, failure=self.failure)
