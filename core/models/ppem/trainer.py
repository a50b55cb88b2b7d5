"""PPEM's training: the tagged columns' energy and generator, then those of the others."""

from __future__ import annotations

from pathlib import Path

from core.models.ppem.conditional_pair import Chain
from core.models.ppem.energy_gan_trainer import Pair
from core.models.ppem.plan import CONDITIONAL, CRITICAL, MARGINAL, STATISTIC
from core.models.ppem.settings import PpemSettings
from core.models.shared.fitted import SlotFitted, read_fitted
from core.models.shared.snapshot_ensemble import Players
from core.models.shared.training_loop import Checkpoint, private_loop
from core.models.synthesizer import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan
from core.table.codec import Codec

__all__ = ["ensemble", "fit", "load"]


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> SlotFitted:
    """See `Synthesizer.fit`."""
    checkpoint = Checkpoint.open(context, "ppem.pt", table.meter)
    chain = Chain(
        Codec(table.domain),
        PpemSettings(**plan.settings),
        private=plan.budget.private,
        seed=checkpoint.seed,
        device=context.device,
    )

    def train(name: str, pair: Pair, label: str) -> None:
        private_loop(
            plan.phase(name),
            pair,
            steps=pair.how.steps,
            checkpoint=checkpoint,
            key=name,
            preview=lambda: chain.fitted().preview() if chain.complete else [],
            metrics=lambda: _named(pair, label),
        ).run(context.observe)

    def resumed(name: str, pair: Pair) -> Pair:
        pair.go_on(checkpoint.state.get(name), charged=table.meter.runs(name))
        return pair

    marginal = resumed(MARGINAL, chain.marginal(table))
    if CONDITIONAL not in checkpoint.state:
        train(MARGINAL, marginal, "tagged")
    if chain.others is not None:
        train(CONDITIONAL, resumed(CONDITIONAL, chain.conditional(table)), "others")
    return chain.fitted()


def load(folder: Path) -> SlotFitted:
    """See `Synthesizer.load`."""
    heads, settings, weights, history = read_fitted(folder)
    chain = Chain(heads.codec, PpemSettings(**settings), private=True, seed=0)
    return chain.loaded(weights, history)


def ensemble(fitted: SlotFitted) -> Players:
    """The last pair's snapshots, for boosting; see `core.models.pgb.plan`."""
    settings = PpemSettings(**fitted.settings)
    return Chain(fitted.heads.codec, settings, private=True, seed=0).players(fitted)


def _named(pair: Pair, label: str) -> dict[str, float]:
    """Metrics of a pair, and of its least convincing group the Stein statistic."""
    metrics = {f"{label}: {name}": value for name, value in pair.metrics().items()}
    if pair.steins:
        metrics[STATISTIC] = min(pair.statistics())
        metrics[CRITICAL] = pair.steins[0].critical
    return metrics
