"""Settings that several models have; needs no torch."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from core.models.card import Frozen, tunable

LEAST_STEPS = 10  # the learning rate's schedule needs a few to rise and fall


def _automatic_or_enough(steps: int) -> int:
    if 0 < steps < LEAST_STEPS:
        raise ValueError(f"must be 0 (automatic) or at least {LEAST_STEPS}")
    return steps


# What several settings say of themselves.
MORE_STEPS = "More steps mean more noise in each, since they share the privacy budget."
PEAK_RATE = "Highest learning rate during training."
SMALLER_NET = "Neurons in each hidden layer. Smaller networks suffer less from the noise."
READS_RECORDS = "Each reads real records and uses part of the privacy budget."
CLIPPING = (
    "The most that one record can change a step. Lower values add less noise but cut "
    "off more signal."
)
GENERATOR_LAYERS = "Neurons in each hidden layer of the generator."
WEIGHT_LIMIT = "Largest weight allowed, as a multiple of the largest weight at the start."
SMOOTHER = "More make training smoother and slower."

AutomaticSteps = Annotated[int, AfterValidator(_automatic_or_enough)]
BATCH = tunable(
    512,
    "Records per step",
    "Real records drawn at random for each training step, on average.",
    form=(1, 20_000),
    ge=1,
    le=100_000,
)
CLIP_NORM = tunable(1.0, "Clipping norm", CLIPPING, form=(0.01, 100), gt=0.0, le=100.0)
FAKES = tunable(256, "Generated records per step", SMOOTHER, form=(16, 5000), ge=16, le=10_000)
LATENT = tunable(
    32,
    "Latent dimensions",
    "Random numbers from which the generator makes a record.",
    form=(1, 512),
    ge=1,
    le=1024,
)
RATE = tunable(2e-4, "Generator learning rate", PEAK_RATE, form=(1e-5, 0.1), gt=0.0, le=1.0)
SNAPSHOTS = Field(default=0, ge=0, le=1000)
TEMPERATURE = tunable(
    0.7,
    "Temperature",
    "How sharply the generator chooses between categories during "
    "training. Lower is sharper, but less stable.",
    form=(0.05, 5),
    ge=0.05,
    le=10.0,
)


def counting_share(default: float) -> Any:
    """The setting `count_share` of a model that is calibrated to counts.

    Args:
      default: share of the budget, in [0, 1).
    """
    return tunable(
        default,
        "Budget for counts",
        "Share of ε spent on counts of columns and pairs of columns, to which the "
        "generated rows are adjusted. 0 turns this off.",
        form=(0, 0.9),
        ge=0.0,
        le=0.95,
    )


class GanSettings(Frozen):
    """Public settings; none depends on data.

    Attributes:
      snapshots: generators and critics kept over the last quarter, for boosting.
    """

    steps: int = tunable(2000, "Generator steps", MORE_STEPS, form=(1, 20_000), ge=1, le=100_000)
    critic_steps: int = tunable(
        10, "Critic steps per generator step", READS_RECORDS, form=(1, 100), ge=1, le=200
    )
    batch: int = BATCH
    fakes: int = FAKES
    clip_norm: float = CLIP_NORM
    hidden: int = tunable(128, "Generator width", GENERATOR_LAYERS, form=(4, 2048), ge=4, le=4096)
    critic_hidden: int = tunable(128, "Critic width", SMALLER_NET, form=(4, 2048), ge=4, le=4096)
    rate: float = RATE
    critic_rate: float = tunable(
        1e-3, "Critic learning rate", PEAK_RATE, form=(1e-5, 0.1), gt=0.0, le=1.0
    )
    box: float = tunable(
        0.5, "Critic weight limit", WEIGHT_LIMIT, form=(0.01, 10), gt=0.0, le=100.0
    )
    temperature: float = TEMPERATURE
    snapshots: int = SNAPSHOTS
    count_share: float = counting_share(0.5)
