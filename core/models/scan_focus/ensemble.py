"""Several mixtures fitted apart to the same releases, and put together into one.

All follow the same noise, but each errs in its own way where the releases say little. Rows drawn
from all of them keep what they agree on, and their errors average out: further steps, which would
tie one mixture to the noise, then bring rare labels closer at no loss.

Source: Lakshminarayanan, Pritzel and Blundell, "Simple and Scalable Predictive Uncertainty
Estimation using Deep Ensembles", NeurIPS 2017 (members differ by their random beginning alone).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from core.models.scan_focus.matching import MixtureMatcher
from core.privacy.summation import threads_of_one_processor


class MixtureEnsemble:
    """The training state of several mixtures that take their steps together."""

    def __init__(self, members: Sequence[MixtureMatcher]):
        self.members = tuple(members)
        self.done = 0
        self._pool: Executor | None = None

    def begin(self, steps: int) -> None:
        """Get ready for so many steps more; all members have taken theirs."""
        for one in self.members:
            one.begin(steps)

    def step(self) -> None:
        """One descent step of each member."""
        each = map if self._pool is None else self._pool.map
        list(each(MixtureMatcher.step, self.members))
        self.done += 1

    def metrics(self) -> dict[str, float]:
        """Means of the members' distances to the releases, in units of the noise."""
        each = [one.metrics() for one in self.members]
        return {name: sum(one[name] for one in each) / len(each) for name in each[0]}

    @torch.no_grad()
    def mixture(self) -> tuple[Tensor, Tensor]:
        """All components of all members: weights [components], shares [components, cells]."""
        parts = [one.mixture() for one in self.members]
        weights = torch.cat([weights for weights, _ in parts]) / len(parts)
        return weights, torch.cat([torch.cat(shares, dim=1) for _, shares in parts])

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, tensors and plain values only."""
        return {"step": self.done, "members": [one.state_dict() for one in self.members]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state_dict`."""
        for one, kept in zip(self.members, state["members"], strict=True):
            one.load_state_dict(kept)
        self.done = state["step"]

    @contextmanager
    def side_by_side(self) -> Iterator[None]:
        """While this is open members train at the same time, a processor each while there are any.

        The operations of one step are too small for several processors to share.
        """
        threads = min(torch.get_num_threads(), len(self.members))
        if threads == 1 or self.members[0].device != "cpu":
            yield
            return
        with threads_of_one_processor(threads) as self._pool:
            try:
                yield
            finally:
                self._pool = None
