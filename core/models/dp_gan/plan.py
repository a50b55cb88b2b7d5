"""DP-GAN: a Wasserstein critic trained privately, a generator that only ever asks the critic.

Private phase: the critic, by DP-SGD. Only the gradients at real records touch private data; each is
clipped, their sum is noised. Gradients at generated records are clipped the same way, so that both
sides pull alike, and need no noise. The generator sees noisy critics alone, so its steps, the
snapshots kept along the way and everything drawn from them cost nothing more.

Choices:
  * the generator emits distributions over bins (`Heads`); critics see records drawn from
    them by straight-through Gumbel-softmax, in the layout of the encoded table;
  * critic weights are kept in a box, as in the first Wasserstein GAN;
  * a slow generator, large batches, and averaged generator weights.

Sources: Xie et al., "Differentially private generative adversarial network", 2018; Arjovsky et al.,
"Wasserstein GAN", 2017; Bie et al., "Private GANs, revisited", 2023 (many critic steps).
"""

from __future__ import annotations

from typing import ClassVar

from core.message import Message
from core.models.card import Card, Chart, Stage, settings_of
from core.models.registry import register
from core.models.steps.calibration.calibrated import Calibrated
from core.models.steps.counting.steps import CLOSENESS, COUNTING_STAGES
from core.models.steps.training.phases import CLIPPED, CRITIC, gradient_phase
from core.models.steps.training.settings import LATENT, GanSettings
from core.privacy.plan import Phase
from core.schema.schema import Domain

TITLE = "Training the critic and the generator"


class DpGanSettings(GanSettings):
    """See `GanSettings`."""

    latent: int = LATENT


@register
class DpGan(Calibrated[DpGanSettings]):
    """See the module."""

    settings_class = DpGanSettings
    card: ClassVar[Card] = Card(
        id="dp_gan",
        name="DP-GAN",
        summary="A critic learns to tell real records from generated ones, with noise"
        " in every step. A generator learns from the critic alone.",
        good_at="Comparisons with published work, as the usual baseline; a base for boosting.",
        weak_at="Values that its generator never produces are missing; slower than P3GM.",
        source="Xie et al., 2018; Arjovsky et al., 2017",
        stages=(
            *COUNTING_STAGES,
            Stage(
                name=CRITIC, title=TITLE, makes="a generator trained by noisy critics", private=True
            ),
        ),
        charts=(
            Chart(
                title="Signal and noise in each step",
                caption="Size of the critic's average training step, divided by the size of its "
                "noise. It falls as generated records look more like real ones.",
                unit="signal-to-noise ratio",
                series=("signal-to-noise ratio",),
            ),
            CLIPPED,
            CLOSENESS,
        ),
        soundness="Each real record's gradient is clipped on its own before noise is added to the "
        "sum. Batches are Poisson samples, and sums are divided by their expected size.",
        settings=settings_of(DpGanSettings),
    )

    def training_phases(
        self, domain: Domain, n: int, settings: DpGanSettings, scale: float
    ) -> tuple[Phase, ...]:
        """See `Synthesizer.training_phases`."""
        count = settings.steps * settings.critic_steps
        return (
            gradient_phase(
                CRITIC,
                TITLE,
                of=Message(" of a critic"),
                scale=scale,
                n=n,
                batch=settings.batch,
                count=count,
            ),
        )
