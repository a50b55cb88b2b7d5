"""DP-GAN: a Wasserstein critic trained privately, a generator that only ever asks the critic.

Private phase: the critic, by DP-SGD. Only the gradients at real records touch private data; each is
clipped, their sum is noised. Gradients at generated records are clipped the same way, so that both
sides pull alike, and need no noise. The generator sees noisy critics alone, so its steps, the
snapshots kept along the way and everything drawn from them cost nothing more.

Choices:
  * the generator emits distributions over slots (`shared.heads`); critics see records drawn from
    them by straight-through Gumbel-softmax, in the layout of the encoded table;
  * critic weights are kept in a box, as in the first Wasserstein GAN;
  * a slow generator, large batches, and averaged generator weights.

Sources: Xie et al., "Differentially private generative adversarial network", 2018; Arjovsky et al.,
"Wasserstein GAN", 2017; Bie et al., "Private GANs, revisited", 2023 (many critic steps).
"""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from core.models.synthesizer import Card, Chart, Observe, Stage, register, setting_of
from core.privacy.accounting.accountant import check_budget
from core.privacy.plan import Budget, Phase, Plan
from core.privacy.planning import planned
from core.table.codec import Codec
from core.table.schema import Domain

if TYPE_CHECKING:
    from core.models.shared.fitted import SlotFitted
    from core.models.shared.heads import Heads
    from core.models.shared.snapshot_ensemble import Players
    from core.privacy.guarded import PrivateTable

__all__ = ["DpGan", "DpGanSettings"]

CRITIC = "critic"  # name of the private phase
TITLE = "Training the critic and the generator"


class DpGanSettings(BaseModel):
    """Public settings; none depends on data.

    Attributes:
      steps: generator steps.
      critic_steps: private critic steps a generator step.
      batch: expected records a private step.
      fakes: generated records a step.
      clip_norm: of one record's critic gradient.
      hidden, latent: widths of the generator.
      critic_hidden: width of the critic's first hidden layer; the second is half.
      rate, critic_rate: peak learning rates.
      box: largest absolute weight of the critic, as a share of the largest it starts with.
      temperature: of the Gumbel-softmax.
      snapshots: pairs of players kept over the last quarter, for boosting.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int = Field(default=2000, ge=1, le=100_000)
    critic_steps: int = Field(default=10, ge=1, le=200)
    batch: int = Field(default=512, ge=1, le=100_000)
    fakes: int = Field(default=256, ge=16, le=10_000)
    clip_norm: float = Field(default=1.0, gt=0.0, le=100.0)
    hidden: int = Field(default=128, ge=4, le=4096)
    latent: int = Field(default=32, ge=1, le=1024)
    critic_hidden: int = Field(default=128, ge=4, le=4096)
    rate: float = Field(default=2e-4, gt=0.0, le=1.0)
    critic_rate: float = Field(default=1e-3, gt=0.0, le=1.0)
    box: float = Field(default=0.5, gt=0.0, le=100.0)
    temperature: float = Field(default=0.7, ge=0.05, le=10.0)
    snapshots: int = Field(default=0, ge=0, le=1000)


_setting = partial(setting_of, DpGanSettings)


@register
class DpGan:
    """See the module."""

    card: ClassVar[Card] = Card(
        id="dp_gan",
        name="DP-GAN",
        summary="A critic learns, through noise, to tell real records from generated ones; a "
        "generator learns from the critic alone.",
        good_at="The field's usual baseline; a sequence of generators that boosting can combine.",
        weak_at="Single columns come out less exact than with the other models.",
        source="Xie et al., 2018; Arjovsky et al., 2017",
        stages=(
            Stage(
                name=CRITIC,
                title=TITLE,
                makes="a generator taught by noisy critics",
                private=True,
            ),
        ),
        charts=(
            Chart(
                title="How much of each step is signal",
                caption="Length of the critic's average step over that of its noise alone. It "
                "falls as generated records come to look like real ones.",
                unit="signal over noise",
                series=("signal above noise",),
            ),
            Chart(
                title="Records whose influence was cut back",
                caption="Share of the real records of a batch that were clipped, itself released "
                "with noise. 100 % is normal here.",
                unit="% of records",
                series=("records clipped, %",),
            ),
        ),
        soundness="Each real record's gradient is clipped by itself and the sum is noised; "
        "batches are Poisson samples and the divisor is their expected size.",
        settings=(
            _setting("steps", "Generator steps", "More spread the budget thinner.", 1, 20_000),
            _setting(
                "critic_steps", "Critic steps each", "Private steps a generator step.", 1, 100
            ),
            _setting("batch", "Records a step", "Expected size of a random batch.", 1, 20_000),
            _setting("fakes", "Generated records a step", "Larger is smoother.", 16, 5000),
            _setting("clip_norm", "Clip norm", "Largest influence of one record.", 0.01, 100),
            _setting("hidden", "Generator width", "Width of the generator's layers.", 4, 2048),
            _setting("latent", "Latent width", "Independent directions of variation.", 1, 512),
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
        chosen = DpGanSettings(**(settings or {}))

        def phases(scale: float) -> tuple[Phase, ...]:
            return (
                Phase(
                    name=CRITIC,
                    title=TITLE,
                    what="Gradients of a critic at random batches of about "
                    f"{min(chosen.batch, n):,} records, each record's clipped, with Gaussian "
                    "noise on every sum.",
                    share=1.0,
                    noise_multiplier=scale,
                    count=chosen.steps * chosen.critic_steps,
                    sampling_rate=min(1.0, chosen.batch / n),
                ),
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

        from core.models.shared.gan_trainer import Game, Generator, Pace, new_critic
        from core.models.shared.heads import Heads
        from core.models.shared.training_loop import Checkpoint, Loop, run_loop

        settings = DpGanSettings(**plan.settings)
        heads = Heads(Codec(table.domain), device=device)
        fresh = {"seed": secrets.randbits(62) if seed is None else seed}
        kept = Checkpoint.open(folder / "dp_gan.pt", table.meter, resume=resume, fresh=fresh)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(kept.state["seed"])
            generator = Generator(
                latent=settings.latent, hidden=(settings.hidden,) * 3, outputs=heads.total
            )
        game = Game(
            generator,
            partial(heads.relaxed, temperature=settings.temperature),
            new_critic(heads.critic_width, settings.critic_hidden, kept.state["seed"], device),
            table.sampled(CRITIC, view=heads.critic_view, device=device),
            pace=Pace(**settings.model_dump(include=set(Pace.__dataclass_fields__))),
            seed=kept.state["seed"] + 1,
            device=device,
        )
        game.go_on(kept.state.get("game"), charged=table.meter.runs(CRITIC))
        run_loop(
            Loop(
                name=CRITIC,
                title=TITLE,
                start=game.done,
                steps=settings.steps,
                step=game.step,
                metrics=lambda _: game.metrics(),
                preview=lambda: _fitted(heads, settings, game.weights(), {}).preview(),
                keep=lambda: kept.keep(game=game.state_dict()),
                private=True,
            ),
            observe,
        )
        return _fitted(heads, settings, game.weights(), game.history())

    def load(self, folder: Path) -> SlotFitted:
        """See `Synthesizer.load`."""
        from core.models.shared.fitted import read_fitted

        heads, settings, weights, history = read_fitted(folder)
        return _fitted(heads, DpGanSettings(**settings), weights, history)

    def players(self, fitted: SlotFitted) -> Players:
        """The snapshots of a fit, for boosting; see `core.models.pgb.plan`."""
        import torch

        from core.models.shared.gan_trainer import Generator
        from core.models.shared.snapshot_ensemble import Players

        settings, heads = DpGanSettings(**fitted.settings), fitted.heads
        generator = Generator(
            latent=settings.latent, hidden=(settings.hidden,) * 3, outputs=heads.total
        )

        def emit(flat: torch.Tensor, rows: int, random: torch.Generator) -> torch.Tensor:
            torch.nn.utils.vector_to_parameters(flat, generator.parameters())
            logits: torch.Tensor = generator(torch.randn((rows, settings.latent), generator=random))
            return logits

        return Players.of(fitted, emit, settings.critic_hidden)


def _fitted(
    heads: Heads, settings: DpGanSettings, weights: dict[str, Any], history: dict[str, Any]
) -> SlotFitted:
    """A generator with these weights, on the CPU."""
    import torch

    from core.models.shared.fitted import SlotFitted
    from core.models.shared.gan_trainer import Generator

    generator = Generator(
        latent=settings.latent, hidden=(settings.hidden,) * 3, outputs=heads.total
    )
    generator.load_state_dict(weights)

    def emit(rows: int, random: torch.Generator) -> torch.Tensor:
        logits: torch.Tensor = generator(torch.randn((rows, settings.latent), generator=random))
        return logits

    return SlotFitted(
        heads,
        model=DpGan.card.id,
        settings=settings.model_dump(),
        weights=weights,
        emit=emit,
        history=history,
    )
