"""P3GM: a private projection and mixture first, then a decoder trained by DP-SGD.

Private phases: DP-PCA (one Gaussian release), DP-EM for the mixture of projected records (one
Gaussian release a step), DP-SGD on the decoder and on the network that says how uncertain a
record's latent point is. Sampling draws a latent point from the mixture and decodes it.

Where this departs from the paper, and why:
  * the mean that centres the PCA is released with the second moment, not read for free;
  * DP-EM releases sums with a bounded sensitivity, since the printed one does not hold
    (`core.privacy.mechanisms.mixture`);
  * records are decoded to distributions over slots (`shared.heads`) rather than to one predicted
    value a column, which would shrink numbers to their mean;
  * projections are scaled to unit variance, layers are narrow and batches large, all of which
    leaves less noise for the same ε.

Source: Takagi, Takahashi, Cao and Yoshikawa, "P3GM: Private High-Dimensional Data Release via
Privacy Preserving Phased Generative Model", ICDE 2021 (corrected version).
"""

from __future__ import annotations

import math
import secrets
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from core.models.synthesizer import Card, Chart, Observe, Stage, register, setting_of
from core.privacy.accounting.accountant import check_budget
from core.privacy.accounting.split import noise_for_share
from core.privacy.plan import Budget, Phase, Plan
from core.privacy.planning import planned
from core.table.codec import Codec
from core.table.schema import Domain

if TYPE_CHECKING:
    from core.models.shared.fitted import SlotFitted
    from core.privacy.guarded import PrivateTable

__all__ = ["P3gm", "P3gmSettings"]

PCA, EM, DECODER = "pca", "em", "decoder"  # names of the private phases
AUTOMATIC = {"dimensions": (8, 12), "components": (5, 20)}  # with privacy, without


class P3gmSettings(BaseModel):
    """Public settings; none depends on data.

    Attributes:
      dimensions: d', coordinates of a latent point; 0 follows from whether there is privacy. A
        table that is no wider is not projected, and no budget goes there.
      components: of the mixture; 0 follows likewise.
      em_steps: steps of DP-EM.
      steps: of DP-SGD.
      batch: expected records a step.
      clip_norm: of one record's gradient.
      hidden: width of the decoder's hidden layer.
      spread_hidden: width of the spread network's; narrow, since it matters less.
      spread: whether latent points are uncertain; off is the paper's P3GM (AE).
      weight: of the KL term, β.
      rate: peak learning rate.
      pca_share, em_share: of the budget; the decoder takes the rest.
      target_weight: stretch of the target in the projection.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dimensions: int = Field(default=0, ge=0, le=1000)
    components: int = Field(default=0, ge=0, le=200)
    em_steps: int = Field(default=10, ge=1, le=200)
    steps: int = Field(default=4000, ge=1, le=200_000)
    batch: int = Field(default=512, ge=1, le=100_000)
    clip_norm: float = Field(default=1.0, gt=0.0, le=1000.0)
    hidden: int = Field(default=128, ge=4, le=4096)
    spread_hidden: int = Field(default=32, ge=1, le=4096)
    spread: bool = True
    weight: float = Field(default=1.0, ge=0.0, le=100.0)
    rate: float = Field(default=2e-3, gt=0.0, le=1.0)
    pca_share: float = Field(default=0.15, gt=0.0, le=0.5)
    em_share: float = Field(default=0.1, gt=0.0, le=0.4)
    target_weight: float = Field(default=1.0, gt=0.0, le=10.0)


_setting = partial(setting_of, P3gmSettings)


@register
class P3gm:
    """See the module."""

    card: ClassVar[Card] = Card(
        id="p3gm",
        name="P3GM",
        summary="Finds the table's main directions and groups privately, then trains a decoder "
        "that turns points among them into records.",
        good_at="Mixed tables, wide ones too; predictions made from the synthetic table; quick.",
        weak_at="Details that show in few records, and rare categories.",
        source="Takagi et al.: P3GM, ICDE 2021",
        published=(
            ("Adult at (1, 1e-5), mean ROC AUC of four classifiers", "0.8214"),
            ("Adult at (1, 1e-5), mean PR AUC of four classifiers", "0.5972"),
            ("Credit at (1, 1e-5), mean ROC AUC", "0.8991"),
            ("Adult, mean 2-way marginal distance", "0.3867"),
        ),
        stages=(
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
                title="How much of each step is signal",
                caption="Length of the average step over that of its noise alone. It falls as the "
                "decoder comes to fit.",
                unit="signal over noise",
                series=("signal above noise",),
            ),
            Chart(
                title="Records whose influence was cut back",
                caption="Share of the real records of a batch that were clipped, itself released "
                "with noise. High is normal here.",
                unit="% of records",
                series=("records clipped, %",),
            ),
        ),
        soundness="The centring mean is paid for; DP-EM releases bounded sums instead of means "
        "and covariances, whose printed sensitivity fails for small groups; decoder and spread "
        "network are clipped jointly.",
        settings=(
            _setting("dimensions", "Directions kept", "0: 8, or 12 without privacy.", 0, 500),
            _setting("components", "Groups", "0: 5, or 20 without privacy.", 0, 100),
            _setting("em_steps", "Steps for the groups", "Each costs budget.", 1, 100),
            _setting("steps", "Decoder steps", "More spread the budget thinner.", 1, 100_000),
            _setting("batch", "Records a step", "Expected size of a random batch.", 1, 20_000),
            _setting("clip_norm", "Clip norm", "Largest influence of one record.", 0.01, 1000),
            _setting("hidden", "Decoder width", "Smaller means less noise.", 4, 2048),
            _setting("spread", "Uncertain points", "Off is the paper's variant P3GM (AE).", 0, 1),
            _setting("weight", "Pull to the groups", "Weight of the KL term.", 0, 10),
            _setting("rate", "Learning rate", "Peak rate of Adam.", 1e-5, 0.1),
            _setting("pca_share", "Budget for directions", "Share of ε.", 0.01, 0.5),
            _setting("em_share", "Budget for groups", "Share of ε.", 0.01, 0.4),
            _setting(
                "target_weight", "Weight of the target", "Keeps the target more exact.", 0.1, 10
            ),
        ),
    )

    def plan(
        self, domain: Domain, n: int, budget: Budget, settings: dict[str, Any] | None = None
    ) -> Plan:
        """See `Synthesizer.plan`."""
        check_budget(budget, n)
        chosen = P3gmSettings(**(settings or {}))
        for name, (private, free) in AUTOMATIC.items():
            if getattr(chosen, name) == 0:
                automatic = private if budget.private else free
                chosen = chosen.model_copy(update={name: automatic})
        projected = chosen.dimensions < Codec(domain).width
        phases = partial(_phases, chosen, n, projected)
        return planned(self.card.id, n, budget, phases, chosen.model_dump())

    def fit(
        self,
        table: PrivateTable,
        plan: Plan,
        *,
        observe: Observe,
        folder: Path,
        seed: int | None = None,
        device: str = "cpu",
        resume: bool = False,
    ) -> SlotFitted:
        """See `Synthesizer.fit`."""
        from core.models.p3gm.trainer import Phased
        from core.models.shared.heads import Heads
        from core.models.shared.training_loop import Checkpoint, Loop, run_loop

        settings = P3gmSettings(**plan.settings)
        heads = Heads(Codec(table.domain), device=device)
        fresh = {"seed": secrets.randbits(62) if seed is None else seed}
        kept = Checkpoint.open(folder / "p3gm.pt", table.meter, resume=resume, fresh=fresh)
        phased = Phased(heads, settings, device=device)
        phased.encode(table, kept, observe=observe)
        descent = phased.descent(table, kept.state, bounded=plan.budget.private)
        run_loop(
            Loop(
                name=DECODER,
                title=table.plan.phase(DECODER).title,
                start=descent.done,
                steps=settings.steps,
                step=descent.step,
                metrics=lambda _: descent.metrics(),
                preview=lambda: phased.fitted(descent.average, kept.state).preview(),
                keep=lambda: kept.keep(descent=descent.state_dict()),
                private=True,
            ),
            observe,
        )
        return phased.fitted(descent.average, kept.state)

    def load(self, folder: Path) -> SlotFitted:
        """See `Synthesizer.load`."""
        from core.models.p3gm.trainer import Phased
        from core.models.shared.fitted import read_fitted

        heads, settings, weights, _ = read_fitted(folder)
        return Phased(heads, P3gmSettings(**settings)).fitted(weights["flat"], weights)


def _phases(chosen: P3gmSettings, n: int, projected: bool, scale: float) -> tuple[Phase, ...]:
    """The private accesses at a noise scale; without a projection its share goes to the decoder."""
    rate = min(1.0, chosen.batch / n)
    pca_share = chosen.pca_share if projected else 0.0
    rest = 1.0 - pca_share - chosen.em_share
    pca = Phase(
        name=PCA,
        title="Main directions",
        what="Sums and sums of products of all pairs of encoded columns, with Gaussian noise.",
        share=chosen.pca_share,
        noise_multiplier=noise_for_share(scale, chosen.pca_share),
    )
    em = Phase(
        name=EM,
        title="Groups",
        what=f"Sizes, means and spreads of {chosen.components} groups of records, with Gaussian "
        "noise on every number.",
        share=chosen.em_share,
        noise_multiplier=noise_for_share(scale, chosen.em_share, count=chosen.em_steps),
        count=chosen.em_steps,
    )
    decoder = Phase(
        name=DECODER,
        title="Training the decoder",
        what=f"Gradients at random batches of about {math.ceil(rate * n):,} records, each "
        "record's clipped, with Gaussian noise on every sum.",
        share=rest,
        noise_multiplier=noise_for_share(scale, rest, count=chosen.steps, sampling_rate=rate),
        count=chosen.steps,
        sampling_rate=rate,
    )
    return (pca, em, decoder) if projected else (em, decoder)
