"""BoostedFitted: a boosted sequence of generators as a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from core.models.pgb.marginal_queries import Questions
from core.models.pgb.multiplicative_weights import Boosted, Judge, Rounds
from core.models.shared.fitted import FittedModel, SlotFitted, write_json, write_tensors
from core.models.shared.snapshot_ensemble import Players
from core.table.codec import Codes

__all__ = ["BoostedFitted", "questions_for", "read_boosted"]


class BoostedFitted(FittedModel):
    """What a game leaves behind.

    Args:
      base: what the base would release: its last, averaged generator.
      judge: the critics.
      rounds: that were played.
      settings: boosting's own, JSON values; `rejection` says whether rows are kept by it too.

    Attributes:
      base, judge: as given.
    """

    def __init__(self, base: SlotFitted, judge: Judge, rounds: Rounds, settings: dict[str, Any]):
        super().__init__(base.codec)
        self.base, self.judge = base, judge
        self._rounds, self._settings = rounds, settings
        self._mixture = Boosted(judge, **rounds.state(), rejection=bool(settings["rejection"]))

    def variant(self, *, rejection: bool) -> BoostedFitted:
        """The same mixture with or without rejection sampling."""
        settings = self._settings | {"rejection": int(rejection)}
        return BoostedFitted(self.base, self.judge, self._rounds, settings)

    @property
    def baseline(self) -> SlotFitted:
        """See `Fitted`: what the base would release."""
        return self.base

    def draw(self, rows: int, random: torch.Generator) -> Codes:
        """Fresh records of all generators, each kept with its chance."""
        slots = self._mixture.draw(rows, random)
        return self.base.heads.written(slots, generator=random)

    def save(self, folder: Path) -> None:
        """See `Fitted.save`: the base in a folder of its own, boosting.safetensors, pgb.json."""
        self.base.save(folder / "base")
        state = self._rounds.state()
        tensors = {
            "centres": self.judge.centres,
            "spreads": self.judge.spreads,
            "chosen": torch.tensor(state["chosen"], dtype=torch.int64),
            "normalisers": torch.tensor(state["normalisers"], dtype=torch.float64),
        }
        write_tensors(tensors, folder / "boosting.safetensors")
        text = {"settings": self._settings, "rate": state["rate"]}
        write_json(text, folder / "pgb.json")


def questions_for(players: Players, settings: dict[str, Any]) -> Questions:
    """The public questions of a game: at most one for four candidates.

    More would bend a small pool to its own accidents.
    """
    pool = len(players) * int(settings["candidates"])
    return Questions(players.heads.codec, min(int(settings["questions"]), pool // 4))


def read_boosted(
    folder: Path, base: SlotFitted, players: Players, settings: dict[str, Any], rate: float
) -> BoostedFitted:
    """What `BoostedFitted.save` wrote, around a base that is loaded already."""
    tensors = load_file(folder / "boosting.safetensors")
    questions = questions_for(players, settings)
    judge = Judge(players, tensors["centres"], tensors["spreads"], questions)
    rounds = Rounds(
        judge,
        tensors["centres"].new_zeros((1, judge.options)),  # the candidates are not needed any more
        rate=rate,
        chosen=tensors["chosen"].tolist(),
        normalisers=tensors["normalisers"].tolist(),
    )
    return BoostedFitted(base, judge, rounds, settings)
