"""PPEM's settings."""

from __future__ import annotations

from pydantic import Field

from core.models.card import Frozen, tunable
from core.models.steps.training.settings import (
    BATCH,
    CLIP_NORM,
    FAKES,
    GENERATOR_LAYERS,
    LATENT,
    MORE_STEPS,
    PEAK_RATE,
    RATE,
    READS_RECORDS,
    SMALLER_NET,
    SNAPSHOTS,
    TEMPERATURE,
    WEIGHT_LIMIT,
    counting_share,
)

# What serves better where there is no noise, unless it is set by hand.
WITHOUT_PRIVACY = {
    "marginal_steps": 1000,
    "steps": 3000,
    "energy_steps": 5,
    "batch": 128,
    "fakes": 128,
    "rate": 5e-4,
    "hidden": 256,
    "energy_hidden": 256,
    "box": 0.0,
}


class PpemSettings(Frozen):
    """Public settings; none depends on data.

    Attributes:
      alpha: level of the penalty's test.
      margin: m of the margin loss.
      box: 0 for none.
      temperature: of the Gumbel-softmax.
      snapshots: of the last phase, kept over its last quarter for boosting.
    """

    marginal_steps: int = tunable(
        500, "Steps for tagged columns", MORE_STEPS, form=(1, 20_000), ge=1, le=100_000
    )
    steps: int = tunable(
        2000, "Steps for other columns", MORE_STEPS, form=(1, 20_000), ge=1, le=100_000
    )
    energy_steps: int = tunable(
        10, "Energy network steps per generator step", READS_RECORDS, form=(1, 100), ge=1, le=200
    )
    batch: int = BATCH
    fakes: int = FAKES
    marginal_share: float = tunable(
        0.2,
        "Budget for tagged columns",
        "Share of the training budget. The other columns get the rest.",
        form=(0.01, 0.99),
        gt=0.0,
        lt=1.0,
    )
    clip_norm: float = CLIP_NORM
    penalty_clip: float = tunable(
        0.25,
        "Penalty clipping",
        "Limit for the α-LMDP penalty, as a multiple of the clipping norm.",
        form=(0.01, 10),
        gt=0.0,
        le=10.0,
    )
    penalty: float = tunable(
        3.0,
        "Penalty weight λ_α",
        "How strongly training shifts the tagged columns. 0 trains without a penalty.",
        form=(0, 100),
        ge=0.0,
        le=1000.0,
    )
    alpha: float = Field(default=0.05, gt=0.0, lt=0.5)
    margin: float = tunable(
        10.0,
        "Margin",
        "Training raises the energy of generated records up to this level.",
        form=(0.1, 100),
        gt=0.0,
        le=1000.0,
    )
    lipschitz: float = tunable(
        1.0,
        "Lipschitz penalty",
        "Higher values give smoother energies.",
        form=(0, 100),
        ge=0.0,
        le=1000.0,
    )
    hidden: int = tunable(128, "Generator width", GENERATOR_LAYERS, form=(4, 2048), ge=4, le=4096)
    latent: int = LATENT
    energy_hidden: int = tunable(
        64, "Energy network width", SMALLER_NET, form=(4, 2048), ge=4, le=4096
    )
    rate: float = RATE
    energy_rate: float = tunable(
        1e-3, "Energy network learning rate", PEAK_RATE, form=(1e-5, 0.1), gt=0.0, le=1.0
    )
    box: float = tunable(
        1.0, "Energy network weight limit", WEIGHT_LIMIT, form=(0, 10), ge=0.0, le=100.0
    )
    temperature: float = TEMPERATURE
    snapshots: int = SNAPSHOTS
    count_share: float = counting_share(0.5)
