"""DP-auto-GAN's settings."""

from __future__ import annotations

from pydantic import Field

from core.models.card import tunable
from core.models.steps.training.settings import (
    CLIPPING,
    MORE_STEPS,
    PEAK_RATE,
    SMALLER_NET,
    GanSettings,
)

# What serves better where there is no noise, unless it is set by hand.
WITHOUT_PRIVACY = {
    "encoder_steps": 2000,
    "encoder_rate": 5e-4,
    "critic_hidden": 256,
    "clip_norm": 100.0,
    "box": 1.0,
}


class DpAutoGanSettings(GanSettings):
    """See `GanSettings`; the generator makes codes.

    Attributes:
      fakes: generated records per step.
      noise: width of what the generator starts from.
    """

    encoder_steps: int = tunable(
        4000, "Autoencoder steps", MORE_STEPS, form=(1, 50_000), ge=1, le=100_000
    )
    encoder_share: float = tunable(
        0.3,
        "Budget for the autoencoder",
        "Share of the training budget. The critic gets the rest.",
        form=(0.05, 0.95),
        gt=0.0,
        lt=1.0,
    )
    encoder_rate: float = tunable(
        2e-3, "Autoencoder learning rate", PEAK_RATE, form=(1e-5, 0.1), gt=0.0, le=1.0
    )
    encoder_clip: float = tunable(
        1.0, "Autoencoder clipping norm", CLIPPING, form=(0.01, 100), gt=0.0, le=1000.0
    )
    encoder_hidden: int = tunable(
        60, "Autoencoder width", SMALLER_NET, form=(1, 2048), ge=1, le=4096
    )
    latent: int = tunable(
        15, "Code length", "Numbers in the code of a record.", form=(1, 512), ge=1, le=1024
    )
    fakes: int = Field(default=256, ge=16, le=10_000)
    clip_norm: float = tunable(
        1.0, "Critic clipping norm", CLIPPING, form=(0.01, 100), gt=0.0, le=100.0
    )
    noise: int = Field(default=32, ge=1, le=1024)
    rate: float = tunable(
        1e-4, "Generator learning rate", PEAK_RATE, form=(1e-5, 0.1), gt=0.0, le=1.0
    )
