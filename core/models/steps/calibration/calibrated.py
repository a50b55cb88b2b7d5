"""Models a part of whose budget goes to private counts, which their rows are fitted to.

The counts are those of scan and focus: of columns, and of pairs of columns that a scan finds
significant. What follows is post-processing: generated rows are weighed so that they agree with the
counts as far as the counts' noise says (`row_weights`), and rows are drawn by their weights. Needs
no torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from core.encoding.codec import Codec
from core.models.step import FitContext, State, Step
from core.models.steps.counting.design import SCALES, TOGETHER, Design
from core.models.steps.counting.phases import counting_phases
from core.models.synthesizer import Settings, Synthesizer, Training
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Phase, Plan
from core.schema.schema import Domain

S = TypeVar("S", bound=Settings)
SHARE = "count_share"  # name of the setting


@dataclass(frozen=True)
class CountTables:
    """A `Step`: counts of columns and of the pairs that a scan finds significant.

    Attributes:
      share: of the budget, in (0, 1).
    """

    share: float

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """See `Step`."""
        design = Design.of(Codec(domain), TOGETHER)
        shares = design.shares(n, scale / math.sqrt(self.share), focus=False)
        return counting_phases({name: self.share * s for name, s in shares.items()}, scale)

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        # tensors: cards and plans must not wait for them
        from core.models.steps.calibration.calibration import count

        return replace(state, counts=count(table, state.plan or table.plan, context))


@dataclass(frozen=True)
class Calibrate:
    """A `Step`: the rows of the trained model are fitted to the counts; reads no real row.

    Attributes:
      candidates: see `Calibrated`.
    """

    candidates: int

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """See `Step`."""
        return ()

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        # tensors: cards and plans must not wait for them
        from core.models.steps.calibration.calibration import calibrated

        model = calibrated(state.trained, state.counts, context, candidates=self.candidates)
        return replace(state, model=model)


class Calibrated(Synthesizer[S]):
    """A model with a setting `count_share`; 0 leaves it as it is by itself.

    Attributes:
      candidates: rows that the model generates for each that is drawn, ≥ 2; fewer where it is slow.
    """

    candidates: ClassVar[int] = 16

    def protects_sensitive(self, settings: S) -> bool:
        """Whether training itself bends tagged columns away from the real ones."""
        return self.card.protects

    def count_share(self, domain: Domain, settings: S) -> float:
        """Of the budget, for counts, in [0, 1).

        None where training bends tagged columns: counts of them would bring back what it hides, and
        so would counts of columns that go with them.
        """
        bent = self.protects_sensitive(settings) and domain.sensitive
        return 0.0 if bent else float(settings.model_dump()[SHARE])

    def steps(self, domain: Domain, settings: S) -> tuple[Step, ...]:
        """See `Synthesizer`: counts come first, since all else is drawn to them."""
        share = self.count_share(domain, settings)
        if not share:
            return super().steps(domain, settings)
        training = Training(self, settings, share=1.0 - share)
        return (CountTables(share), training, Calibrate(self.candidates))

    def finish(self, domain: Domain, plan: Plan, settings: S) -> S:
        """See `Synthesizer.finish`: a plan without counts says so."""
        if any(phase.name == SCALES for phase in plan.phases):
            return settings
        without = settings.model_dump() | {SHARE: 0.0}
        return self.configure(without, private=plan.budget.private)
