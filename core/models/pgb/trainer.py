"""Boosting's training: the base, then weights of its generators' records by private choices."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

import torch

from core.models.base_sampler import FittedGenerator
from core.models.events import Emitter
from core.models.pgb.fitted import BoostedFitted, queries_for, read_boosted
from core.models.pgb.multiplicative_weights import (
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


class BaseTrainer(Protocol):
    """The module `trainer` of a model that can be boosted."""

    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> FittedGenerator:
        """See `Synthesizer.fit`."""
        ...

    def load(self, folder: Path) -> FittedGenerator:
        """See `Synthesizer.load`."""
        ...

    def ensemble(self, fitted: FittedGenerator) -> SnapshotEnsemble:
        """The generators and critics that the fit kept along the way."""
        ...


def _trainer(base: str) -> BaseTrainer:
    return cast("BaseTrainer", BASES[base].trainer())


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> BoostedFitted:
    """See `Synthesizer.fit`."""
    own, rest = split_settings(plan.settings)
    checkpoint = Checkpoint.open(context, "pgb.pt", table.meter)
    trainer = _trainer(own.base)
    fitted = trainer.fit(
        table,
        plan.model_copy(update={"settings": rest}),
        replace(context, seed=checkpoint.seed),
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
