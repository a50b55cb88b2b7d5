"""Labels that people had before the event now: these are likelier, or rarer, in the next one."""

from __future__ import annotations

import torch
from torch import Tensor

from core.encoding.codec import Codes
from core.encoding.windows import Indices, Windows
from core.models.scan_focus.conditionals import MixtureConditionals


class EarlierLabels:
    """Of some people, by list of the next event."""

    def __init__(self, mixture: MixtureConditionals, windows: Windows, people: int):
        self._mixture, self._now = mixture, windows.twins
        self._been = {
            y: torch.zeros((people, len(mixture.table(y, y))), dtype=torch.bool)
            for y in windows.again
        }

    def others(self, window: Codes, people: Indices) -> dict[str, Tensor]:
        """Which labels have been, but for that of the event now: bool [windows, labels], by list.

        From here on that of the event now has been, too.

        Args:
          window: of each of these people.
        """
        whose, others = torch.from_numpy(people), dict[str, Tensor]()
        for y, been in self._been.items():
            now = self._mixture.cells(window, self._now[y])
            others[y] = been[whose].scatter(1, now[:, None], False)
            been[whose, now] = True
            if (gone := self._mixture.missing_cell(y)) is not None:
                been[:, gone] = False
        return others
