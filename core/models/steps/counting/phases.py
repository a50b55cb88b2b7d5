"""The private phases of counting: how they are called and what they say; needs no torch."""

from __future__ import annotations

from collections.abc import Mapping

from core.models.card import Chart, Stage
from core.models.steps.counting.design import COLUMNS, FOCUS, PAIRS, RELATIONS, SCALES, SCAN
from core.privacy.accounting.split import noise_for_share
from core.privacy.plan import Phase

__all__ = ["CLOSENESS", "COUNTING_STAGES", "TITLES", "counting_phases"]

TITLES = {
    SCALES: "Fine counts of each column",
    COLUMNS: "Counts of each column",
    SCAN: "Scan of all small sets of columns",
    RELATIONS: "Columns that add up",
    PAIRS: "Counts of pairs of columns",
    FOCUS: "Counts where the draft is wrong",
}
WHAT = {
    SCALES: "How many records lie in each fine and each coarse cell of every column. The cells of "
    "all later counts are made from it.",
    COLUMNS: "How many records lie in each cell of every column.",
    SCAN: "Sums of products of signs, one sign a column, over every set of a few columns and each "
    "value of the target: what stands out above the noise is counted next.",
    RELATIONS: "For each three numeric columns that could add up, how many records do.",
    PAIRS: "How many records lie in each cell of the pairs that stood out, for each value of the "
    "target where they go together differently and enough records are there to show it, and in "
    "each cell of every column for each value of the target.",
    FOCUS: "Counts of the cells of those sets of three or more columns whose scan a draft of the "
    "synthetic table contradicts; of the pairs once more where there is none.",
}
COUNTING_STAGES = tuple(
    Stage(name=name, title=TITLES[name], makes=makes, private=True)
    for name, makes in (
        (SCALES, "cells of each column"),
        (COLUMNS, "noisy counts"),
        (SCAN, "what goes together"),
        (RELATIONS, "rules that rows keep"),
        (PAIRS, "noisy counts of pairs"),
    )
)
CLOSENESS = Chart(
    title="How close the synthetic table is to what was counted",
    caption="Lower is closer. At 1 the distance is what the noise alone would make: all that the "
    "counts know is learned.",
    unit="distance, in units of the noise",
    series=("single columns", "pairs of columns", "larger sets"),
)


def counting_phases(shares: Mapping[str, float], scale: float) -> tuple[Phase, ...]:
    """The releases of a design as phases of a plan, in their order.

    Args:
      shares: of the whole precision, by phase.
      scale: of all noise, ≥ 0.
    """
    return tuple(
        Phase(
            name=name,
            title=TITLES[name],
            what=WHAT[name],
            share=share,
            noise_multiplier=noise_for_share(scale, share),
        )
        for name, share in shares.items()
    )
