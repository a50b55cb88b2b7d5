"""DP-auto-GAN's first phase: encoder and decoder as one network, clipped and noised together.

Clipping only the decoder, as printed, would leave the encoder a function of exact records, and
through it every record's decoder gradient would depend on every other record.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.models.dp_auto_gan.plan import DpAutoGanSettings
from core.models.steps.training.heads import Heads
from core.privacy.dpsgd.dense import Dense, GradFactor

ENCODER, DECODER = "encoder", "decoder"  # names of networks
_SMALL = 0.1  # the last layer starts this much smaller, so that training begins at equal odds


class AutoEncoder:
    """width → hidden → latent → hidden → S, with tanh at the latent.

    Args:
      generator: data-free randomness on the CPU for the start.

    Attributes:
      networks: "encoder" and "decoder" on one flat vector.
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
