"""PPEM's training: the tagged columns' energy and generator, then those of the others."""

from __future__ import annotations

from pathlib import Path

from core.encoding.codec import Codec
from core.models.base_sampler import FittedGenerator, read_generator
from core.models.ppem.energy_gan_trainer import EnergyGanTrainer
from core.models.ppem.plan import CONDITIONAL, MARGINAL, PpemSettings
from core.models.ppem.tagged_first import TaggedFirst
from core.models.step import FitContext
from core.models.steps.training.snapshot_ensemble import SnapshotEnsemble
from core.models.steps.training.training_loop import Checkpoint, private, train
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> FittedGenerator:
    """See `Synthesizer.fit`."""
    checkpoint = Checkpoint.open(context, "ppem.pt", table.meter)
    settings = PpemSettings(**plan.settings)
    model = TaggedFirst(
        Codec(table.domain),
        settings,
        seed=checkpoint.seed,
        device=context.device,
        bounded=plan.budget.private,
    )

    def resume(name: str, trainer: EnergyGanTrainer) -> None:
        trainer.load_state_dict(checkpoint.state.get(name), charged=table.meter.runs(name))

    def go_through(name: str, trainer: EnergyGanTrainer) -> None:
        train(
            private(plan.phase(name)),
            trainer,
            steps=trainer.config.steps,
            checkpoint=checkpoint,
            key=name,
            preview=lambda: model.fitted().preview() if model.complete else [],
            on_event=context.on_event,
        )

    marginal = model.marginal(table)
    resume(MARGINAL, marginal)
    if CONDITIONAL not in checkpoint.state:
        go_through(MARGINAL, marginal)
    if model.others is not None:
        conditional = model.conditional(table)
        resume(CONDITIONAL, conditional)
        go_through(CONDITIONAL, conditional)
    return model.fitted()


def load(folder: Path) -> FittedGenerator:
    """See `Synthesizer.load`."""
    codec, values, weights, history = read_generator(folder)
    return TaggedFirst(codec, PpemSettings(**values["settings"]), seed=0).loaded(weights, history)


def ensemble(fitted: FittedGenerator) -> SnapshotEnsemble:
    """The last phase's snapshots, for boosting; see `core.models.pgb.plan`."""
    settings = PpemSettings(**fitted.settings)
    return TaggedFirst(fitted.codec, settings, seed=0).ensemble(fitted)
