"""Settings of scan and focus."""

from __future__ import annotations

from pydantic import Field

from core.models.card import Frozen, tunable
from core.models.steps.training.settings import (
    LEAST_STEPS,
    PEAK_RATE,
    AutomaticSteps,
)


class ScanFocusSettings(Frozen):
    """Public settings; none depends on data.

    Attributes:
      trainings: how often, at most, `steps` are taken: again for as long as the mixture lies
        farther from the counts than their noise; 0 is three times if steps are automatic.
      preliminary_steps: of the training in between, whose errors say what is counted last.
      latent: width of what the network starts from.
    """

    steps: AutomaticSteps = tunable(
        0,
        "Training steps",
        "Training steps of each mixture; half as many, but at least 600, if sets of "
        "three or more columns were counted. More take longer but cost no privacy. 0 "
        "chooses by the table's width, and up to three times as many if there is more"
        " to learn.",
        form=(0, 20_000),
        ge=0,
        le=200_000,
    )
    trainings: int = Field(default=0, ge=0, le=100)
    preliminary_steps: int = Field(default=200, ge=LEAST_STEPS, le=200_000)
    members: int = tunable(
        0,
        "Mixtures combined",
        "Trained separately on the same counts, so that their errors average out. 0 "
        "chooses four, or fewer for wide tables.",
        form=(0, 16),
        ge=0,
        le=64,
    )
    components: int = tunable(
        500,
        "Mixture components",
        "Record types in each mixture. More give finer results but take longer.",
        form=(50, 5000),
        ge=8,
        le=20_000,
    )
    most_together: int = tunable(
        4,
        "Columns per set",
        "The most columns, besides the target, that are scanned together. Large sets "
        "are left out if there are too many.",
        form=(2, 5),
        ge=2,
        le=6,
    )
    hidden: int = tunable(
        256,
        "Network width",
        "Neurons in each hidden layer of the network.",
        form=(8, 2048),
        ge=8,
        le=4096,
    )
    latent: int = Field(default=64, ge=1, le=1024)
    rate: float = tunable(2e-2, "Learning rate", PEAK_RATE, form=(1e-4, 0.2), gt=0.0, le=1.0)
