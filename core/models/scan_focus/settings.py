"""Settings of scan and focus."""

from __future__ import annotations

from pydantic import Field

from core.models.card import Frozen, tunable
from core.models.steps.training.settings import LEAST_STEPS, AutomaticSteps


class ScanFocusSettings(Frozen):
    """Public settings; none depends on data.

    Attributes:
      steps: of the last training, which cost time and never privacy; 0 follows from the width.
      trainings: how often, at most, these steps are taken: again for as long as the mixture lies
        farther from the counts than their noise; 0 is three times where steps are automatic.
      preliminary_steps: of the training in between, whose errors say what is counted last.
      members: mixtures that are trained apart and put together; 0 follows from the width.
      components: of each mixture.
      most_together: columns, besides the target, that are looked at together at most.
      hidden, latent: widths of the network.
      rate: peak learning rate of Adam.
    """

    steps: AutomaticSteps = tunable(
        0,
        "Training steps",
        "Of each mixture; half of them, 600 at least, where three or more columns were counted "
        "together. 0: as many as the table's width allows in minutes, and up to three times as "
        "many where there is more to learn. They cost time, never privacy.",
        form=(0, 20_000),
        ge=0,
        le=200_000,
    )
    trainings: int = Field(default=0, ge=0, le=100)
    preliminary_steps: int = Field(default=200, ge=LEAST_STEPS, le=200_000)
    members: int = tunable(
        0,
        "Mixtures put together",
        "Trained apart from the same counts; their errors average out. 0: four, fewer where the "
        "table is wide.",
        form=(0, 16),
        ge=0,
        le=64,
    )
    components: int = tunable(
        500,
        "Mixture components",
        "Kinds of record in each mixture. More are finer and slower.",
        form=(50, 5000),
        ge=8,
        le=20_000,
    )
    most_together: int = tunable(
        4,
        "Columns looked at together",
        "Besides the target. Larger sets are left out where there would be too many.",
        form=(2, 5),
        ge=2,
        le=6,
    )
    hidden: int = tunable(
        256, "Hidden width", "Width of the network's layers.", form=(8, 2048), ge=8, le=4096
    )
    latent: int = Field(default=64, ge=1, le=1024)
    rate: float = tunable(
        2e-2, "Learning rate", "Peak rate of Adam.", form=(1e-4, 0.2), gt=0.0, le=1.0
    )
