"""PEARL: one private embedding of the table, then a generator trained against it for free.

Private phases: one Gaussian release of the table's characteristic function at sparse random
frequencies, joint with the class where a target is named; optionally one more of the mean distance
between records, which scales those frequencies. Generator, critic, number of steps and stopping see
only these releases.

Where this departs from the paper, and why:
  * frequencies touch one or two columns each instead of all (`pearl.characteristic_function`): same
    sensitivity, far more signal above the noise;
  * the generator emits distributions whose characteristic function is known in closed form
    (`pearl.mixture_generator`): no argmax and no relaxation between training and sampling;
  * the printed sensitivity of the pair distance assumes codes in [0, 1] while its generator works
    in [-1, 1]; ours are in [0, 1], pairs are disjoint, and the release is off by default because
    frequencies spread over five octaves make it worth less than the budget it takes.

Source: Liew, Takahashi and Ueno, "PEARL: Data Synthesis via Private Embeddings and Adversarial
Reconstruction Learning", ICLR 2022.
"""

from __future__ import annotations

import math
from typing import ClassVar

from core.encoding.codec import Codec
from core.message import Message
from core.models.card import Card, Chart, Stage, settings_of
from core.models.pearl.design import DISTANCE, EMBEDDING, Design, condition_block
from core.models.pearl.settings import PearlSettings
from core.models.registry import register
from core.models.synthesizer import Synthesizer
from core.privacy.plan import Phase, Plan
from core.schema.schema import Domain


@register
class Pearl(Synthesizer[PearlSettings]):
    """See the module."""

    settings_class = PearlSettings
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
    )

    def training_phases(
        self, domain: Domain, n: int, settings: PearlSettings, scale: float
    ) -> tuple[Phase, ...]:
        """See `Synthesizer.training_phases`; shares are of the composed Gaussian's 1/σ²."""
        codec = Codec(domain)
        share = settings.distance_share if domain.numeric else 0.0
        embedding = Phase(
            name=EMBEDDING,
            title="Fingerprint of the table",
            what=_embedding_words(codec),
            share=1.0 - share,
            noise_multiplier=scale / math.sqrt(1.0 - share),
        )
        if not share:
            return (embedding,)
        distance = Phase(
            name=DISTANCE,
            title="Typical distance between records",
            what="Mean distance between random pairs of records in each numeric "
            "column, with Gaussian noise.",
            share=share,
            noise_multiplier=scale / math.sqrt(share),
        )
        return (distance, embedding)

    def finish(self, domain: Domain, plan: Plan, settings: PearlSettings) -> PearlSettings:
        """See `Synthesizer.finish`: how many steps the noise deserves."""
        if settings.steps:
            return settings
        design = Design.of(Codec(domain), settings.frequencies)
        noise = design.noise(plan.phase(EMBEDDING).noise_multiplier, plan.n)
        return settings.model_copy(update={"steps": _steps(noise)})


def _embedding_words(codec: Codec) -> Message:
    """What is measured of the table, for people."""
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
