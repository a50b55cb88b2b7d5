"""Models a part of whose budget goes to private counts, which their rows are fitted to.

The counts are those of scan and focus: of columns, and of pairs of columns that a scan finds
significant. What follows is post-processing: generated rows are weighed so that they agree with the
counts as far as the counts' noise says (`row_weights`), and rows are drawn by their weights. Needs
no torch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from core.models.step import FitContext, FreeStep, State, Step
from core.models.steps.counting.design import SCALES, TOGETHER
from core.models.steps.counting.steps import counting_steps
from core.models.synthesizer import Settings, Synthesizer, Training
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan
from core.schema.schema import Domain

S = TypeVar("S", bound=Settings)
SHARE = "count_share"  # name of the setting
FILE = "counts.pt"  # checkpoint of the counts


@dataclass(frozen=True)
class Calibrate(FreeStep):
    """A `Step`: the rows of the trained model are fitted to the counts; reads no real row."""

    candidates: int

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        # tensors: cards and plans must not wait for them
        from core.models.steps.calibration.calibration import calibrated

        model = calibrated(state.trained, state.measured, context, candidates=self.candidates)
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
        counting = counting_steps(domain, TOGETHER, FILE, share=share)
        return (*counting, training, Calibrate(self.candidates))

    def finish(self, domain: Domain, plan: Plan, settings: S) -> S:
        """See `Synthesizer.finish`: a plan without counts says so."""
        if any(phase.name == SCALES for phase in plan.phases):
            return settings
        without = settings.model_dump() | {SHARE: 0.0}
        return self.configure(without, private=plan.budget.private)
