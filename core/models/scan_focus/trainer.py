"""Scan and focus: releases, a preliminary model that says where to look closer, and the mixture."""

from __future__ import annotations

from pathlib import Path

import torch

from core.encoding.codec import Codec
from core.models.base_sampler import FittedGenerator, read_generator
from core.models.events import Emitter, PhaseStarted, SignificantSets
from core.models.scan_focus.discrepancy import more_to_learn
from core.models.scan_focus.ensemble import MixtureEnsemble
from core.models.scan_focus.fitted import FILE, fitted_mixture, fitted_of
from core.models.scan_focus.matching import MixtureMatcher, Targets
from core.models.scan_focus.mixture import LatentMixture, anchors
from core.models.scan_focus.releases import FocusedReleases
from core.models.scan_focus.settings import ScanFocusSettings
from core.models.step import FitContext
from core.models.steps.counting.design import Design
from core.models.steps.training.adversarial import seeded
from core.models.steps.training.training_loop import Checkpoint, train
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan

TRAINING, IN_ALL = "training", "steps_in_all"  # names in a checkpoint
FEWEST = 600  # steps of the last training that are never halved


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> FittedGenerator:
    """See `Synthesizer.fit`."""
    settings, codec = ScanFocusSettings(**plan.settings), Codec(table.domain)
    checkpoint = Checkpoint.open(context, "scan_focus.pt", table.meter)
    design = Design.of(codec, settings.most_together)
    emitter = Emitter(context.on_event, keep=checkpoint.keep)
    known = FocusedReleases(table, plan, codec, design, checkpoint, emitter, context.device)
    targets = known.targets()

    def fitted(ensemble: MixtureEnsemble) -> FittedGenerator:
        return fitted_mixture(known, targets.counted, settings, ensemble.mixture())

    def train_on(phase: PhaseStarted, ensemble: MixtureEnsemble, steps: int) -> None:
        if not ensemble.done and phase.name in checkpoint.state:
            ensemble.load_state_dict(checkpoint.state[phase.name])
        with ensemble.side_by_side():
            train(
                phase,
                ensemble,
                steps=steps,
                checkpoint=checkpoint,
                key=phase.name,
                preview=lambda: fitted(ensemble).preview(),
                on_event=context.on_event,
            )

    unlearned: frozenset[int] = frozenset()
    if design.pairs:
        emitter.send(SignificantSets(sets=known.significant_sets))
        preliminary = None
        if design.larger:
            phase = PhaseStarted(
                name="preliminary", title="Preliminary model (reads no private data)"
            )
            steps = settings.preliminary_steps
            preliminary = _matcher(known, targets, settings, unlearned, steps=steps, member=0)
            train_on(phase, MixtureEnsemble([preliminary]), steps)
            unlearned = known.unlearned_columns(preliminary)
        targets = known.focused(targets, preliminary)
        emitter.send(SignificantSets(sets=known.significant_sets))
    phase = PhaseStarted(name=TRAINING, title="Training (reads no private data)")
    steps = _steps(settings, targets)
    ensemble = MixtureEnsemble(
        [
            _matcher(known, targets, settings, unlearned, steps=steps, member=m)
            for m in range(settings.members)
        ]
    )
    train_on(phase, ensemble, int(checkpoint.state.get(IN_ALL, steps)))
    phase = PhaseStarted(name=TRAINING, title="Further training (reads no private data)")
    while ensemble.done < steps * settings.trainings and more_to_learn(ensemble, targets, design):
        ensemble.begin(steps)
        checkpoint.state[IN_ALL] = ensemble.done + steps
        train_on(phase, ensemble, ensemble.done + steps)
    return fitted(ensemble)


def _steps(settings: ScanFocusSettings, targets: Targets) -> int:
    """Steps of the last training: half of them, or `FEWEST`, where larger sets were counted.

    Such a table has little else to learn, and further steps follow the noise of many small cells.
    """
    if not targets.sets:
        return settings.steps
    return max(settings.steps // 2, min(settings.steps, FEWEST))


def load(folder: Path) -> FittedGenerator:
    """See `Synthesizer.load`."""
    codec, values, weights, _ = read_generator(folder, FILE)
    names = ("sizes", "lines", "widths", "follows", "sums")
    constants = {name: values[name] for name in names}
    constants["significant_sets"] = values.get(
        "significant_sets", []
    )  # the first of these models told none
    return fitted_of(codec, values["settings"], weights, constants)


def _matcher(
    known: FocusedReleases,
    targets: Targets,
    settings: ScanFocusSettings,
    apart: frozenset[int],
    *,
    steps: int,
    member: int,
) -> MixtureMatcher:
    """A mixture that starts at the released shares; its latents follow from the seed.

    Args:
      apart: columns in which components start apart, besides those of larger sets.
      member: which of the ensemble, from 0.
    """
    seed = known.checkpoint.seed + 3 * member  # each draws latents, weights and pairs of its own
    random = torch.Generator().manual_seed(seed)
    latents = torch.randn((settings.components, settings.latent), generator=random)
    shares = [torch.from_numpy(share) for share in known.shares]
    starts = anchors(known.scales, shares, settings.components, random)
    base = torch.cat(shares).clamp_min(1e-4).log().float()
    together = {column for target in targets.sets for column in target.columns}
    mixture = seeded(
        lambda: LatentMixture(
            latents,
            base,
            starts,
            anchored=together | apart,
            sizes=[scale.size for scale in known.scales],
            hidden=settings.hidden,
        ),
        seed + 1,
    )
    return MixtureMatcher(
        mixture,
        targets,
        known.design,
        steps=steps,
        rate=settings.rate,
        seed=seed + 2,
        device=known.device,
    )
