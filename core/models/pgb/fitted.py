"""BoostedFitted: a boosted sequence of generators as a trained model."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

import torch
from safetensors.torch import load_file

from core.encoding.codec import Codes
from core.models.base_sampler import BaseSampler, FittedGenerator, write_json, write_tensors
from core.models.pgb.marginal_queries import MarginalQueries
from core.models.pgb.multiplicative_weights import (
    BoostedMixture,
    CalibratedCritics,
    WeightsState,
)
from core.models.pgb.plan import PgbSettings
from core.models.steps.training.snapshot_ensemble import SnapshotEnsemble


class BoostedFitted(BaseSampler):
    """What boosting leaves behind.

    Args:
      base: what the base would release: its last, averaged generator.
      state: of the rounds that were played.
    """

    def __init__(
        self,
        base: FittedGenerator,
        critics: CalibratedCritics,
        state: WeightsState,
        settings: PgbSettings,
    ):
        super().__init__(base.codec)
        self.base, self.critics = base, critics
        self._state, self._settings = state, settings
        self._mixture = BoostedMixture(critics, state, rejection=bool(settings.rejection))
        self._one_at_a_time = Lock()

    def variant(self, *, rejection: bool) -> BoostedFitted:
        """The same mixture with or without rejection sampling."""
        settings = self._settings.model_copy(update={"rejection": int(rejection)})
        return BoostedFitted(self.base, self.critics, self._state, settings)

    @property
    def baseline(self) -> FittedGenerator:
        """See `Fitted`: what the base would release."""
        return self.base

    def draw(self, rows: int, random: torch.Generator) -> Codes:
        """Fresh records of all generators, each kept with its chance."""
        with self._one_at_a_time:  # the generators are put into one network by turns
            one_hot = self._mixture.draw(rows, random)
        return self.critics.ensemble.heads.to_codes(one_hot, generator=random)

    def save(self, folder: Path) -> None:
        """See `Fitted.save`: the base in a folder of its own, boosting.safetensors, pgb.json."""
        self.base.save(folder / "base")
        tensors = {
            "centres": self.critics.centres,
            "spreads": self.critics.spreads,
            "chosen": torch.tensor(self._state.chosen, dtype=torch.int64),
            "normalisers": torch.tensor(self._state.normalisers, dtype=torch.float64),
        }
        write_tensors(tensors, folder / "boosting.safetensors")
        values = {"settings": self._settings.model_dump(), "rate": self._state.rate}
        write_json(values, folder / "pgb.json")


def queries_for(ensemble: SnapshotEnsemble, settings: PgbSettings) -> MarginalQueries:
    """The public queries that take part: at most one for four candidates.

    More would bend a small pool to its own accidents.
    """
    pool = len(ensemble) * settings.candidates
    return MarginalQueries(ensemble.heads.codec, min(settings.questions, pool // 4))


def read_boosted(
    folder: Path,
    base: FittedGenerator,
    ensemble: SnapshotEnsemble,
    settings: PgbSettings,
    rate: float,
) -> BoostedFitted:
    """What `BoostedFitted.save` wrote, around a base that is loaded already."""
    tensors = load_file(folder / "boosting.safetensors")
    queries = queries_for(ensemble, settings)
    critics = CalibratedCritics(ensemble, tensors["centres"], tensors["spreads"], queries)
    state = WeightsState(rate, tensors["chosen"].tolist(), tensors["normalisers"].tolist())
    return BoostedFitted(base, critics, state, settings)
