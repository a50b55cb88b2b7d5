"""P3GM: a private projection and mixture first, then a decoder trained by DP-SGD.

Private phases: DP-PCA (one Gaussian release), DP-EM for the mixture of projected records (one
Gaussian release a step), DP-SGD on the decoder and on the network that says how uncertain a
record's latent point is. Sampling draws a latent point from the mixture and decodes it.

Where this departs from the paper, and why:
  * the mean that centres the PCA is released with the second moment, not read for free;
  * DP-EM releases sums with a bounded sensitivity, since the printed one does not hold
    (`core.privacy.mechanisms.mixture`);
  * records are decoded to distributions over bins (`Heads`) rather than to one predicted
    value a column, which would shrink numbers to their mean;
  * projections are scaled to unit variance, layers are narrow and batches large, all of which
    leaves less noise for the same ε.

Source: Takagi, Takahashi, Cao and Yoshikawa, "P3GM: Private High-Dimensional Data Release via
Privacy Preserving Phased Generative Model", ICDE 2021 (corrected version).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from core.encoding.codec import Codec
from core.message import Message
from core.models.card import Card, Chart, Frozen, Stage, settings_of, tunable
from core.models.registry import register
from core.models.steps.calibration.calibrated import Calibrated
from core.models.steps.counting.steps import CLOSENESS, COUNTING_STAGES
from core.models.steps.training import settings as common
from core.models.steps.training.phases import CLIPPED, gradient_phase
from core.privacy.accounting.scale_search import noise_for_share
from core.privacy.plan import Phase
from core.schema.schema import Domain

PCA, EM, DECODER = "pca", "em", "decoder"  # names of the private phases
AUTOMATIC = {"dimensions": (8, 12), "components": (5, 20)}  # with privacy, without


class P3gmSettings(Frozen):
    """Public settings; none depends on data.

    Attributes:
      dimensions: d'; a table that is no wider is not projected, and no budget goes there.
      spread_hidden: width of the spread network's hidden layer; narrow, since it matters less.
      weight: β of the KL term.
    """

    dimensions: int = tunable(
        0,
        "Directions kept",
        "Main directions (principal components) of the table. 0 chooses 8, or 12 without privacy.",
        form=(0, 500),
        ge=0,
        le=1000,
    )
    components: int = tunable(
        0,
        "Groups",
        "Groups of similar records to look for. 0 chooses 5, or 20 without privacy.",
        form=(0, 100),
        ge=0,
        le=200,
    )
    em_steps: int = tunable(10, "Grouping steps", common.MORE_STEPS, form=(1, 100), ge=1, le=200)
    steps: int = tunable(
        4000, "Decoder steps", common.MORE_STEPS, form=(1, 100_000), ge=1, le=200_000
    )
    batch: int = common.BATCH
    clip_norm: float = tunable(
        1.0, "Clipping norm", common.CLIPPING, form=(0.01, 1000), gt=0.0, le=1000.0
    )
    hidden: int = tunable(128, "Decoder width", common.SMALLER_NET, form=(4, 2048), ge=4, le=4096)
    spread_hidden: int = Field(default=32, ge=1, le=4096)
    spread: bool = tunable(
        True,
        "Learn uncertainty",
        "Also learns how precisely a record's position between the groups is known. Off is the "
        "paper's variant P3GM (AE).",
        form=(0, 1),
    )
    weight: float = tunable(
        1.0,
        "Pull towards the groups",
        "Weight of the KL term, which keeps records close "
        "to the groups that new ones are drawn from.",
        form=(0, 10),
        ge=0.0,
        le=100.0,
    )
    rate: float = tunable(2e-3, "Learning rate", common.PEAK_RATE, form=(1e-5, 0.1), gt=0.0, le=1.0)
    pca_share: float = tunable(
        0.15,
        "Budget for directions",
        "Share of ε spent on finding the main directions.",
        form=(0.01, 0.5),
        gt=0.0,
        le=0.5,
    )
    em_share: float = tunable(
        0.1,
        "Budget for groups",
        "Share of ε spent on finding the groups.",
        form=(0.01, 0.4),
        gt=0.0,
        le=0.4,
    )
    target_weight: float = tunable(
        1.0,
        "Weight of the target",
        "Above 1, more of the target column is kept, and less of the others.",
        form=(0.1, 10),
        gt=0.0,
        le=10.0,
    )
    count_share: float = common.counting_share(0.5)


@register
class P3gm(Calibrated[P3gmSettings]):
    """See the module."""

    settings_class = P3gmSettings
    card: ClassVar[Card] = Card(
        id="p3gm",
        name="P3GM",
        summary="Finds the table's main directions and groups of similar records, then trains a "
        "decoder that turns points from these groups into new records. Each stage adds noise.",
        good_at="Mixed tables, including wide ones; training classifiers on synthetic"
        " rows; short training times.",
        weak_at="Rare categories, and details that only a few records show.",
        source="Takagi et al.: P3GM, ICDE 2021",
        published=(
            ("Adult at (1, 1e-5), mean ROC AUC of four classifiers", "0.8214"),
            ("Adult at (1, 1e-5), mean PR AUC of four classifiers", "0.5972"),
            ("Credit at (1, 1e-5), mean ROC AUC", "0.8991"),
            ("Adult, mean 2-way marginal distance", "0.3867"),
        ),
        stages=(
            *COUNTING_STAGES,
            Stage(
                name=PCA, title="Main directions", makes="noisy means and directions", private=True
            ),
            Stage(name=EM, title="Groups", makes="a mixture of groups", private=True),
            Stage(
                name=DECODER,
                title="Training the decoder",
                makes="a decoder from points to records",
                private=True,
            ),
        ),
        charts=(
            Chart(
                title="Signal and noise in each step",
                caption="Size of the average training step, divided by the size of "
                "its noise. It falls as the decoder fits the data better.",
                unit="signal-to-noise ratio",
                series=("signal-to-noise ratio",),
            ),
            CLIPPED,
            CLOSENESS,
        ),
        soundness="The mean that centres the records is released with noise, too. DP-EM releases "
        "bounded sums instead of means and covariances, because the paper's sensitivity does not "
        "hold for small groups. Gradients of the decoder and the spread network are clipped "
        "together.",
        settings=settings_of(P3gmSettings),
    )

    def configure(self, settings: Mapping[str, Any], *, private: bool) -> P3gmSettings:
        """See `Synthesizer.configure`; what is 0 follows from whether there is privacy."""
        chosen = super().configure(settings, private=private)
        automatic = {
            name: values[0] if private else values[1]
            for name, values in AUTOMATIC.items()
            if getattr(chosen, name) == 0
        }
        return chosen.model_copy(update=automatic)

    def training_phases(
        self, domain: Domain, n: int, settings: P3gmSettings, scale: float
    ) -> tuple[Phase, ...]:
        """See `Synthesizer`; a table that is no wider than a point is not projected.

        The decoder then gets the projection's share.
        """
        projected = settings.dimensions < Codec(domain).width
        rest = 1.0 - (settings.pca_share if projected else 0.0) - settings.em_share
        pca = Phase(
            name=PCA,
            title="Main directions",
            what="Sums of all encoded columns and of the products of all pairs of "
            "them, with Gaussian noise.",
            share=settings.pca_share,
            noise_multiplier=noise_for_share(scale, settings.pca_share),
        )
        em = Phase(
            name=EM,
            title="Groups",
            what=Message(
                "Sizes, means and variances of {n} groups of records, with Gaussian noise on every "
                "number.",
                n=settings.components,
            ),
            share=settings.em_share,
            noise_multiplier=noise_for_share(scale, settings.em_share, count=settings.em_steps),
            count=settings.em_steps,
        )
        decoder = gradient_phase(
            DECODER,
            "Training the decoder",
            scale=scale,
            n=n,
            batch=settings.batch,
            count=settings.steps,
            share=rest,
        )
        return (pca, em, decoder) if projected else (em, decoder)
