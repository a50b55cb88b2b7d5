"""Boosting's training: the base, then a game of its generators against private choices."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

import torch

from core.models.events import Emitter
from core.models.pgb.fitted import BoostedFitted, questions_for, read_boosted
from core.models.pgb.multiplicative_weights import Judge, Rounds
from core.models.pgb.plan import BASES, BOOST
from core.models.pgb.settings import PgbSettings, parted
from core.models.shared.fitted import SlotFitted
from core.models.shared.snapshot_ensemble import Players
from core.models.shared.training_loop import Checkpoint, TrainingLoop
from core.models.synthesizer import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan

__all__ = ["fit", "load"]


class BaseTrainer(Protocol):
    """The module `trainer` of a model that can be boosted."""

    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> SlotFitted:
        """See `Synthesizer.fit`."""
        ...

    def load(self, folder: Path) -> SlotFitted:
        """See `Synthesizer.load`."""
        ...

    def ensemble(self, fitted: SlotFitted) -> Players:
        """The generators and critics that the fit kept along the way."""
        ...


def _trainer(base: str) -> BaseTrainer:
    package = type(BASES[base]).__module__.rpartition(".")[0]
    return cast("BaseTrainer", importlib.import_module(f"{package}.trainer"))


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> BoostedFitted:
    """See `Synthesizer.fit`."""
    own, rest = parted(plan.settings)
    checkpoint = Checkpoint.open(context, "pgb.pt", table.meter)
    trainer = _trainer(own.base)
    fitted = trainer.fit(
        table,
        plan.model_copy(update={"settings": rest}),
        replace(context, seed=checkpoint.seed),
    )
    players = trainer.ensemble(fitted)
    random = torch.Generator().manual_seed(checkpoint.seed + 7)
    pool = torch.cat([players.draw(j, own.candidates, random) for j in range(len(players))])
    seen = players.heads.seen(pool)
    judge = Judge.calibrate(players, seen, questions_for(players, own.model_dump()))
    phase = plan.phase(BOOST)
    Emitter(context.observe).phase(BOOST, phase.title, private=True)
    watching = Emitter(context.observe, obeys=())  # a wish to stop is followed after the round
    selection = table.selection(BOOST, judge, tick=watching.rows(BOOST))
    rounds = Rounds.fresh(judge, seen)
    if "rounds" in checkpoint.state:
        rounds = Rounds(judge, rounds.likes, **checkpoint.state["rounds"])

    def boosted() -> BoostedFitted:
        return BoostedFitted(fitted, judge, rounds, own.model_dump())

    TrainingLoop(
        name=BOOST,
        title=phase.title,
        start=table.meter.runs(BOOST),
        steps=own.rounds,
        step=lambda: rounds.play(selection),
        metrics=lambda _: rounds.metrics(),
        preview=lambda: boosted().preview(),
        keep=lambda: checkpoint.keep(rounds=rounds.state()),
        private=True,
    ).run(context.observe)
    return boosted()


def load(folder: Path) -> BoostedFitted:
    """See `Synthesizer.load`."""
    text = json.loads((folder / "pgb.json").read_text(encoding="utf-8"))
    own = PgbSettings(**text["settings"])
    trainer = _trainer(own.base)
    fitted = trainer.load(folder / "base")
    return read_boosted(folder, fitted, trainer.ensemble(fitted), own.model_dump(), text["rate"])
