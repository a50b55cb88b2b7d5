"""Calibrated: a model a part of whose budget goes to private counts, which its rows are fitted to.

The counts are those of scan and focus: of columns, and of pairs of columns that a cheap scan says
go together. What follows is post-processing: generated rows are weighted so that they agree with
the counts as far as the counts' noise says (`tilt`), and rows are drawn by their weights. Needs no
torch.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar, TypeVar

from core.encoding.codec import Codec
from core.models.steps.counting.design import SCALES, TOGETHER, Design
from core.models.steps.counting.phases import counting_phases
from core.models.synthesizer import FitContext, Fitted, Settings, Synthesizer
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Phase, Plan
from core.schema.schema import Domain

__all__ = ["SHARE", "Calibrated"]

S = TypeVar("S", bound=Settings)
SHARE = "count_share"  # name of the setting


class Calibrated(Synthesizer[S]):
    """A model with a setting `count_share`; 0 leaves it as it is by itself.

    Attributes:
      candidates: rows that the model generates for each that is drawn, ≥ 2; fewer where it is slow.
    """

    candidates: ClassVar[int] = 16

    def own_phases(self, domain: Domain, n: int, settings: S, scale: float) -> tuple[Phase, ...]:
        """The private accesses of the model itself, as if it had the whole budget.

        Args:
          domain, n, settings, scale: see `Synthesizer.phases`.
        """
        raise NotImplementedError

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

    def phases(self, domain: Domain, n: int, settings: S, scale: float) -> tuple[Phase, ...]:
        """See `Synthesizer.phases`: counts come first, since all else is drawn to them."""
        part = self.count_share(domain, settings)
        if not part:
            return self.own_phases(domain, n, settings, scale)
        design = Design.of(Codec(domain), TOGETHER)
        shares = design.shares(n, scale / math.sqrt(part), focus=False)
        own = self.own_phases(domain, n, settings, scale / math.sqrt(1.0 - part))
        return (
            *counting_phases({name: part * share for name, share in shares.items()}, scale),
            *(p.model_copy(update={"share": p.share * (1.0 - part)}) for p in own),
        )

    def finish(self, domain: Domain, plan: Plan, settings: S) -> S:
        """See `Synthesizer.finish`: a plan without counts says so."""
        if _counted(plan):
            return settings
        without = settings.model_dump() | {SHARE: 0.0}
        return self.configure(without, private=plan.budget.private)

    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> Fitted:
        """See `Synthesizer.fit`; a plan without counts, as of earlier versions, has none."""
        if not _counted(plan):
            without = plan.model_copy(update={"settings": {**plan.settings, SHARE: 0.0}})
            return super().fit(table, without, context)
        # tensors: cards and plans must not wait for them
        from core.models.steps.calibration.calibration import fit_calibrated

        return fit_calibrated(self.trainer(), table, plan, context, candidates=self.candidates)

    def load(self, folder: Path) -> Fitted:
        """See `Synthesizer.load`."""
        # tensors: cards and plans must not wait for them
        from core.models.steps.calibration.reweighing import with_calibration

        return with_calibration(super().load(folder), folder)


def _counted(plan: Plan) -> bool:
    return any(phase.name == SCALES for phase in plan.phases)
