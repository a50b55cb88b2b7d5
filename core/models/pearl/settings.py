"""PEARL's settings."""

from __future__ import annotations

from pydantic import Field

from core.models.card import Frozen, tunable
from core.models.steps.training.settings import (
    GENERATOR_LAYERS,
    PEAK_RATE,
    SMOOTHER,
    AutomaticSteps,
)


class PearlSettings(Frozen):
    """Public settings; none depends on data.

    Attributes:
      steps: 0 follows the noise: past the point where the mismatch is all noise, more steps only
        learn that noise.
      frequencies: complex ones, in all (k); groups follow from it.
      groups_per_step: groups of frequencies compared per step.
      latent: width of what the generator starts from.
      critic: how far it may re-weight, log units.
    """

    steps: AutomaticSteps = tunable(
        0,
        "Training steps",
        "More steps take longer but cost no privacy. 0 chooses as many as are useful "
        "at this level of noise.",
        form=(0, 50_000),
        ge=0,
        le=200_000,
    )
    frequencies: int = tunable(
        10_000,
        "Frequencies",
        "Numbers in the fingerprint.",
        form=(100, 100_000),
        ge=100,
        le=200_000,
    )
    batch: int = tunable(
        1000, "Generated records per step", SMOOTHER, form=(32, 10_000), ge=32, le=100_000
    )
    groups_per_step: int = Field(default=48, ge=1, le=10_000)
    hidden: int = tunable(256, "Network width", GENERATOR_LAYERS, form=(8, 2048), ge=8, le=4096)
    latent: int = Field(default=32, ge=1, le=1024)
    rate: float = tunable(3e-3, "Learning rate", PEAK_RATE, form=(1e-5, 0.1), gt=0.0, le=1.0)
    critic: float = tunable(
        0.3,
        "Critic strength",
        "How far the critic may shift weight to frequencies that do not match yet. 0 turns it off.",
        form=(0, 2),
        ge=0.0,
        le=2.0,
    )
    distance_share: float = tunable(
        0.0,
        "Budget for the typical distance",
        "Share of ε spent on measuring how far records lie apart, which scales the "
        "frequencies. 0 uses a fixed value.",
        form=(0, 0.5),
        ge=0.0,
        le=0.5,
    )
