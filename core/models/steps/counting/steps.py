"""Counting, as steps that any model may list: a release each; needs no torch before it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from core.encoding.codec import Codec
from core.models.card import Chart, Stage
from core.models.step import FitContext, State
from core.models.steps.counting.design import (
    COLUMNS,
    PAIRS,
    PAIRS_AGAIN,
    RELATIONS,
    SCALES,
    SCAN,
    ZEROS,
    Design,
)
from core.privacy.accounting.scale_search import noise_for_share
from core.privacy.plan import Phase
from core.schema.schema import Domain

if TYPE_CHECKING:
    from core.privacy.guarded import PrivateTable

CLOSENESS = Chart(
    title="How close the synthetic table is to what was counted",
    caption="Lower is closer. At 1, the distance is what the noise alone would cause:"
    " the model has learned all that the counts show.",
    unit="distance, in units of the noise",
    series=("single columns", "pairs of columns", "larger sets"),
)


class Counted(NamedTuple):
    """What one release of counts is called, in plans and on cards."""

    name: str
    title: str
    what: str
    makes: str

    @property
    def stage(self) -> Stage:
        """On the card."""
        return Stage(name=self.name, title=self.title, makes=self.makes, private=True)


BINS = Counted(
    SCALES,
    "Histogram of each column",
    "How many records lie in each narrow and each wide bin of every column. The bins of all later "
    "counts are built from it.",
    "bins of each column",
)
CELLS = Counted(
    COLUMNS,
    "Counts of each column",
    "How many records lie in each bin of every column.",
    "noisy counts",
)
SETS = Counted(
    SCAN,
    "Scan of all small sets of columns",
    "Sums of products of signs, one sign per column, for every small set of columns and each value "
    "of the target. Sets with a significant result are counted next.",
    "sets of related columns",
)
RELATED = Counted(
    RELATIONS,
    "Columns that are in order, add up, multiply or lie close together",
    "For every two numeric columns, in how many records the first is below, equal to or above the "
    "second; for every three that could add up or multiply, in how many they do; for years, "
    "months and the like beside a date, in how many they are that of the date; and for numbers or "
    "dates that the scan shows to go together, how far apart they are.",
    "orders and sums that hold in every row",
)
SELECTED_PAIRS = Counted(
    PAIRS,
    "Counts of pairs of columns",
    "How many records lie in each cell of the selected pairs of columns. If there are enough "
    "records, every column, and every pair that differs between values of the target, is counted "
    "for each of these values.",
    "noisy counts of pairs",
)
SAME_PAIRS = Counted(
    PAIRS_AGAIN,
    "Second counts of pairs of columns",
    "The same pairs once more. Those whose first counts leave the most to learn get the least "
    "noise.",
    "more exact counts of pairs",
)
EMPTY_CELLS = Counted(
    ZEROS,
    "Cells without records",
    "How many records lie where the counts of pairs show none: cells of pairs of columns, and all "
    "values below or above one together with a label.",
    "values that never go together",
)
COUNTING_STAGES = tuple(
    one.stage for one in (BINS, CELLS, SETS, RELATED, SELECTED_PAIRS, SAME_PAIRS)
)


@dataclass(frozen=True)
class Count:
    """A `Step`: one release of counts. `State.measured` holds what all of them know.

    Attributes:
      file: checkpoint of all counting steps of a model.
      share: of the budget that goes to all of them, in (0, 1].
      focus: whether something is counted after the pairs.
    """

    counted: Counted
    design: Design
    file: str
    share: float = 1.0
    focus: bool = False

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """See `Step`; shares are of the composed Gaussian's 1/σ²."""
        name, title, what, _ = self.counted
        shares = self.design.shares(n, scale / math.sqrt(self.share), focus=self.focus)
        share = self.share * shares[name]
        noise = noise_for_share(scale, share)
        return (Phase(name=name, title=title, what=what, share=share, noise_multiplier=noise),)

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        # tensors: cards and plans must not wait for them
        from core.models.steps.counting.releases import Releases

        known, plan = state.measured, state.plan or table.plan
        if known is None:
            known = Releases(table, plan, self.design, context, self.file)
        planned = {phase.name for phase in plan.phases}
        if self.counted not in (BINS, CELLS) and self.counted.name not in planned:
            return replace(state, measured=known)  # what was learned made room for it later
        return replace(state, measured=known.measure(self.counted.name))


def counting_steps(
    domain: Domain, together: int, file: str, *, share: float = 1.0, last: Counted | None = None
) -> tuple[Count, ...]:
    """The counting steps of a table, in order.

    Args:
      together: columns, besides the target, that are scanned together at most.
      file, share: see `Count`.
      last: what is counted after the pairs, where there are any.
    """
    design = Design.of(Codec(domain), together)
    counted = [BINS, CELLS]
    if design.pairs:
        counted += [SETS, *([RELATED] if design.related else [])]
        counted += [SELECTED_PAIRS, SAME_PAIRS]
        counted += [] if last is None else [EMPTY_CELLS, last]
    return tuple(Count(one, design, file, share, last is not None) for one in counted)
