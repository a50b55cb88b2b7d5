"""Boosting's settings, and how they stand beside those of its base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from core.models.card import Frozen, tunable
from core.models.steps.training.settings import counting_share
from core.models.synthesizer import Settings

# What serves better where there is no noise, unless it is set by hand.
WITHOUT_PRIVACY = {"rounds": 1000, "candidates": 1024}


class PgbSettings(Frozen):
    """Public settings beside those of the base; none depends on data.

    The paper writes N for snapshots, T for rounds and r for candidates.

    Attributes:
      base: id of the model that is boosted.
      count_share: of what the selections leave; the base's own is 0.
      rejection: whether to keep records in proportion to D/(1 - D) of the average critic.
    """

    base: Literal["dp_gan", "dp_auto_gan", "ppem"] = "dp_gan"
    snapshots: int = tunable(
        32,
        "Snapshots",
        "Copies of the generator and critic kept from the last quarter of training.",
        form=(2, 500),
        ge=2,
        le=1000,
    )
    rounds: int = tunable(
        400,
        "Rounds",
        "How often a critic or question is chosen. More rounds mean more noise in each choice.",
        form=(1, 5000),
        ge=1,
        le=10_000,
    )
    candidates: int = tunable(
        256,
        "Candidates per generator",
        "Records from each generator that can enter the mixture.",
        form=(1, 2000),
        ge=1,
        le=10_000,
    )
    questions: int = tunable(
        1000,
        "Public questions",
        "Simple questions about one or two columns that can"
        " be chosen instead of a critic. 0 uses critics "
        "only.",
        form=(0, 5000),
        ge=0,
        le=10_000,
    )
    boost_share: float = tunable(
        0.15,
        "Budget for boosting",
        "Share of ε spent on choosing critics.",
        form=(0.01, 0.9),
        gt=0.0,
        lt=1.0,
    )
    count_share: float = counting_share(0.5)
    rejection: int = tunable(
        1,
        "Rejection sampling",
        "Also drops records that the average critic takes for generated. 1 is on, 0 is off.",
        form=(0, 1),
        ge=0,
        le=1,
    )


@dataclass(frozen=True)
class BoostedSettings:
    """Boosting's own settings beside those of its base.

    Attributes:
      base: of the base.
    """

    own: PgbSettings
    base: Settings

    def model_dump(self) -> dict[str, Any]:
        """See `Settings`: of both, side by side; what they share is equal."""
        return self.base.model_dump() | self.own.model_dump()


def split_settings(settings: Mapping[str, Any]) -> tuple[PgbSettings, dict[str, Any]]:
    """Boosting's own settings, and the base's by name, of all by name."""
    names = PgbSettings.model_fields
    own = PgbSettings(**{name: value for name, value in settings.items() if name in names})
    rest = {name: value for name, value in settings.items() if name not in names}
    return own, rest | {"snapshots": own.snapshots, "count_share": 0.0}
