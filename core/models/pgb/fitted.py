"""BoostedFitted: a boosted sequence of generators as a trained model."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from core.models.pgb.marginal_queries import Questions
from core.models.pgb.multiplicative_weights import Boosted, Judge, Rounds
from core.models.shared.fitted import SlotFitted
from core.models.shared.snapshot_ensemble import Players

__all__ = ["BoostedFitted", "questions_for", "read_boosted"]


class BoostedFitted:
    """What a game leaves behind.

    Args:
      base: what the base would release: its last, averaged generator.
      judge: the critics.
      rounds: that were played.
      settings: boosting's own, JSON values; `rejection` says whether rows are kept by it too.

    Attributes:
      domain: the declared domain it writes.
    """

    def __init__(self, base: SlotFitted, judge: Judge, rounds: Rounds, settings: dict[str, Any]):
        self.domain = base.domain
        self.base, self.judge = base, judge
        self._rounds, self._settings = rounds, settings
        self._mixture = Boosted(judge, **rounds.state(), rejection=bool(settings["rejection"]))

    def variant(self, *, rejection: bool) -> BoostedFitted:
        """The same mixture with or without rejection sampling."""
        settings = self._settings | {"rejection": int(rejection)}
        return BoostedFitted(self.base, self.judge, self._rounds, settings)

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """See `Fitted.sample`: fresh records of all generators, each kept with its chance."""
        if rows < 1:
            raise ValueError(f"At least one row must be asked for, got {rows}.")
        random = torch.Generator().manual_seed(secrets.randbits(63) if seed is None else seed)
        slots = self._mixture.draw(rows, random)
        heads = self.base.heads
        return heads.codec.decode_codes(heads.written(slots, generator=random))

    def preview(self, rows: int = 8) -> list[dict[str, Any]]:
        """A few synthetic records with JSON values, for people to watch."""
        text = self.sample(rows).to_json(orient="records", date_format="iso")
        records: list[dict[str, Any]] = json.loads(text)
        return records

    def save(self, folder: Path) -> None:
        """See `Fitted.save`: the base in a folder of its own, boosting.safetensors, pgb.json."""
        from safetensors.torch import save_file

        self.base.save(folder / "base")
        state = self._rounds.state()
        tensors = {
            "centres": self.judge.centres,
            "spreads": self.judge.spreads,
            "chosen": torch.tensor(state["chosen"], dtype=torch.int64),
            "normalisers": torch.tensor(state["normalisers"], dtype=torch.float64),
        }
        save_file(tensors, folder / "boosting.safetensors")
        text = {"settings": self._settings, "rate": state["rate"]}
        (folder / "pgb.json").write_text(json.dumps(text), encoding="utf-8")


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
    from safetensors.torch import load_file

    found = load_file(folder / "boosting.safetensors")
    questions = questions_for(players, settings)
    judge = Judge(players, found["centres"], found["spreads"], questions)
    rounds = Rounds(
        judge,
        found["centres"].new_zeros((1, judge.options)),  # the candidates are not needed any more
        rate=rate,
        chosen=found["chosen"].tolist(),
        normalisers=found["normalisers"].tolist(),
    )
    return BoostedFitted(base, judge, rounds, settings)
