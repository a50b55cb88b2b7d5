"""DP-GAN's settings."""

from __future__ import annotations

from core.models.card import tunable
from core.models.shared.gan_settings import GanSettings

__all__ = ["DpGanSettings"]


class DpGanSettings(GanSettings):
    """See `GanSettings`.

    Attributes:
      latent: width of what the generator starts from.
    """

    latent: int = tunable(
        32, "Latent width", "Independent directions of variation.", form=(1, 512), ge=1, le=1024
    )
