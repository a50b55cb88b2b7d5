"""DP-GAN's settings."""

from __future__ import annotations

from core.models.steps.training.settings import LATENT, GanSettings


class DpGanSettings(GanSettings):
    """See `GanSettings`.

    Attributes:
      latent: width of what the generator starts from.
    """

    latent: int = LATENT
