"""DP-GAN's settings."""

from __future__ import annotations

from core.models.steps.training.settings import LATENT, GanSettings


class DpGanSettings(GanSettings):
    """See `GanSettings`."""

    latent: int = LATENT
