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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import Field

from core.models.card import Card, Frozen, Stage, settings_of, tunable
from core.models.registry import register
from core.models.saved_model import Fitted, SavedModel
from core.models.step import FitContext, FreeStep, State, Step
from core.models.steps.counting.design import FOCUS
from core.models.steps.counting.steps import (
    CLOSENESS,
    COUNTING_STAGES,
    EMPTY_CELLS,
    Counted,
    counting_steps,
)
from core.models.steps.training.settings import LEAST_STEPS, PEAK_RATE, AutomaticSteps
from core.models.synthesizer import Synthesizer
from core.privacy.plan import Plan
from core.schema.schema import Domain

if TYPE_CHECKING:
    from core.models.base_sampler import FittedGenerator
    from core.privacy.guarded import PrivateTable

FILE = "scan_focus.pt"  # checkpoint of counts and training
STEPS = 600  # of tables of up to `NARROW` columns; of wider ones fewer, by the root
MEMBERS = 12  # likewise
TRAININGS = 6  # times these steps, at most, where little noise leaves much to learn
NARROW = 100


class ScanFocusSettings(Frozen):
    """Public settings; none depends on data.

    Attributes:
      trainings: how often, at most, `steps` are taken: again for as long as the mixture lies
        farther from the counts than their noise; 0 is six times if steps are automatic.
      preliminary_steps: of the training in between, whose errors say what is counted last.
      copies: how often each component stands in the model, see `ScanFocus.replica_settings`.
      latent: width of what the network starts from.
    """

    steps: AutomaticSteps = tunable(
        0,
        "Training steps",
        "Training steps of each mixture. More take longer but cost no privacy. 0 trains for as "
        "long as the counts show more than the mixtures have learned.",
        form=(0, 20_000),
        ge=0,
        le=200_000,
    )
    trainings: int = Field(default=0, ge=0, le=100)
    preliminary_steps: int = Field(default=200, ge=LEAST_STEPS, le=200_000)
    members: int = tunable(
        0,
        "Mixtures combined",
        "Trained separately on the same counts, so that their errors average out. 0 "
        "chooses twelve, or fewer for wide tables.",
        form=(0, 32),
        ge=0,
        le=64,
    )
    copies: int = Field(default=1, ge=1, le=64)
    components: int = tunable(
        200,
        "Mixture components",
        "Record types in each mixture. More give finer results but take longer.",
        form=(50, 5000),
        ge=8,
        le=20_000,
    )
    most_together: int = tunable(
        4,
        "Columns per set",
        "The most columns, besides the target, that are scanned together. Large sets "
        "are left out if there are too many.",
        form=(2, 5),
        ge=2,
        le=6,
    )
    hidden: int = tunable(
        128,
        "Network width",
        "Neurons in each hidden layer of the network.",
        form=(8, 2048),
        ge=8,
        le=4096,
    )
    latent: int = Field(default=64, ge=1, le=1024)
    rate: float = tunable(2e-2, "Learning rate", PEAK_RATE, form=(1e-4, 0.2), gt=0.0, le=1.0)


LAST = Counted(
    FOCUS,
    "Counts to correct the preliminary model",
    "Counts for sets of three or more columns where the preliminary model contradicts the scan. If "
    "there are none, the pairs are counted again.",
    "noisy counts of sets",
)


@dataclass(frozen=True)
class TrainPreliminary(FreeStep):
    """A `Step`: a first mixture of what was counted; reads no real row."""

    settings: ScanFocusSettings

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        trainer: Any = ScanFocus().trainer()
        focus = trainer.train_preliminary(state.measured, self.settings, context)
        return replace(state, measured=focus)


@dataclass(frozen=True)
class TrainMixture(FreeStep):
    """A `Step`: the mixture of all that was counted; reads no real row."""

    settings: ScanFocusSettings

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        trainer: Any = ScanFocus().trainer()
        mixture = trainer.train_mixture(state.measured, self.settings, context)
        return replace(state, model=SavedModel(mixture))


@register
class ScanFocus(Synthesizer[ScanFocusSettings]):
    """See the module."""

    settings_class = ScanFocusSettings
    histories = True
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
            EMPTY_CELLS.stage,
            Stage(
                name="preliminary",
                title="Preliminary model",
                makes="a first mixture",
                private=False,
            ),
            LAST.stage,
            Stage(name="training", title="Training", makes="a matching mixture", private=False),
        ),
        charts=(CLOSENESS,),
        soundness=(
            "Every number is a sum over records in which one record changes one cell of each set, "
            "or each sign product, by one. What is counted next depends on released numbers alone."
        ),
        settings=settings_of(ScanFocusSettings),
        replicas=True,
    )

    def steps(self, domain: Domain, settings: ScanFocusSettings) -> tuple[Step, ...]:
        """See `Synthesizer`: what is counted last follows from a model of the rest."""
        counting = counting_steps(domain, settings.most_together, FILE, last=LAST)
        after = [step for step in counting if step.counted is LAST]
        before = counting[: len(counting) - len(after)]
        return (*before, TrainPreliminary(settings), *after, TrainMixture(settings))

    def replica_settings(self, settings: ScanFocusSettings, fitted: Fitted) -> ScanFocusSettings:
        """See `Synthesizer`: one mixture, whose error no others average out.

        It takes two thirds of the steps that the run's mixtures took. Its components stand in the
        model as often as there were mixtures, so that rows are drawn as coarsely.
        """
        taken = cast("FittedGenerator", fitted).settings["steps"]
        steps, preliminary = 2 * taken // 3, settings.preliminary_steps // 2
        fewer = {"steps": steps, "preliminary_steps": preliminary}
        enough = {name: max(LEAST_STEPS, count) for name, count in fewer.items()}
        one = {"members": 1, "trainings": 1, "copies": settings.members}
        return settings.model_copy(update={**one, **enough})

    def finish(self, domain: Domain, plan: Plan, settings: ScanFocusSettings) -> ScanFocusSettings:
        """See `Synthesizer.finish`.

        Wide tables get fewer steps and mixtures, as they are slower.
        """
        narrow = min(1.0, math.sqrt(NARROW / max(1, len(domain.modelled))))
        steps = settings.steps or max(LEAST_STEPS, round(STEPS * narrow))
        trainings = settings.trainings or (1 if settings.steps else TRAININGS)
        members = settings.members or max(1, round(MEMBERS * narrow))
        automatic = {"steps": steps, "trainings": trainings, "members": members}
        return settings.model_copy(update=automatic)
