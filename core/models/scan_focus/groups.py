"""Mixtures in groups, each matched by a thread of its own.

Operations of a step are short: threads inside one wait for each other more than they work, above
all beside other programs. Groups share nothing, and one may be some steps ahead: in step, both
would want Python at the same moments. How many there are depends on the number of mixtures alone,
so every machine makes the same model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from core.models.scan_focus.matching import MixtureMatcher

GROUPS = 2  # more make steps so short that threads wait for Python
NOISY = 0  # the group, of two, that follows pairs as they were released
CLEAN = -1  # the one that follows them denoised; the only one where there is one
AHEAD = 8  # steps, at most, that are asked for before they are done


class MixtureGroups:
    """Several matchers of the same releases, trained step by step together.

    Attributes:
      matchers: of one group each.
      done: steps that each of them was asked for.
      group_weights: of each group in all together, summing to one; at first by their mixtures.
    """

    def __init__(self, matchers: Sequence[MixtureMatcher]) -> None:
        self.matchers = list(matchers)
        self.done = self.matchers[0].done
        sizes = [len(one.mixtures.weights) for one in self.matchers]
        self.group_weights = tuple(size / sum(sizes) for size in sizes)
        self._pools: list[ThreadPoolExecutor] = []
        self._asked: deque[Future[None]] = deque()

    def part(self, group: int) -> MixtureGroups:
        """One of the groups, as it is by now."""
        self._await()
        return MixtureGroups([self.matchers[group]])

    def begin(self, steps: int) -> None:
        """See `MixtureMatcher.begin`."""
        for one in self.matchers:
            one.begin(steps)

    def step(self) -> None:
        """One descent step of all, soon."""
        for i, one in enumerate(self.matchers):
            if self._pools:
                pool = self._pools[i % len(self._pools)]
                self._asked.append(pool.submit(one.step))
            else:
                one.step()
        self.done += 1
        self._await(AHEAD * len(self.matchers))

    def _await(self, left: int = 0) -> None:
        while len(self._asked) > left:
            self._asked.popleft().result()

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Use as many processors as there are groups, as far as this process has so many."""
        processors = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with ExitStack() as pools:
                if len(self.matchers) > 1:
                    count = min(processors, len(self.matchers))
                    made = [ThreadPoolExecutor(1) for _ in range(count)]
                    self._pools = [pools.enter_context(one) for one in made]
                yield
                self._await()
        finally:
            self._pools = []
            self._asked.clear()
            torch.set_num_threads(processors)

    def metrics(self) -> dict[str, float]:
        """See `Trainable`: of the first group, whose distance is to what was counted."""
        self._await()
        return self.matchers[NOISY].metrics()

    def state_dict(self) -> dict[str, Any]:
        """See `Trainable`."""
        self._await()
        return {"step": self.done, "groups": [one.state_dict() for one in self.matchers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state_dict`."""
        for one, own in zip(self.matchers, state["groups"], strict=True):
            one.load_state_dict(own)
        self.done = int(state["step"])

    def __call__(self) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Of all mixtures, see `LatentMixtures.forward`; shares by column.

        The mean over mixtures gives each group its weight.
        """
        self._await()
        weights, shares = zip(*(one.mixtures() for one in self.matchers), strict=True)
        count = sum(map(len, weights))
        both = zip(weights, self.group_weights, strict=True)
        weights = tuple(own * (group * count / len(own)) for own, group in both)
        return torch.cat(weights), self.matchers[0].mixtures.by_column(torch.cat(shares))

    @torch.no_grad()
    def combined(self) -> tuple[Tensor, Tensor]:
        """One mixture of all: weights [components], shares [components, cells]."""
        weights, shares = self()
        together = torch.cat(shares, dim=1).transpose(1, 2).flatten(0, 1)
        return weights.flatten() / len(weights), together.contiguous()
