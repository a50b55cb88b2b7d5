"""Snapshots: pairs of players that a game keeps along the way, for boosting."""

from __future__ import annotations

import math

from torch import Tensor, nn, stack

__all__ = ["Snapshots"]


class Snapshots:
    """Keeps both players now and then over the last quarter of a game.

    When follows from the number of steps alone, never from data.

    Args:
      count: pairs to keep, evenly spaced; 0 keeps none.
      steps: generator steps of the game.

    Attributes:
      pairs: flat parameters of the generator and of the critic, on the CPU.
    """

    def __init__(self, count: int, steps: int):
        self._count, self._steps = count, steps
        self.pairs: list[tuple[Tensor, Tensor]] = []

    def look(self, done: int, generator: nn.Module, critic: Tensor) -> None:
        """Keep the players if it is time.

        Args:
          done: generator steps so far.
          generator: the module.
          critic: its opponent's flat parameters.
        """
        if not self._count or done * 4 <= 3 * self._steps:
            return
        every = max(1, math.ceil(self._steps / 4 / self._count))
        if (self._steps - done) % every == 0:
            flat = nn.utils.parameters_to_vector(generator.parameters()).detach()
            self.pairs.append((flat.cpu(), critic.detach().cpu().clone()))

    def history(self) -> dict[str, Tensor]:
        """Under "generators" and "critics", float32 [N, ·]; {} when none."""
        if not self.pairs:
            return {}
        generators, critics = zip(*self.pairs, strict=True)
        return {"generators": stack(generators), "critics": stack(critics)}
