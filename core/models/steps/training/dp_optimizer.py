"""DPAdam: an optimiser that follows released gradients, and what it may tell of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from core.models.steps.training.adam import Adam
from core.privacy.dpsgd.dense import Dense
from core.privacy.dpsgd.gradient import ClippedGradient, SampledRelease

CLIPPED = "records clipped, %"  # names of metrics, as charts show them
SIGNAL = "signal-to-noise ratio"
_FIRST, _SECOND = 0.9, 0.99  # Adam's decays; the second is short because noise dominates it


class DPAdam:
    """Adam on the flat parameters of a `Dense`, one released gradient a step.

    The learning rate rises over the first twentieth of the steps and falls to a twentieth of its
    peak. Parameters are also averaged over the last steps, which takes noise out for free.

    Args:
      averaging: decay of the running average of parameters, in [0, 1); 0 keeps the last ones.
      public_gradient: adds a gradient that touches no private data to the released one, in place.
      weight_bound: float32 [size], largest absolute value of each parameter, or None.
      label: said before the names of its metrics, to tell one phase's from another's.
    """

    def __init__(
        self,
        networks: Dense,
        mechanism: ClippedGradient,
        release: SampledRelease,
        *,
        rate: float,
        steps: int,
        averaging: float = 0.0,
        public_gradient: Callable[[Tensor], None] | None = None,
        weight_bound: Tensor | None = None,
        label: str = "",
    ):
        self.networks = networks
        self.mechanism = mechanism
        self.release = release
        self.steps = steps
        self.done = 0
        self._rate = rate
        self._public_gradient = public_gradient
        self._weight_bound = weight_bound
        self._prefix = f"{label}: " if label else ""
        self._averaging = averaging
        self.average = networks.flat.detach().clone()
        self._adam = Adam([networks.flat], rate, decays=(_FIRST, _SECOND))
        self._clipped = torch.zeros((), device=networks.flat.device)
        self._std = 0.0

    def step(self) -> None:
        """One released gradient, one update."""
        released = self.release.step(self.mechanism)
        gradient = released.mean
        if self._public_gradient is not None:
            self._public_gradient(gradient)
        self.networks.flat.grad = gradient
        self._adam.step(self._rate * _rate_factor(self.done, self.steps))
        with torch.no_grad():
            if self._weight_bound is not None:
                self.networks.flat.clamp_(-self._weight_bound, self._weight_bound)
            self._clipped.lerp_(released.clipped, 0.05)
            self.average.lerp_(self.networks.flat, 1.0 - warm_decay(self._averaging, self.done))
        self._std = released.std
        self.done += 1

    def metrics(self) -> dict[str, float]:
        """Share of clipped records, %, and the length of the mean gradient over that of its noise.

        Both are functions of released gradients: the first of their noisy count of clipped records,
        averaged over about 20 steps, the second of Adam's running mean.
        """
        clipped = 100.0 * min(1.0, max(0.0, float(self._clipped)))
        metrics = {self._prefix + CLIPPED: clipped}
        if self._adam.done and self._std:
            bias_correction = 1.0 - _FIRST ** min(self.done, 1000)
            noise = self._std**2 * (1.0 - _FIRST) / (1.0 + _FIRST) * self.networks.size
            length = float((self._adam.means[0] / bias_correction).square().sum())
            metrics[self._prefix + SIGNAL] = max(0.0, length / noise - 1.0) ** 0.5
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, tensors and plain values only."""
        return {
            "flat": self.networks.flat.detach().cpu(),
            "average": self.average.cpu(),
            "adam": self._adam.state_dict(),
            "clipped": self._clipped.cpu(),
        }

    def load_state_dict(self, state: dict[str, Any] | None, *, charged: int) -> None:
        """Go on from `state_dict`, or from the start where none was kept.

        Steps that were charged and not kept are lost and not redone, so that the plan is met.

        Args:
          charged: runs of the phase that the meter has counted.
        """
        self.done = charged
        if state is None:
            return
        device = self.networks.flat.device
        self.networks.load(state["flat"].to(device))
        self.average = state["average"].to(device)
        self._adam.load_state_dict(state["adam"])
        self._clipped = state["clipped"].to(device)


def warm_decay(decay: float, steps: int) -> float:
    """Decay of a running average after so many steps: smaller at first, so that the start fades."""
    return min(decay, steps / (steps + 10.0))


def _rate_factor(step: int, steps: int) -> float:
    """Learning rate over its peak.

    >>> [round(_rate_factor(step, 1000), 2) for step in (0, 49, 50, 525, 1000)]
    [0.02, 1.0, 1.0, 0.53, 0.05]
    """
    warm = max(1, steps // 20)
    if step < warm:
        return (step + 1) / warm
    left = (steps - step) / max(1, steps - warm)
    return 0.05 + 0.95 * max(0.0, left)
