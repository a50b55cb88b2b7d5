"""The private phases of counting: how they are called and what they say; needs no torch."""

from __future__ import annotations

from collections.abc import Mapping

from core.models.card import Chart, Stage
from core.models.steps.counting.design import COLUMNS, FOCUS, PAIRS, RELATIONS, SCALES, SCAN
from core.privacy.accounting.split import noise_for_share
from core.privacy.plan import Phase

TITLES = {
    SCALES: "Histogram of each column",
    COLUMNS: "Counts of each column",
    SCAN: "Scan of all small sets of columns",
    RELATIONS: "Columns that add up",
    PAIRS: "Counts of pairs of columns",
    FOCUS: "Counts that correct the preliminary model",
}
WHAT = {
    SCALES: "How many records lie in each narrow and each wide bin of every column. The bins of "
    "all later counts are built from it.",
    COLUMNS: "How many records lie in each bin of every column.",
    SCAN: "Sums of products of signs, one sign per column, for every small set of "
    "columns and each value of the target. Sets with a significant result are "
    "counted next.",
    RELATIONS: "For every three numeric columns that could add up, how many records do.",
    PAIRS: "How many records lie in each cell of the selected pairs of columns. If "
    "there are enough records, every column, and every pair that differs "
    "between values of the target, is counted for each of these values.",
    FOCUS: "Counts for sets of three or more columns where the preliminary model "
    "contradicts the scan. If there are none, the pairs are counted again.",
}
COUNTING_STAGES = tuple(
    Stage(name=name, title=TITLES[name], makes=makes, private=True)
    for name, makes in (
        (SCALES, "bins of each column"),
        (COLUMNS, "noisy counts"),
        (SCAN, "sets of related columns"),
        (RELATIONS, "sums that hold in every row"),
        (PAIRS, "noisy counts of pairs"),
    )
)
CLOSENESS = Chart(
    title="How close the synthetic table is to what was counted",
    caption="Lower is closer. At 1, the distance is what the noise alone would cause:"
    " the model has learned all that the counts show.",
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
