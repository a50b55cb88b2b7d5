"""DP-auto-GAN's training: an autoencoder, then a GAN that makes codes for its decoder."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from core.encoding.codec import Codec
from core.models.base_sampler import FittedGenerator, read_generator
from core.models.dp_auto_gan.plan import AUTOENCODER, DpAutoGan, DpAutoGanSettings
from core.models.step import FitContext
from core.models.steps.training.adversarial import seeded
from core.models.steps.training.dp_optimizer import DPAdam
from core.models.steps.training.gan_trainer import Generator, gan_ensemble, train_gan
from core.models.steps.training.heads import Heads
from core.models.steps.training.phases import CRITIC
from core.models.steps.training.snapshot_ensemble import SnapshotEnsemble
from core.models.steps.training.training_loop import Checkpoint, private, train
from core.privacy.dpsgd.dense import Dense, GradFactor
from core.privacy.dpsgd.gradient import ClippedGradient
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan

AVERAGING = 0.99  # decay of the running average of the autoencoder's parameters
ENCODER, DECODER = "encoder", "decoder"  # names of networks
_SMALL = 0.1  # the last layer starts this much smaller, so that training begins at equal odds


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> FittedGenerator:
    """See `Synthesizer.fit`."""
    settings = DpAutoGanSettings(**plan.settings)
    heads = Heads(Codec(table.domain), device=context.device)
    checkpoint = Checkpoint.open(context, "dp_auto_gan.pt", table.meter)
    start = torch.Generator().manual_seed(checkpoint.seed)
    autoencoder = AutoEncoder(heads, settings, device=context.device, generator=start)
    _train_autoencoder(table, settings, autoencoder, checkpoint, context)

    def fitted(weights: dict[str, Tensor], history: dict[str, Tensor]) -> FittedGenerator:
        return _fitted(heads, settings, weights, autoencoder.networks.flat, history)

    return train_gan(
        table,
        context,
        checkpoint,
        heads=heads,
        settings=settings,
        generator=seeded(lambda: _generator(settings, autoencoder), checkpoint.seed + 1),
        fitted=fitted,
        seed=checkpoint.seed + 2,
        label=CRITIC,
    )


def _train_autoencoder(
    table: PrivateTable,
    settings: DpAutoGanSettings,
    autoencoder: AutoEncoder,
    checkpoint: Checkpoint,
    context: FitContext,
) -> None:
    """The first phase; only what was kept of it where the second has begun."""
    networks = autoencoder.networks
    optimizer = DPAdam(
        networks,
        ClippedGradient(
            networks=networks,
            grad_factors=autoencoder.grad_factors,
            clip_norm=settings.encoder_clip,
        ),
        table.sampled(AUTOENCODER, view=autoencoder.heads.view, device=context.device),
        rate=settings.encoder_rate,
        steps=settings.encoder_steps,
        averaging=AVERAGING,
        label=AUTOENCODER,
    )
    state = checkpoint.state
    optimizer.load_state_dict(state.get("descent"), charged=table.meter.runs(AUTOENCODER))
    if "game" not in state:
        train(
            private(table.plan.phase(AUTOENCODER)),
            optimizer,
            steps=settings.encoder_steps,
            checkpoint=checkpoint,
            key="descent",
            preview=list,
            on_event=context.on_event,
        )
    networks.load(optimizer.average)


def load(folder: Path) -> FittedGenerator:
    """See `Synthesizer.load`."""
    codec, values, weights, history = read_generator(folder)
    settings = DpAutoGanSettings(**values["settings"])
    return _fitted(Heads(codec), settings, weights, weights.pop(AUTOENCODER), history)


def ensemble(fitted: FittedGenerator) -> SnapshotEnsemble:
    """The snapshots of a fit, for boosting; see `core.models.pgb.plan`."""
    settings = DpAutoGanSettings(**fitted.settings)
    autoencoder = AutoEncoder(Heads(fitted.codec), settings)
    autoencoder.networks.load(fitted.weights[AUTOENCODER])
    return gan_ensemble(fitted, _generator(settings, autoencoder), settings.critic_hidden)


def _generator(settings: DpAutoGanSettings, autoencoder: AutoEncoder) -> Generator:
    return Generator(
        latent=settings.noise,
        hidden=(settings.hidden,) * 3,
        outputs=settings.latent,
        decode=autoencoder.decode,
    )


def _fitted(
    heads: Heads,
    settings: DpAutoGanSettings,
    weights: dict[str, Tensor],
    flat: Tensor,
    history: dict[str, Tensor],
) -> FittedGenerator:
    autoencoder = AutoEncoder(heads, settings)
    autoencoder.networks.load(flat.detach().cpu())
    generator = _generator(settings, autoencoder)
    generator.load_state_dict(weights)
    return FittedGenerator(
        heads.codec,
        model=DpAutoGan.card.id,
        settings=settings.model_dump(),
        weights={**weights, AUTOENCODER: autoencoder.networks.flat.detach()},
        draw_chunk=heads.drawing(generator.draw),
        history=history,
    )


class AutoEncoder:
    """width → hidden → latent → hidden → S, with tanh at the latent, clipped and noised as one.

    Clipping only the decoder, as printed, would leave the encoder a function of exact records, and
    through it every record's decoder gradient would depend on every other record.

    Args:
      generator: data-free randomness on the CPU for the start.
    """

    def __init__(
        self,
        heads: Heads,
        settings: DpAutoGanSettings,
        *,
        device: str = "cpu",
        generator: torch.Generator | None = None,
    ):
        self.heads = heads
        hidden, latent = settings.encoder_hidden, settings.latent
        shapes = {ENCODER: (heads.width, hidden, latent), DECODER: (latent, hidden, heads.total)}
        self.networks = Dense(shapes, generator=generator, device=device)
        with torch.no_grad():
            weight, _ = self.networks[DECODER].layers[-1].views(self.networks.flat)
            weight.mul_(_SMALL)

    def grad_factors(self, rows: Tensor) -> list[GradFactor]:
        """Rows [b, ·] as `Heads.view` makes them → gradient factors of every layer.

        The loss of a record is Σ_columns cross-entropy of its own bins.
        """
        expanded, bins = self.heads.split(rows)
        encoder, decoder = self.networks[ENCODER], self.networks[DECODER]
        into = encoder.forward(expanded)
        z = torch.tanh(into.out)
        out = decoder.forward(z)
        gradient = self.heads.gradient(out.out, bins)
        decoded, input_gradient = decoder.backward(out, gradient, to_input=True)
        assert input_gradient is not None
        return encoder.backward(into, input_gradient * (1.0 - z.square()))[0] + decoded

    def decode(self, outputs: Tensor) -> Tensor:
        """Generator outputs [b, latent], any real numbers → bin logits [b, S]; differentiable."""
        return self.networks[DECODER](torch.tanh(outputs))
