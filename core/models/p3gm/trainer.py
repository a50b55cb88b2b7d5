"""P3GM's training: encode once through releases, then train a decoder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from core.encoding.codec import Codec, Codes
from core.models.base_sampler import FittedGenerator, read_generator
from core.models.events import Emitter, Progress
from core.models.p3gm.decoder import SPREAD, CentredRecords, ElboGradient, Projection
from core.models.p3gm.plan import DECODER, EM, PCA, P3gm, P3gmSettings
from core.models.step import FitContext
from core.models.steps.training.dp_optimizer import DPAdam
from core.models.steps.training.heads import Heads
from core.models.steps.training.training_loop import Checkpoint, private, train
from core.privacy.dpsgd.dense import Dense
from core.privacy.dpsgd.gradient import ClippedGradient
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import clip_rows
from core.privacy.mechanisms.mixture import Mixture, MixtureStep, update
from core.privacy.mechanisms.moments import Moments, Principal, principal
from core.privacy.plan import Plan

REACH = 2.0  # latent points lie within REACH·√d'; coordinates have about unit variance
SMALL = 0.1  # last layers start this much smaller, so that training begins at equal odds
START_SPREAD = -1.0  # log variance that latent points begin with
AVERAGING = 0.99


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> FittedGenerator:
    """See `Synthesizer.fit`."""
    settings = P3gmSettings(**plan.settings)
    heads = Heads(Codec(table.domain), device=context.device)
    checkpoint = Checkpoint.open(context, "p3gm.pt", table.meter)
    trainer = P3gmTrainer(heads, settings, device=context.device)
    trainer.encode(table, checkpoint, Emitter(context.on_event))
    optimizer = trainer.decoder_optimizer(table, plan, checkpoint.state)
    train(
        private(plan.phase(DECODER)),
        optimizer,
        steps=settings.steps,
        checkpoint=checkpoint,
        key="descent",
        preview=lambda: trainer.fitted(optimizer.average, checkpoint.state).preview(),
        on_event=context.on_event,
    )
    return trainer.fitted(optimizer.average, checkpoint.state)


def load(folder: Path) -> FittedGenerator:
    """See `Synthesizer.load`."""
    codec, values, weights, _ = read_generator(folder)
    trainer = P3gmTrainer(Heads(codec), P3gmSettings(**values["settings"]))
    return trainer.fitted(weights["flat"], weights)


class P3gmTrainer:
    """P3GM on one device."""

    def __init__(self, heads: Heads, settings: P3gmSettings, *, device: str = "cpu"):
        self._heads = heads
        self._settings = settings
        self._device = device
        codec, weight = heads.codec, settings.target_weight
        self._centred = CentredRecords(codec, target_weight=weight, device=device)
        self._projected = settings.dimensions < heads.width
        self._latent = settings.dimensions if self._projected else heads.width

    def encode(self, table: PrivateTable, checkpoint: Checkpoint, emitter: Emitter) -> None:
        """Make the releases of the first phase that the checkpoint does not hold yet."""
        if self._projected and "directions" not in checkpoint.state:
            moments = Moments.of(
                self._points, width=self._centred.width, radius=self._centred.radius
            )
            tick = emitter.release(table.plan.phase(PCA))
            release = table.release(PCA, moments, device=self._device, tick=tick)
            axes = principal(release, table.n, moments, self._latent)
            checkpoint.keep(mean=axes.mean, directions=axes.components, variances=axes.variances)
        projection, steps = self._projection(checkpoint.state), self._settings.em_steps
        if "means" not in checkpoint.state:
            start = Mixture.start(self._settings.components, self._latent, projection.radius)
            _keep_mixture(checkpoint, start)
        emitter.phase(EM, table.plan.phase(EM).title, private=True)
        for step in range(table.meter.runs(EM), steps):
            mechanism = MixtureStep.balanced(
                lambda codes: projection(self._heads.codec.expand(codes)),
                _mixture(checkpoint.state),
                projection.radius,
            )
            release = table.release(EM, mechanism, device=self._device)
            _keep_mixture(checkpoint, update(release, mechanism, table.n))
            emitter.send(Progress(step=step + 1, steps=steps, phase=EM))

    def decoder_optimizer(self, table: PrivateTable, plan: Plan, state: dict[str, Any]) -> DPAdam:
        """The last phase, fresh or as it was kept.

        Gradients go without a clip where no privacy is claimed, and nowhere else.
        """
        start = torch.Generator().manual_seed(state["seed"])
        networks = self._networks(start)
        elbo = ElboGradient(
            self._heads,
            self._projection(state),
            networks,
            _mixture(state),
            weight=self._settings.weight,
            spread=self._settings.spread,
        )
        clip_norm = self._settings.clip_norm if plan.budget.private else math.inf
        optimizer = DPAdam(
            networks,
            ClippedGradient(
                networks=networks,
                grad_factors=elbo.grad_factors,
                clip_norm=clip_norm,
                draws=elbo.draws,
            ),
            table.sampled(DECODER, view=self._heads.view, device=self._device),
            rate=self._settings.rate,
            steps=self._settings.steps,
            averaging=AVERAGING,
        )
        optimizer.load_state_dict(state.get("descent"), charged=table.meter.runs(DECODER))
        return optimizer

    def fitted(self, flat: Tensor, state: dict[str, Any]) -> FittedGenerator:
        """A decoder with these parameters and the mixture of `state`, on the CPU."""
        networks = self._networks(None, device="cpu")
        networks.load(flat.detach().cpu())
        mixture, radius = _mixture(state), self._radius

        def emit(rows: int, random: torch.Generator) -> Tensor:
            z = clip_rows(mixture.sample(rows, random), radius).to(torch.float32)
            return networks[DECODER](z)

        return FittedGenerator(
            self._heads.codec,
            model=P3gm.card.id,
            settings=self._settings.model_dump(),
            weights={
                "flat": networks.flat.detach(),
                "weights": mixture.weights,
                "means": mixture.means,
                "spreads": mixture.variances,
            },
            draw_chunk=self._heads.drawing(emit),
        )

    @property
    def _radius(self) -> float:
        return REACH * math.sqrt(self._latent) if self._projected else self._centred.radius

    def _points(self, codes: Codes) -> Tensor:
        return self._centred(self._heads.codec.expand(codes))

    def _projection(self, state: dict[str, Any]) -> Projection:
        directions = None
        if self._projected:
            directions = Principal(state["mean"], state["directions"], state["variances"])
        return Projection(self._centred, directions, self._radius)

    def _networks(self, generator: torch.Generator | None, device: str | None = None) -> Dense:
        shapes = {DECODER: (self._latent, self._settings.hidden, self._heads.total)}
        if self._settings.spread:
            shapes[SPREAD] = (self._centred.width, self._settings.spread_hidden, self._latent)
        networks = Dense(shapes, generator=generator, device=device or self._device)
        with torch.no_grad():
            for name in shapes:
                weight, bias = networks[name].layers[-1].views(networks.flat)
                weight.mul_(SMALL)
                if name == SPREAD:
                    bias.fill_(START_SPREAD)
        return networks


def _mixture(state: dict[str, Any]) -> Mixture:
    return Mixture(state["weights"], state["means"], state["spreads"])


def _keep_mixture(checkpoint: Checkpoint, mixture: Mixture) -> None:
    checkpoint.keep(weights=mixture.weights, means=mixture.means, spreads=mixture.variances)
