"""P3GM's settings."""

from __future__ import annotations

from pydantic import Field

from core.models.card import Frozen, tunable
from core.models.steps.training.settings import (
    BATCH,
    CLIPPING,
    MORE_STEPS,
    PEAK_RATE,
    SMALLER_NET,
    counting_share,
)


class P3gmSettings(Frozen):
    """Public settings; none depends on data.

    Attributes:
      dimensions: d'; a table that is no wider is not projected, and no budget goes there.
      spread_hidden: width of the spread network's hidden layer; narrow, since it matters less.
      weight: β of the KL term.
      pca_share, em_share: of what `count_share` leaves; the decoder takes the rest.
      target_weight: stretch of the target in the projection.
    """

    dimensions: int = tunable(
        0,
        "Directions kept",
        "Main directions (principal components) of the table. 0 chooses 8, or 12 without privacy.",
        form=(0, 500),
        ge=0,
        le=1000,
    )
    components: int = tunable(
        0,
        "Groups",
        "Groups of similar records to look for. 0 chooses 5, or 20 without privacy.",
        form=(0, 100),
        ge=0,
        le=200,
    )
    em_steps: int = tunable(10, "Grouping steps", MORE_STEPS, form=(1, 100), ge=1, le=200)
    steps: int = tunable(4000, "Decoder steps", MORE_STEPS, form=(1, 100_000), ge=1, le=200_000)
    batch: int = BATCH
    clip_norm: float = tunable(1.0, "Clipping norm", CLIPPING, form=(0.01, 1000), gt=0.0, le=1000.0)
    hidden: int = tunable(128, "Decoder width", SMALLER_NET, form=(4, 2048), ge=4, le=4096)
    spread_hidden: int = Field(default=32, ge=1, le=4096)
    spread: bool = tunable(
        True,
        "Learn uncertainty",
        "Also learns how precisely a record's position "
        "between the groups is known. Off is the paper's "
        "variant P3GM (AE).",
        form=(0, 1),
    )
    weight: float = tunable(
        1.0,
        "Pull towards the groups",
        "Weight of the KL term, which keeps records close "
        "to the groups that new ones are drawn from.",
        form=(0, 10),
        ge=0.0,
        le=100.0,
    )
    rate: float = tunable(2e-3, "Learning rate", PEAK_RATE, form=(1e-5, 0.1), gt=0.0, le=1.0)
    pca_share: float = tunable(
        0.15,
        "Budget for directions",
        "Share of ε spent on finding the main directions.",
        form=(0.01, 0.5),
        gt=0.0,
        le=0.5,
    )
    em_share: float = tunable(
        0.1,
        "Budget for groups",
        "Share of ε spent on finding the groups.",
        form=(0.01, 0.4),
        gt=0.0,
        le=0.4,
    )
    target_weight: float = tunable(
        1.0,
        "Weight of the target",
        "Above 1, more of the target column is kept, and less of the others.",
        form=(0.1, 10),
        gt=0.0,
        le=10.0,
    )
    count_share: float = counting_share(0.5)
