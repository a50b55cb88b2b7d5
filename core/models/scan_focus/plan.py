"""Scan and focus: what is read, and how much noise it gets.

PEARL measures random projections of small marginals. Here the projections are signs (a
characteristic function whose phases are 0 or π is real, and has modulus 1 whatever the number of
columns), so one release *scans* every small set of columns for what no smaller set explains.
Counts of the cells then go to the significant sets, and a mixture of products is fitted to all
of it in closed form.

Source: Liew, Takahashi and Ueno, "PEARL", ICLR 2022 (§4.1, characteristic functions); Liu, Vietri
and Wu, "Iterative Methods for Private Synthetic Data", NeurIPS 2021 (GEM: a network over fixed
latents fitted to noisy marginals).
"""

from __future__ import annotations

import math
from typing import ClassVar

from core.encoding.codec import Codec
from core.models.card import Card, Stage, settings_of
from core.models.registry import register
from core.models.scan_focus.settings import ScanFocusSettings
from core.models.steps.counting.design import COLUMNS, FOCUS, PAIRS, Design
from core.models.steps.counting.phases import CLOSENESS, COUNTING_STAGES, TITLES, counting_phases
from core.models.synthesizer import Synthesizer
from core.privacy.plan import Phase, Plan
from core.schema.schema import Domain

STEPS = 1200  # of tables of up to `NARROW` columns; of wider ones fewer, by the root
MEMBERS = 4  # likewise
TRAININGS = 3  # times these steps, at most, where little noise leaves much to learn
NARROW = 100
# records a unit of noise; where there are fewer, steps go down by the root
FULL_TRAINING_SNR = 3000.0
MIN_STEPS_SHARE = 0.5  # of the steps, however strong the noise


@register
class ScanFocus(Synthesizer[ScanFocusSettings]):
    """See the module."""

    settings_class = ScanFocusSettings
    card: ClassVar[Card] = Card(
        id="scan_focus",
        name="Scan and focus",
        summary=(
            "Scans every small set of columns privately, counts the significant ones, and fits a "
            "mixture of record types to all counts."
        ),
        good_at="Mixed tables: pairs of columns, columns that follow from one another, and "
        "patterns that only three or four columns show together.",
        weak_at="Tables of thousands of columns; very long texts or lists.",
        source="PEARL (ICLR 2022) with scanned marginals and a GEM mixture (NeurIPS 2021)",
        stages=(
            *COUNTING_STAGES,
            Stage(
                name="preliminary",
                title="Preliminary model",
                makes="a first mixture",
                private=False,
            ),
            Stage(name=FOCUS, title=TITLES[FOCUS], makes="noisy counts of sets", private=True),
            Stage(name="training", title="Training", makes="a matching mixture", private=False),
        ),
        charts=(CLOSENESS,),
        soundness=(
            "Every number is a sum over records in which one record changes one cell of each set, "
            "or each sign product, by one. What is counted next depends on released numbers alone."
        ),
        settings=settings_of(ScanFocusSettings),
    )

    def training_phases(
        self, domain: Domain, n: int, settings: ScanFocusSettings, scale: float
    ) -> tuple[Phase, ...]:
        """See `Synthesizer.training_phases`; shares are of the composed Gaussian's 1/σ²."""
        design = Design.of(Codec(domain), settings.most_together)
        return counting_phases(design.shares(n, scale), scale)

    def finish(self, domain: Domain, plan: Plan, settings: ScanFocusSettings) -> ScanFocusSettings:
        """See `Synthesizer.finish`.

        Wide tables get fewer steps and mixtures, as they are slower. Where noise is strong there is
        less to learn, and further steps would follow the noise.
        """
        narrow = min(1.0, math.sqrt(NARROW / max(1, len(domain.modelled))))
        noises = {phase.name: phase.noise_multiplier for phase in plan.phases}
        noise = noises.get(PAIRS, noises[COLUMNS])  # of what the mixture mostly follows
        clear = min(1.0, math.sqrt(plan.n / (FULL_TRAINING_SNR * noise))) if noise else 1.0
        steps = settings.steps or round(STEPS * narrow * max(MIN_STEPS_SHARE, clear))
        trainings = settings.trainings or (1 if settings.steps else TRAININGS)
        members = settings.members or max(1, round(MEMBERS * narrow))
        automatic = {"steps": steps, "trainings": trainings, "members": members}
        return settings.model_copy(update=automatic)
