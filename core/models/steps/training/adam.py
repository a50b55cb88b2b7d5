"""Adam without torch's compiler, and a cycle of its rate.

`torch.optim.Optimizer` loads the compiler where it is made: two seconds in the process of every
run, which compiles nothing. The update itself is torch's own.

Sources: Kingma and Ba, "Adam", 2015; Smith and Topin, "Super-convergence", 2018.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

_START, _END = 1.0 / 25.0, 1e-4 / 25.0  # of a cycle's peak rate, at its start and its end
_FIRST_DECAYS = 0.95, 0.85  # of Adam, where the rate is least and where it is greatest


@dataclass(frozen=True)
class OneCycle:
    """A rate that rises to its peak and falls again along cosines; Adam's first decay mirrors it.

    Attributes:
      rate: the peak, > 0.
      steps: of the cycle, ≥ 1.
      warm: share of the steps in which the rate rises, in (0, 1].
    """

    rate: float
    steps: int
    warm: float

    def at(self, step: int) -> tuple[float, float]:
        """The rate and the first decay of one step, from 0 to `steps`."""
        peak = self.warm * self.steps - 1.0
        if step <= peak:
            floor, near = _START, 0.5 - 0.5 * math.cos(math.pi * step / max(peak, 1.0))
        else:
            part = (step - peak) / max(self.steps - 1.0 - peak, 1.0)
            floor, near = _END, 0.5 + 0.5 * math.cos(math.pi * part)
        low, high = _FIRST_DECAYS
        return self.rate * (floor + (1.0 - floor) * near), low + (high - low) * near


class Adam:
    """The state of Adam on some parameters, float32 tensors that hold their gradients.

    Attributes:
      means: running means of the gradients, one a parameter.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        rate: float | OneCycle,
        *,
        decays: tuple[float, float] = (0.9, 0.999),
    ):
        self._parameters, self._rate, self._decays = list(parameters), rate, decays
        self.means = [torch.zeros_like(one) for one in self._parameters]
        self._squares = [torch.zeros_like(one) for one in self._parameters]
        self._steps = [torch.zeros((), device=one.device) for one in self._parameters]
        self.done = 0

    def descend(self, loss: Tensor, rate: float | None = None) -> None:
        """One step against the gradients of a loss, float32 []; see `step`."""
        for one in self._parameters:
            one.grad = None
        loss.backward()  # type: ignore[no-untyped-call]
        self.step(rate)

    @torch.no_grad()
    def step(self, rate: float | None = None) -> None:
        """One step against the gradients that parameters hold, at the rate of all steps or another.

        Those without a gradient stay.
        """
        own, decay = self._rate, self._decays[0]
        if isinstance(own, OneCycle):
            own, decay = own.at(self.done)
        held = [i for i, one in enumerate(self._parameters) if one.grad is not None]
        state = (self._parameters, self.means, self._squares, self._steps)
        parameters, means, squares, steps = ([part[i] for i in held] for part in state)
        gradients = [one.grad for one in parameters if one.grad is not None]
        adam(
            parameters, gradients, means, squares, [], steps,
            fused=True, amsgrad=False, beta1=decay, beta2=self._decays[1],
            lr=own if rate is None else rate, weight_decay=0.0, eps=1e-8, maximize=False,
        )  # fmt: skip
        self.done += 1

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, tensors and plain values only."""
        rate = asdict(self._rate) if isinstance(self._rate, OneCycle) else self._rate
        return {
            "rate": rate,
            "done": self.done,
            "means": self.means,
            "squares": self._squares,
            "steps": self._steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state_dict`, in the cycle that it was in."""
        rate = state["rate"]
        self._rate = OneCycle(**rate) if isinstance(rate, dict) else rate
        self.done = int(state["done"])
        parts = (self.means, self._squares, self._steps)
        for own, name in zip(parts, ("means", "squares", "steps"), strict=True):
            for one, kept in zip(own, state[name], strict=True):
                one.copy_(kept)
