"""PEARL: one private embedding of the table, then a generator trained against it for free.

Private phases: one Gaussian release of the table's characteristic function at sparse random
frequencies, joint with the class where a target is named; optionally one more of the mean distance
between records, which scales those frequencies. Generator, critic, number of steps and stopping see
only these releases.

Where this departs from the paper, and why:
  * frequencies touch one or two columns each instead of all (`pearl.characteristic_function`): same
    sensitivity, far more signal above the noise;
  * the generator emits distributions whose characteristic function is known in closed form
    (`pearl.matching`): no argmax and no relaxation between training and sampling;
  * the printed sensitivity of the pair distance assumes codes in [0, 1] while its generator works
    in [-1, 1]; ours are in [0, 1], pairs are disjoint, and the release is off by default because
    frequencies spread over five octaves make it worth less than the budget it takes.

Source: Liew, Takahashi and Ueno, "PEARL: Data Synthesis via Private Embeddings and Adversarial
Reconstruction Learning", ICLR 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import Field

from core.encoding.codec import Codec
from core.message import Message
from core.models.card import Card, Chart, Frozen, Stage, settings_of, tunable
from core.models.pearl.design import DISTANCE, EMBEDDING, Design, condition_block
from core.models.registry import register
from core.models.saved_model import Fitted, SavedModel
from core.models.step import FitContext, FreeStep, State, Step
from core.models.steps.training import settings as common
from core.models.steps.training.settings import AutomaticSteps
from core.models.synthesizer import Synthesizer
from core.privacy.plan import Phase, Plan
from core.schema.schema import Domain

if TYPE_CHECKING:
    from core.models.steps.training.training_loop import Checkpoint
    from core.privacy.guarded import PrivateTable


class PearlSettings(Frozen):
    """Public settings; none depends on data.

    Attributes:
      frequencies: complex ones, in all (k); groups follow from it.
      groups_per_step: groups of frequencies compared per step.
      latent: width of what the generator starts from.
    """

    steps: AutomaticSteps = tunable(
        0,
        "Training steps",
        "More steps take longer but cost no privacy. 0 chooses as many as are useful "
        "at this level of noise.",
        form=(0, 50_000),
        ge=0,
        le=200_000,
    )
    frequencies: int = tunable(
        10_000,
        "Frequencies",
        "Numbers in the fingerprint.",
        form=(100, 100_000),
        ge=100,
        le=200_000,
    )
    batch: int = tunable(
        1000, "Generated records per step", common.SMOOTHER, form=(32, 10_000), ge=32, le=100_000
    )
    groups_per_step: int = Field(default=48, ge=1, le=10_000)
    hidden: int = tunable(
        256, "Network width", common.GENERATOR_LAYERS, form=(8, 2048), ge=8, le=4096
    )
    latent: int = Field(default=32, ge=1, le=1024)
    rate: float = tunable(3e-3, "Learning rate", common.PEAK_RATE, form=(1e-5, 0.1), gt=0.0, le=1.0)
    critic: float = tunable(
        0.3,
        "Critic strength",
        "How far the critic may shift weight to frequencies that do not match yet. 0 turns it off.",
        form=(0, 2),
        ge=0.0,
        le=2.0,
    )
    distance_share: float = tunable(
        0.0,
        "Budget for the typical distance",
        "Share of ε spent on measuring how far records lie apart, which scales the "
        "frequencies. 0 uses a fixed value.",
        form=(0, 0.5),
        ge=0.0,
        le=0.5,
    )


@dataclass(frozen=True)
class MeasureDistance:
    """A `Step`: one release of how far records lie apart.

    Attributes:
      share: of the composed Gaussian's 1/σ².
    """

    share: float

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """See `Step`."""
        distance = Phase(
            name=DISTANCE,
            title="Typical distance between records",
            what="Mean distance between random pairs of records in each numeric "
            "column, with Gaussian noise.",
            share=self.share,
            noise_multiplier=scale / math.sqrt(self.share),
        )
        return (distance,)

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        # tensors: cards and plans must not wait for them
        from core.models.pearl.private_embedding import release_distances

        checkpoint = _checkpoint(table, state, context)
        release_distances(table, checkpoint, context)
        return replace(state, measured=checkpoint)


@dataclass(frozen=True)
class MeasureEmbedding:
    """A `Step`: one release of the embedding.

    Attributes:
      share: of the composed Gaussian's 1/σ².
    """

    settings: PearlSettings
    share: float

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """See `Step`."""
        embedding = Phase(
            name=EMBEDDING,
            title="Fingerprint of the table",
            what=_embedding_words(Codec(domain)),
            share=self.share,
            noise_multiplier=scale / math.sqrt(self.share),
        )
        return (embedding,)

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        # tensors: cards and plans must not wait for them
        from core.models.pearl.private_embedding import release_embedding

        checkpoint = _checkpoint(table, state, context)
        release_embedding(table, checkpoint, context, frequencies=self.settings.frequencies)
        return replace(state, measured=checkpoint)


@dataclass(frozen=True)
class MatchEmbedding(FreeStep):
    """A `Step`: the generator, trained on the embedding."""

    settings: PearlSettings

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        trainer: Any = Pearl().trainer()
        codec = Codec(table.domain)
        fitted = trainer.train_generator(codec, self.settings, state.measured, context)
        return replace(state, model=SavedModel(fitted))


def _checkpoint(table: PrivateTable, state: State, context: FitContext) -> Checkpoint:
    if state.measured is not None:
        return cast("Checkpoint", state.measured)
    # tensors: cards and plans must not wait for them
    from core.models.steps.training.training_loop import Checkpoint

    return Checkpoint.open(context, "pearl.pt", table.meter)


@register
class Pearl(Synthesizer[PearlSettings]):
    """See the module."""

    settings_class = PearlSettings
    histories = True
    card: ClassVar[Card] = Card(
        id="pearl",
        name="PEARL",
        summary=(
            "Measures a fingerprint of the table's columns and pairs of columns once,"
            " with noise. A generator is then trained to match it, which costs no "
            "more privacy however long it takes."
        ),
        good_at="Mixed tables of up to about 100 columns; short training times.",
        weak_at="Patterns that only three or more columns (besides the target) show together.",
        source="Liew, Takahashi, Ueno: PEARL, ICLR 2022",
        published=(
            ("Adult at (1, 1e-5), class-balanced, mean ROC AUC of ten classifiers", "0.721"),
            ("Adult at (1, 1e-5), class-balanced, mean PRC AUC of ten classifiers", "0.618"),
            ("Credit at (1, 1e-5), mean ROC AUC", "0.84"),
            ("Adult, mean L1 error over 2-way marginals", "0.71"),
        ),
        stages=(
            Stage(
                name=DISTANCE,
                title="Typical distance",
                makes="a scale for differences",
                private=True,
            ),
            Stage(
                name=EMBEDDING,
                title="Fingerprint of the table",
                makes="noisy sums over columns and pairs",
                private=True,
            ),
            Stage(name="training", title="Training", makes="a matching generator", private=False),
        ),
        charts=(
            Chart(
                title="How close the synthetic table is to what was measured",
                caption="Lower is closer. A line that reaches the noise means the "
                "model has learned all that the fingerprint shows.",
                unit="mismatch",
                series=("single columns", "pairs of columns", "noise in the fingerprint"),
            ),
        ),
        soundness=(
            "Noise covers real and imaginary parts together with the class, under "
            "zero-out adjacency. The sensitivity of the typical distance is derived "
            "anew for codes in [0, 1] and disjoint pairs."
        ),
        settings=settings_of(PearlSettings),
        replicas=True,
    )

    def steps(self, domain: Domain, settings: PearlSettings) -> tuple[Step, ...]:
        """See `Synthesizer`."""
        share = settings.distance_share if domain.numeric else 0.0
        distance = (MeasureDistance(share),) if share else ()
        return (*distance, MeasureEmbedding(settings, 1.0 - share), MatchEmbedding(settings))

    def replica_settings(self, settings: PearlSettings, fitted: Fitted) -> PearlSettings:
        """See `Synthesizer`: few steps from where the run's generator ended."""
        return settings.model_copy(update={"steps": max(common.LEAST_STEPS, settings.steps // 6)})

    def finish(self, domain: Domain, plan: Plan, settings: PearlSettings) -> PearlSettings:
        """See `Synthesizer.finish`: how many steps the noise deserves."""
        if settings.steps:
            return settings
        design = Design.of(Codec(domain), settings.frequencies)
        noise = design.noise(plan.phase(EMBEDDING).noise_multiplier, plan.n)
        return settings.model_copy(update={"steps": _steps(noise)})


def _embedding_words(codec: Codec) -> Message:
    if condition_block(codec):
        return Message(
            "Sums of characteristic functions over {n} columns and their pairs, for each value of "
            "'{target}', with Gaussian noise on every number.",
            n=len(codec.blocks),
            target=codec.domain.target,
        )
    return Message(
        "Sums of characteristic functions over {n} columns and their pairs, with Gaussian noise on "
        "every number.",
        n=len(codec.blocks),
    )


def _steps(noise: float) -> int:
    """Steps before a generator begins to learn the embedding's noise; `noise` as in `Design`.

    >>> [_steps(noise) for noise in (0.5, 0.1, 0.018, 0.0)]
    [150, 540, 3000, 4000]
    """
    fewest, most, per_noise = 150, 4000, 54.0
    return int(min(most, max(fewest, per_noise / max(noise, 1e-9))))
