"""DP-auto-GAN: a private autoencoder, then a GAN in its latent space.

Private phases: the autoencoder by DP-SGD, then the critic by DP-SGD. The generator makes latent
points, the decoder turns them into records, the critic compares decoded with real records.

Where this departs from the paper, and why:
  * encoder and decoder gradients are clipped jointly, record by record, and both are noised; the
    printed argument leaves the encoder without noise, and then one record moves the clipped
    gradients of all others;
  * the decoder emits distributions over bins (`Heads`), the loss is their cross-entropy;
  * batches are larger and the generator slower, which leaves less noise for the same ε.

Source: Tantipongpipat, Waites, Boob, Siva, Cummings, "Differentially private synthetic mixed-type
data generation for unsupervised learning" (DP-auto-GAN), 2019/2020.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from core.models.card import Card, Chart, Stage, settings_of, tunable
from core.models.registry import register
from core.models.steps.calibration.calibrated import Calibrated
from core.models.steps.counting.steps import CLOSENESS, COUNTING_STAGES
from core.models.steps.training import settings as common
from core.models.steps.training.phases import CRITIC, gradient_phase
from core.models.steps.training.settings import GanSettings
from core.privacy.plan import Phase
from core.schema.schema import Domain

AUTOENCODER = "autoencoder"  # name of the first private phase
TITLES = {AUTOENCODER: "Training the autoencoder", CRITIC: "Training the critic and the generator"}


# What serves better where there is no noise, unless it is set by hand.
WITHOUT_PRIVACY = {
    "encoder_steps": 2000,
    "encoder_rate": 5e-4,
    "critic_hidden": 256,
    "clip_norm": 100.0,
    "box": 1.0,
}


class DpAutoGanSettings(GanSettings):
    """See `GanSettings`; the generator makes codes.

    Attributes:
      noise: width of what the generator starts from.
      fakes: generated records per step.
    """

    encoder_steps: int = tunable(
        4000, "Autoencoder steps", common.MORE_STEPS, form=(1, 50_000), ge=1, le=100_000
    )
    encoder_share: float = tunable(
        0.3,
        "Budget for the autoencoder",
        "Share of the training budget. The critic gets the rest.",
        form=(0.05, 0.95),
        gt=0.0,
        lt=1.0,
    )
    encoder_rate: float = tunable(
        2e-3, "Autoencoder learning rate", common.PEAK_RATE, form=(1e-5, 0.1), gt=0.0, le=1.0
    )
    encoder_clip: float = tunable(
        1.0, "Autoencoder clipping norm", common.CLIPPING, form=(0.01, 100), gt=0.0, le=1000.0
    )
    encoder_hidden: int = tunable(
        60, "Autoencoder width", common.SMALLER_NET, form=(1, 2048), ge=1, le=4096
    )
    latent: int = tunable(
        15, "Code length", "Numbers in the code of a record.", form=(1, 512), ge=1, le=1024
    )
    fakes: int = Field(default=256, ge=16, le=10_000)
    clip_norm: float = tunable(
        1.0, "Critic clipping norm", common.CLIPPING, form=(0.01, 100), gt=0.0, le=100.0
    )
    noise: int = Field(default=32, ge=1, le=1024)
    rate: float = tunable(
        1e-4, "Generator learning rate", common.PEAK_RATE, form=(1e-5, 0.1), gt=0.0, le=1.0
    )


@register
class DpAutoGan(Calibrated[DpAutoGanSettings]):
    """See the module."""

    settings_class = DpAutoGanSettings
    without_privacy = WITHOUT_PRIVACY
    card: ClassVar[Card] = Card(
        id="dp_auto_gan",
        name="DP-auto-GAN",
        summary="Trains an autoencoder that turns records into short codes and back, "
        "then a generator of codes whose records a critic cannot tell from "
        "real ones. Both stages add noise.",
        good_at="Mixed tables with many columns, on which a plain GAN fails.",
        weak_at="Small tables with a small ε, since two stages share the budget.",
        source="Tantipongpipat et al.: DP-auto-GAN, 2019/2020",
        published=(
            (
                "Adult, accuracy of predicted income at ε = ∞ / 1.5 / 1 / 0.8",
                "79.18 / 77.86 / 76.92 / 77.7 %",
            ),
            ("Adult, Wasserstein score of 2-way PCA at ε = ∞ / 1 / 0.8", "44.36 / 41.17 / 19.25 %"),
            (
                "Adult, Wasserstein score of whole records at ε = ∞ / 1 / 0.8",
                "60.84 / 60.53 / 60.51 %",
            ),
        ),
        stages=(
            *COUNTING_STAGES,
            Stage(
                name=AUTOENCODER,
                title=TITLES[AUTOENCODER],
                makes="a decoder from codes to records",
                private=True,
            ),
            Stage(name=CRITIC, title=TITLES[CRITIC], makes="a generator of codes", private=True),
        ),
        charts=(
            Chart(
                title="Autoencoder: signal and noise in each step",
                caption="Size of the average training step, divided by the size of "
                "its noise. It falls as codes describe records better.",
                unit="signal-to-noise ratio",
                series=("autoencoder: signal-to-noise ratio",),
            ),
            Chart(
                title="Critic: signal and noise in each step",
                caption="The same for the critic. It falls as generated records look "
                "more like real ones.",
                unit="signal-to-noise ratio",
                series=("critic: signal-to-noise ratio",),
            ),
            CLOSENESS,
        ),
        soundness="Gradients of encoder and decoder are clipped together, and both get noise. The "
        "paper adds none to the encoder, which breaks its privacy claim.",
        settings=settings_of(DpAutoGanSettings),
    )

    def training_phases(
        self, domain: Domain, n: int, settings: DpAutoGanSettings, scale: float
    ) -> tuple[Phase, ...]:
        """See `Synthesizer.training_phases`."""
        share = settings.encoder_share
        counts = {
            AUTOENCODER: (share, settings.encoder_steps),
            CRITIC: (1.0 - share, settings.steps * settings.critic_steps),
        }
        return tuple(
            gradient_phase(
                name, TITLES[name], scale=scale, n=n, batch=settings.batch, count=count, share=share
            )
            for name, (share, count) in counts.items()
        )
