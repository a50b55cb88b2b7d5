"""DP-auto-GAN: a private autoencoder, then a GAN that plays in its latent space.

Private phases: the autoencoder by DP-SGD, then the critic by DP-SGD. The generator makes latent
points, the decoder turns them into records, the critic compares decoded with real records.

Where this departs from the paper, and why:
  * encoder and decoder gradients are clipped jointly, record by record, and both are noised; the
    printed argument leaves the encoder without noise, and then one record moves the clipped
    gradients of all others;
  * the decoder emits distributions over slots (`shared.heads`), the loss is their cross-entropy;
  * batches are larger and the generator slower, which leaves less noise for the same ε.

Source: Tantipongpipat, Waites, Boob, Siva, Cummings, "Differentially private synthetic mixed-type
data generation for unsupervised learning" (DP-auto-GAN), 2019/2020.
"""

from __future__ import annotations

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
    from torch import Tensor

    from core.models.dp_auto_gan.autoencoder import AutoEncoder
    from core.models.shared.fitted import SlotFitted
    from core.models.shared.gan_trainer import Generator
    from core.models.shared.heads import Heads
    from core.models.shared.snapshot_ensemble import Players
    from core.models.shared.training_loop import Checkpoint
    from core.privacy.guarded import PrivateTable

__all__ = ["DpAutoGan", "DpAutoGanSettings"]

AUTOENCODER, CRITIC = "autoencoder", "critic"  # names of the private phases
TITLES = {
    AUTOENCODER: "Training the autoencoder",
    CRITIC: "Training the critic and the generator",
}

# What serves better where there is no noise, unless it is set by hand.
WITHOUT_PRIVACY = {
    "encoder_steps": 2000,
    "encoder_rate": 5e-4,
    "critic_hidden": 256,
    "clip_norm": 100.0,
    "box": 1.0,
}


class DpAutoGanSettings(BaseModel):
    """Public settings; none depends on data.

    Attributes:
      encoder_steps: private steps of the autoencoder.
      encoder_share: of the budget; the critic takes the rest.
      encoder_rate: peak learning rate.
      encoder_clip: clip norm of one record's gradient there.
      encoder_hidden, latent: widths of the autoencoder.
      steps: generator steps.
      critic_steps: private critic steps a generator step.
      batch: expected records a private step.
      fakes: generated records a step.
      clip_norm: of one record's critic gradient.
      hidden, noise: widths of the generator and of what it starts from.
      critic_hidden: width of the critic's first hidden layer; the second is half.
      rate, critic_rate: peak learning rates.
      box: largest absolute weight of the critic, as a share of the largest it starts with.
      temperature: of the Gumbel-softmax.
      snapshots: pairs of players kept over the last quarter, for boosting.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    encoder_steps: int = Field(default=4000, ge=1, le=100_000)
    encoder_share: float = Field(default=0.3, gt=0.0, lt=1.0)
    encoder_rate: float = Field(default=2e-3, gt=0.0, le=1.0)
    encoder_clip: float = Field(default=1.0, gt=0.0, le=1000.0)
    encoder_hidden: int = Field(default=60, ge=1, le=4096)
    latent: int = Field(default=15, ge=1, le=1024)
    steps: int = Field(default=2000, ge=1, le=100_000)
    critic_steps: int = Field(default=10, ge=1, le=200)
    batch: int = Field(default=512, ge=1, le=100_000)
    fakes: int = Field(default=256, ge=16, le=10_000)
    clip_norm: float = Field(default=1.0, gt=0.0, le=100.0)
    hidden: int = Field(default=128, ge=4, le=4096)
    noise: int = Field(default=32, ge=1, le=1024)
    critic_hidden: int = Field(default=128, ge=4, le=4096)
    rate: float = Field(default=1e-4, gt=0.0, le=1.0)
    critic_rate: float = Field(default=1e-3, gt=0.0, le=1.0)
    box: float = Field(default=0.5, gt=0.0, le=100.0)
    temperature: float = Field(default=0.7, ge=0.05, le=10.0)
    snapshots: int = Field(default=0, ge=0, le=1000)


_setting = partial(setting_of, DpAutoGanSettings)


@register
class DpAutoGan:
    """See the module."""

    card: ClassVar[Card] = Card(
        id="dp_auto_gan",
        name="DP-auto-GAN",
        summary="Learns, through noise, a short code for records; then a generator learns to make "
        "codes whose records a critic cannot tell from real ones.",
        good_at="Mixed tables with many columns, where a GAN on the columns themselves is lost.",
        weak_at="Two phases share the budget, so small tables at small ε come out coarse.",
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
            Stage(
                name=AUTOENCODER,
                title=TITLES[AUTOENCODER],
                makes="a decoder from codes to records",
                private=True,
            ),
            Stage(
                name=CRITIC,
                title=TITLES[CRITIC],
                makes="a generator of codes",
                private=True,
            ),
        ),
        charts=(
            Chart(
                title="Autoencoder: how much of each step is signal",
                caption="Length of the average step over that of its noise alone. It falls as "
                "codes come to hold what they can.",
                unit="signal over noise",
                series=("autoencoder: signal above noise",),
            ),
            Chart(
                title="Critic: how much of each step is signal",
                caption="The same for the critic. It falls as generated records come to look "
                "like real ones.",
                unit="signal over noise",
                series=("critic: signal above noise",),
            ),
        ),
        soundness="Encoder and decoder are clipped jointly and both noised; the printed version "
        "leaves the encoder without noise, which breaks the claim.",
        settings=(
            _setting("encoder_steps", "Autoencoder steps", "Private steps.", 1, 50_000),
            _setting("encoder_share", "Budget for the autoencoder", "Share of ε.", 0.05, 0.95),
            _setting("encoder_rate", "Autoencoder rate", "Peak learning rate.", 1e-5, 0.1),
            _setting("encoder_clip", "Autoencoder clip norm", "One record's influence.", 0.01, 100),
            _setting("encoder_hidden", "Autoencoder width", "Smaller: less noise.", 1, 2048),
            _setting("latent", "Code length", "Numbers in a record's code.", 1, 512),
            _setting("steps", "Generator steps", "More spread the budget thinner.", 1, 20_000),
            _setting(
                "critic_steps", "Critic steps each", "Private steps a generator step.", 1, 100
            ),
            _setting("batch", "Records a step", "Expected size of a random batch.", 1, 20_000),
            _setting("clip_norm", "Critic clip norm", "Largest influence of a record.", 0.01, 100),
            _setting("hidden", "Generator width", "Width of the generator's layers.", 4, 2048),
            _setting("critic_hidden", "Critic width", "Smaller means less noise.", 4, 2048),
            _setting("rate", "Generator rate", "Peak learning rate.", 1e-5, 0.1),
            _setting("critic_rate", "Critic rate", "Peak learning rate.", 1e-5, 0.1),
            _setting(
                "box", "Critic box", "Largest weight over the largest at the start.", 0.01, 10
            ),
            _setting("temperature", "Temperature", "Of relaxed categories.", 0.05, 5),
        ),
    )

    def plan(
        self, domain: Domain, n: int, budget: Budget, settings: dict[str, Any] | None = None
    ) -> Plan:
        """See `Synthesizer.plan`."""
        check_budget(budget, n)
        fitting = {} if budget.private else WITHOUT_PRIVACY
        chosen = DpAutoGanSettings(**(fitting | (settings or {})))
        rate, share = min(1.0, chosen.batch / n), chosen.encoder_share

        def phase(name: str, scale: float, share: float, count: int) -> Phase:
            return Phase(
                name=name,
                title=TITLES[name],
                what=f"Gradients at random batches of about {min(chosen.batch, n):,} records, "
                "each record's clipped, with Gaussian noise on every sum.",
                share=share,
                noise_multiplier=noise_for_share(scale, share, count=count, sampling_rate=rate),
                count=count,
                sampling_rate=rate,
            )

        def phases(scale: float) -> tuple[Phase, ...]:
            return (
                phase(AUTOENCODER, scale, share, chosen.encoder_steps),
                phase(CRITIC, scale, 1.0 - share, chosen.steps * chosen.critic_steps),
            )

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
        import torch

        from core.models.dp_auto_gan.autoencoder import AutoEncoder
        from core.models.shared.dp_optimizer import Descent
        from core.models.shared.heads import Heads
        from core.models.shared.training_loop import Checkpoint, Loop, run_loop
        from core.privacy.dpsgd.gradient import ClippedGradient

        settings = DpAutoGanSettings(**plan.settings)
        heads = Heads(Codec(table.domain), device=device)
        fresh = {"seed": secrets.randbits(62) if seed is None else seed}
        kept = Checkpoint.open(folder / "dp_auto_gan.pt", table.meter, resume=resume, fresh=fresh)
        start = torch.Generator().manual_seed(kept.state["seed"])
        auto = AutoEncoder(
            heads,
            hidden=settings.encoder_hidden,
            latent=settings.latent,
            device=device,
            generator=start,
        )
        descent = Descent(
            auto.networks,
            ClippedGradient(
                networks=auto.networks,
                grad_factors=auto.grad_factors,
                clip_norm=settings.encoder_clip,
            ),
            table.sampled(AUTOENCODER, view=heads.view, device=device),
            rate=settings.encoder_rate,
            steps=settings.encoder_steps,
            averaging=0.99,
        )
        descent.go_on(kept.state.get("descent"), charged=table.meter.runs(AUTOENCODER))
        if "game" not in kept.state:
            run_loop(
                Loop(
                    name=AUTOENCODER,
                    title=TITLES[AUTOENCODER],
                    start=descent.done,
                    steps=settings.encoder_steps,
                    step=descent.step,
                    metrics=lambda _: _named(AUTOENCODER, descent.metrics()),
                    preview=list,
                    keep=lambda: kept.keep(descent=descent.state_dict()),
                    private=True,
                ),
                observe,
            )
        auto.networks.load(descent.average)
        return self._play(table, settings, heads, auto, kept, observe=observe, device=device)

    def _play(
        self,
        table: PrivateTable,
        settings: DpAutoGanSettings,
        heads: Heads,
        auto: AutoEncoder,
        kept: Checkpoint,
        *,
        observe: Observe,
        device: str,
    ) -> SlotFitted:
        """The second phase: the game in latent space, with the decoder as it is."""
        import torch

        from core.models.shared.gan_trainer import Game, Pace, new_critic
        from core.models.shared.training_loop import Loop, run_loop

        def render(outputs: torch.Tensor, *, generator: torch.Generator) -> torch.Tensor:
            logits = auto.decode(outputs)
            return heads.relaxed(logits, temperature=settings.temperature, generator=generator)

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(kept.state["seed"] + 1)
            generator = _generator(settings)
        game = Game(
            generator,
            render,
            new_critic(heads.critic_width, settings.critic_hidden, kept.state["seed"] + 2, device),
            table.sampled(CRITIC, view=heads.critic_view, device=device),
            pace=Pace(**settings.model_dump(include=set(Pace.__dataclass_fields__))),
            seed=kept.state["seed"] + 3,
            device=device,
        )
        game.go_on(kept.state.get("game"), charged=table.meter.runs(CRITIC))

        def fitted(history: dict[str, torch.Tensor]) -> SlotFitted:
            return _fitted(heads, settings, game.weights(), auto.networks.flat, history)

        run_loop(
            Loop(
                name=CRITIC,
                title=TITLES[CRITIC],
                start=game.done,
                steps=settings.steps,
                step=game.step,
                metrics=lambda _: _named(CRITIC, game.metrics()),
                preview=lambda: fitted({}).preview(),
                keep=lambda: kept.keep(game=game.state_dict()),
                private=True,
            ),
            observe,
        )
        return fitted(game.history())

    def load(self, folder: Path) -> SlotFitted:
        """See `Synthesizer.load`."""
        from core.models.shared.fitted import read_fitted

        heads, settings, weights, history = read_fitted(folder)
        autoencoder = weights.pop(AUTOENCODER)
        return _fitted(heads, DpAutoGanSettings(**settings), weights, autoencoder, history)

    def players(self, fitted: SlotFitted) -> Players:
        """The snapshots of a fit, for boosting; see `core.models.pgb.plan`."""
        import torch

        from core.models.dp_auto_gan.autoencoder import AutoEncoder
        from core.models.shared.snapshot_ensemble import Players

        settings, heads = DpAutoGanSettings(**fitted.settings), fitted.heads
        generator = _generator(settings)
        auto = AutoEncoder(heads, hidden=settings.encoder_hidden, latent=settings.latent)
        auto.networks.load(fitted.weights[AUTOENCODER])

        def emit(flat: Tensor, rows: int, random: torch.Generator) -> Tensor:
            torch.nn.utils.vector_to_parameters(flat, generator.parameters())
            return auto.decode(generator(torch.randn((rows, settings.noise), generator=random)))

        return Players.of(fitted, emit, settings.critic_hidden)


def _named(phase: str, metrics: dict[str, float]) -> dict[str, float]:
    """Metrics of one phase, told apart from the other's."""
    return {f"{phase}: {name}": value for name, value in metrics.items()}


def _generator(settings: DpAutoGanSettings) -> Generator:
    from core.models.shared.gan_trainer import Generator

    return Generator(latent=settings.noise, hidden=(settings.hidden,) * 3, outputs=settings.latent)


def _fitted(
    heads: Heads,
    settings: DpAutoGanSettings,
    weights: dict[str, Tensor],
    autoencoder: Tensor,
    history: dict[str, Tensor],
) -> SlotFitted:
    """A generator with these weights before a decoder with those, on the CPU."""
    import torch

    from core.models.dp_auto_gan.autoencoder import AutoEncoder
    from core.models.shared.fitted import SlotFitted

    generator = _generator(settings)
    generator.load_state_dict(weights)
    auto = AutoEncoder(heads, hidden=settings.encoder_hidden, latent=settings.latent)
    auto.networks.load(autoencoder.detach().cpu())

    def emit(rows: int, random: torch.Generator) -> Tensor:
        return auto.decode(generator(torch.randn((rows, settings.noise), generator=random)))

    return SlotFitted(
        heads,
        model=DpAutoGan.card.id,
        settings=settings.model_dump(),
        weights={**weights, AUTOENCODER: auto.networks.flat.detach()},
        emit=emit,
        history=history,
    )
