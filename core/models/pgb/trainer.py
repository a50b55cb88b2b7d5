"""Boosting's training: the base, then weights of its generators' records by private choices."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Protocol, cast

import torch
from safetensors.torch import load_file

from core.encoding.codec import Codes
from core.models.base_sampler import BaseSampler, FittedGenerator, write_json, write_tensors
from core.models.events import Emitter
from core.models.pgb.marginal_queries import MarginalQueries
from core.models.pgb.multiplicative_weights import (
    BoostedMixture,
    CalibratedCritics,
    MultiplicativeWeights,
    WeightsState,
)
from core.models.pgb.plan import BASES, BOOST, PgbSettings, split_settings
from core.models.step import FitContext
from core.models.steps.training.snapshot_ensemble import SnapshotEnsemble
from core.models.steps.training.training_loop import Checkpoint, private, train
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan


class BoostedFitted(BaseSampler):
    """What boosting leaves behind.

    Args:
      base: what the base would release: its last, averaged generator.
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


class BaseTrainer(Protocol):
    """The module `trainer` of a model that can be boosted."""

    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> FittedGenerator:
        """See `Synthesizer.fit`."""

    def load(self, folder: Path) -> FittedGenerator:
        """See `Synthesizer.load`."""

    def ensemble(self, fitted: FittedGenerator) -> SnapshotEnsemble:
        """The generators and critics that the fit kept along the way."""


def _trainer(base: str) -> BaseTrainer:
    return cast("BaseTrainer", BASES[base].trainer())


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> BoostedFitted:
    """See `Synthesizer.fit`."""
    own, rest = split_settings(plan.settings)
    checkpoint = Checkpoint.open(context, "pgb.pt", table.meter)
    trainer = _trainer(own.base)
    fitted = trainer.fit(
        table, plan.model_copy(update={"settings": rest}), replace(context, seed=checkpoint.seed)
    )
    ensemble = trainer.ensemble(fitted)
    random = torch.Generator().manual_seed(checkpoint.seed + 7)
    drawn = [ensemble.draw(j, own.candidates, random) for j in range(len(ensemble))]
    candidates = ensemble.heads.critic_input(torch.cat(drawn))
    critics = CalibratedCritics.calibrate(ensemble, candidates, queries_for(ensemble, own))
    phase = plan.phase(BOOST)
    watching = Emitter(context.on_event, obeys=())  # a signal to stop is followed after the round
    selection = table.selection(BOOST, critics, tick=watching.release(phase))
    state = WeightsState(**checkpoint.state.get("rounds", {}))
    done = table.meter.runs(BOOST)
    weights = MultiplicativeWeights(critics, critics(candidates), selection, state=state, done=done)

    def boosted() -> BoostedFitted:
        return BoostedFitted(fitted, critics, state, own)

    train(
        private(phase),
        weights,
        steps=own.rounds,
        checkpoint=checkpoint,
        key="rounds",
        preview=lambda: boosted().preview(),
        on_event=context.on_event,
    )
    return boosted()


def load(folder: Path) -> BoostedFitted:
    """See `Synthesizer.load`."""
    values = json.loads((folder / "pgb.json").read_text(encoding="utf-8"))
    own = PgbSettings(**values["settings"])
    trainer = _trainer(own.base)
    fitted = trainer.load(folder / "base")
    return read_boosted(folder, fitted, trainer.ensemble(fitted), own, values["rate"])
