"""Scan and focus: releases, a preliminary model that says where to look closer, and the mixture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from core.models.base_sampler import FittedGenerator, read_generator
from core.models.events import FitEvent, PhaseStarted, Progress, Signal
from core.models.scan_focus.discrepancy import clear_pair_unlearned, ensemble_weights, lacking
from core.models.scan_focus.fitted import FILE, fitted_mixture, fitted_of
from core.models.scan_focus.groups import CLEAN, GROUPS, NOISY, MixtureGroups
from core.models.scan_focus.matching import MixtureMatcher
from core.models.scan_focus.mixture import LatentMixtures, anchors
from core.models.scan_focus.plan import ScanFocusSettings
from core.models.scan_focus.presence import barred_cells
from core.models.scan_focus.releases import Focus, targets_of, unlearned_columns
from core.models.scan_focus.unseen import unseen
from core.models.step import FitContext
from core.models.steps.counting.placing import VALUES
from core.models.steps.counting.releases import Releases
from core.models.steps.training.adversarial import seeded
from core.models.steps.training.training_loop import train

TRAINING, IN_ALL, LACK = "training", "steps_in_all", "lack"  # names in a checkpoint
LEAST_GAIN = 0.1  # of what lacks, that further steps must have learnt, or mixtures cannot
FIRST = 0.25  # of the steps: where noise hides all, more would follow the noise


def train_preliminary(known: Releases, settings: ScanFocusSettings, context: FitContext) -> Focus:
    """What was counted, and a preliminary model of it where larger sets were scanned."""
    targets = targets_of(known)
    if not known.design.larger:
        return Focus(known, targets)
    phase = PhaseStarted(name="preliminary", title="Preliminary model (reads no private data)")
    steps = settings.preliminary_steps
    focus = Focus(known, targets)
    model = _mixture_groups(focus, settings, steps=steps, count=1)
    _train(phase, model, steps, focus, settings, context)
    (only,) = model.matchers
    return replace(focus, preliminary=only, unlearned=unlearned_columns(known, only))


def train_mixture(
    focus: Focus, settings: ScanFocusSettings, context: FitContext
) -> FittedGenerator:
    """Mixtures that follow all counts, for as long as these show more."""
    targets, design = focus.targets, focus.known.design
    state, steps = focus.known.checkpoint.state, settings.steps
    # counts do not show whether pairs that were not counted are apart by then
    whole = settings.trainings == 1 or len(targets.pairs) < len(design.pairs)
    first = steps if whole else math.ceil(FIRST * steps)
    model = _mixture_groups(focus, settings, steps=first, count=settings.members)
    phase = PhaseStarted(name=TRAINING, title="Training (reads no private data)")
    _train(phase, model, int(state.get(IN_ALL, first)), focus, settings, context)
    phase = PhaseStarted(name=TRAINING, title="Further training (reads no private data)")
    most = steps * settings.trainings
    while model.done < most:
        # those that follow noise lie near the counts before they have learned what these show
        clean = model.part(CLEAN)
        lack = lacking(clean, targets, design)
        if lack > (1.0 - LEAST_GAIN) * state.get(LACK, math.inf):
            break
        if not lack and (model.done >= steps or not clear_pair_unlearned(clean, targets, design)):
            break
        further = steps - model.done % steps
        model.begin(further)
        state |= {IN_ALL: model.done + further, LACK: lack or math.inf}
        _train(phase, model, model.done + further, focus, settings, context)
    model.group_weights = ensemble_weights(model, targets, design)
    hidden = unseen(focus.known, targets.counted, model.combined())
    return _fitted(focus, settings, model, hidden)


def _train(
    phase: PhaseStarted,
    model: MixtureGroups,
    steps: int,
    focus: Focus,
    settings: ScanFocusSettings,
    context: FitContext,
) -> None:
    checkpoint = focus.known.checkpoint
    usual = settings.steps if phase.name == TRAINING else steps

    def tell(event: FitEvent) -> Signal:
        """Of the usual steps, which most tables need, so that progress seldom goes back."""
        if isinstance(event, Progress):
            event = event.model_copy(update={"steps": max(event.steps, usual)})
        return context.on_event(event)

    if not model.done and phase.name in checkpoint.state:
        model.load_state_dict(checkpoint.state[phase.name])
    with model.threads():
        train(
            phase,
            model,
            steps=steps,
            checkpoint=checkpoint,
            key=phase.name,
            preview=lambda: _fitted(focus, settings, model).preview(),
            on_event=tell,
        )


def _fitted(
    focus: Focus,
    settings: ScanFocusSettings,
    model: MixtureGroups,
    hidden: Mapping[str, Tensor] | None = None,
) -> FittedGenerator:
    taken = settings.model_copy(update={"steps": model.done})
    weights, shares = model.combined()
    repeated = weights.repeat(settings.copies) / settings.copies, shares.repeat(settings.copies, 1)
    return fitted_mixture(focus.known, focus.targets.counted, taken, repeated, hidden or {})


def load(folder: Path) -> FittedGenerator:
    """See `Synthesizer.load`."""
    codec, values, weights, _ = read_generator(folder, FILE)
    names = ("sizes", "group", "never_missing", "limits", *VALUES, "significant_sets")
    constants = {name: values[name] for name in names}
    return fitted_of(codec, values["settings"], weights, constants)


def _mixture_groups(
    focus: Focus, settings: ScanFocusSettings, *, steps: int, count: int
) -> MixtureGroups:
    """Mixtures that start at the released shares; their latents follow from the seed.

    Of two groups one follows pairs as they were released, the other without their noise.
    """
    known, targets = focus.known, focus.targets
    seed = known.checkpoint.seed
    random = torch.Generator().manual_seed(seed)
    latents = torch.randn((count, settings.latent, settings.components), generator=random)
    shares = [torch.from_numpy(share) for share in known.shares]
    starts = torch.stack(
        [anchors(known.scales, shares, settings.components, random).t() for _ in range(count)]
    )
    barred = barred_cells(known, starts)
    base = torch.cat(shares).clamp_min(1e-4).log().float()
    together = {column for target in targets.sets for column in target.columns}

    def mixtures(group: slice) -> LatentMixtures:
        return LatentMixtures(
            latents[group],
            base,
            starts[group],
            anchored=together | focus.unlearned,
            sizes=[scale.size for scale in known.scales],
            hidden=settings.hidden,
            barred=None if barred is None else barred[group],
        )

    size = math.ceil(count / GROUPS)
    groups = [slice(first, first + size) for first in range(0, count, size)]
    made = seeded(lambda: [mixtures(group) for group in groups], seed + 1)
    follows = [targets] * len(groups)
    if len(groups) > 1:
        follows[NOISY] = replace(targets, pairs=targets.noisy)
    return MixtureGroups(
        [
            MixtureMatcher(
                one,
                follows[number],
                known.design,
                steps=steps,
                rate=settings.rate,
                seed=seed + 2 + number,
                device=known.device,
            )
            for number, one in enumerate(made)
        ]
    )
