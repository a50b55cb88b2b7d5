"""WatchedTable: a `PrivateTable` whose releases an auditor sees, each as often as wanted.

Nothing is computed here. A release can be repeated at one and the same state of the model: the
auditor sees every repetition, and the fit goes on from a value that was laid down beforehand, so
that two worlds stay in step. The claim must stand that: phases compose adaptively, whatever chose
the state they start from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.person_rows import PersonRows
from core.privacy.dpsgd.gradient import ClippedGradient, NoisyGradient, SampledRelease
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import Mechanism, Rows
from core.privacy.plan import Budget, Phase, Plan
from core.schema.schema import Domain

View = Callable[[Any], Tensor]


@dataclass(frozen=True)
class ObservedRelease:
    """One release as the auditor sees it.

    Attributes:
      mechanism: as it was when it was asked; holds the model's state.
      view: rows as the mechanism takes them; None for a release over all rows.
      released: float [k], the noisy sum, flat; of gradients without the count of clipped records.
        Its memory may be used again.
      call: how many releases the model had asked for before.
    """

    phase: Phase
    mechanism: Mechanism
    view: View | None
    released: Tensor
    call: int
    repetition: int

    @property
    def rate(self) -> float:
        """The chance of each record to take part."""
        return 1.0 if self.phase.sampling_rate is None else self.phase.sampling_rate

    @property
    def std(self) -> float:
        """Of the noise in each entry, as planned for the table."""
        return self.phase.noise_multiplier * float(self.mechanism.sensitivity)


Watch = Callable[[ObservedRelease], None]


@dataclass
class FixedReleases:
    """What a fit is handed, call by call; laid down by the first fit and repeated to later ones."""

    values: list[Tensor] = field(default_factory=list)

    def at(self, call: int, value: Tensor) -> Tensor:
        """A copy of what was laid down for this call; `value` where nothing was yet."""
        if call == len(self.values):
            self.values.append(value.clone())
        return self.values[call].clone()


class WatchedTable(PrivateTable):
    """See the module; `plan` must allow for repeats of every release but selections.

    `fixed` is what the model is handed; None hands it the release itself.
    """

    __slots__ = ("_calls", "_fixed", "_repeats", "_repetition", "_watch")

    def __init__(
        self,
        codes: Rows,
        domain: Domain,
        plan: Plan,
        *,
        people: PersonRows | None = None,
        present: NDArray[np.bool_],
        watch: Watch,
        repeats: int = 1,
        fixed: FixedReleases | None = None,
    ):
        # In the file's order: an auditor wants to say which record comes first. Pairs of
        # neighbouring rows are then no random pairs, which no bound rests on.
        super().__init__(codes, domain, plan, people=people, shuffle=False, present=present)
        self._watch, self._repeats, self._fixed = watch, repeats, fixed
        self._calls = self._repetition = 0

    @property
    def _is_repeated(self) -> bool:
        """See `PrivateTable`; nothing changes between the repetitions of a release."""
        return self._repetition > 0

    def release(
        self,
        phase_name: str,
        mechanism: Mechanism,
        *,
        device: str = "cpu",
        tick: Callable[[int, int], None] | None = None,
    ) -> Tensor:
        """See `PrivateTable.release`."""

        def once() -> Tensor:
            return super(WatchedTable, self).release(
                phase_name, mechanism, device=device, tick=tick
            )

        return self._seen(phase_name, mechanism, None, once, lambda released: released)

    def sampled(self, phase_name: str, *, view: View, device: str = "cpu") -> SampledRelease:
        """See `PrivateTable.sampled`."""
        return _WatchedRelease(
            super().sampled(phase_name, view=view, device=device),
            lambda mechanism, once, summed: self._seen(phase_name, mechanism, view, once, summed),
        )

    def _seen(
        self,
        phase_name: str,
        mechanism: Any,
        view: View | None,
        once: Callable[[], Tensor],
        summed: Callable[[Tensor], Tensor],
    ) -> Tensor:
        phase, call = self.plan.phase(phase_name), self._calls
        self._calls += 1
        try:
            for repetition in range(self._repeats):
                self._repetition = repetition
                released = once()
                seen = summed(released).flatten()
                self._watch(ObservedRelease(phase, mechanism, view, seen, call, repetition))
        finally:  # whatever stopped it, what comes next is compared again
            self._repetition = 0
        return released if self._fixed is None else self._fixed.at(call, released)


_Seen = Callable[[ClippedGradient, Callable[[], Tensor], Callable[[Tensor], Tensor]], Tensor]


class _WatchedRelease(SampledRelease):
    __slots__ = ("_inner", "_seen")

    def __init__(self, inner: SampledRelease, seen: _Seen):
        self._inner, self._seen = inner, seen

    @property
    def expected_batch(self) -> float:
        """See `SampledRelease`."""
        return self._inner.expected_batch

    def step(self, mechanism: ClippedGradient) -> NoisyGradient:
        """See `SampledRelease.step`."""
        last: list[NoisyGradient] = []

        def once() -> Tensor:
            last[:] = [self._inner.step(mechanism)]
            return last[0].mean

        mean = self._seen(mechanism, once, lambda mean: mean * self.expected_batch)
        return NoisyGradient(mean, last[0].clipped, last[0].std)


def altered(plan: Plan, *, repeats: int = 1, noise: float = 1.0) -> Plan:
    """The plan with other noise than it claims, or none: what a broken table would carry out."""

    def phase(one: Phase) -> Phase:
        if one.mechanism == "zcdp":
            assert one.rho is not None
            return one.model_copy(update={"rho": one.rho / noise**2}) if noise else one
        changed = {"noise_multiplier": one.noise_multiplier * noise, "count": one.count * repeats}
        return one.model_copy(update=changed)

    budget = plan.budget if noise else Budget(epsilon=float("inf"), delta=plan.budget.delta)
    phases = tuple(phase(one) for one in plan.phases)
    return plan.model_copy(update={"phases": phases, "budget": budget})


@torch.no_grad()
def each_alone(observed: ObservedRelease, codes: Rows, people: PersonRows | None = None) -> Tensor:
    """Each record's, or person's, own share of the statistic behind a release, float32 [b, k]."""
    ends = range(len(codes) + 1) if people is None else people.offsets.tolist()
    weights = torch.ones(len(codes)) if people is None else torch.from_numpy(people.weights)
    if observed.view is None:
        alone = (
            observed.mechanism.statistic(codes.slice(i, j).to("cpu"), weights[i:j])
            for i, j in pairwise(ends)
        )
        return torch.stack([one.flatten().float() for one in alone])
    rows = _with_draws(observed.mechanism, observed.view(codes.to("cpu")))
    parts = (observed.mechanism.statistic(rows[i:j], weights[i:j])[:-1] for i, j in pairwise(ends))
    return torch.stack(list(parts))


@torch.no_grad()
def together(observed: ObservedRelease, codes: Rows, people: PersonRows | None = None) -> Tensor:
    """The sum of records' shares, float32 [k]; see `each_alone`."""
    weights = torch.ones(len(codes)) if people is None else torch.from_numpy(people.weights)
    if observed.view is None:
        return observed.mechanism.statistic(codes.to("cpu"), weights).flatten().float()
    rows = _with_draws(observed.mechanism, observed.view(codes.to("cpu")))
    return observed.mechanism.statistic(rows, weights)[:-1]


def _with_draws(mechanism: Mechanism, rows: Tensor) -> Tensor:
    """Rows as a gradient takes them: behind each record, numbers of the auditor's own drawing."""
    normals, uniforms = cast("ClippedGradient", mechanism).draws  # it has views of rows
    if not normals and not uniforms:
        return rows
    own = (torch.randn(len(rows), normals), torch.rand(len(rows), uniforms))
    return torch.cat([rows, *own], dim=1)
