"""PPEM: two energies and two generators, with the tagged columns' marginal modelled apart.

Private phases, both by DP-SGD: the energy of the tagged columns x′, against a generator of x′; then
the energy of the other columns given x′, against a generator of those. Records are drawn in two
steps, x′ first. The α-LMDP penalty pushes the first energy until a Stein test tells it from the
records it sees.

Where this departs from the paper, and why:
  * the penalty looks at a whole batch; inside the per-record clip it would tie records together, so
    it is clipped by itself and counted in the sensitivity (`core.privacy.dpsgd.penalty`);
  * the conditional generator learns on x′ that the marginal generator made: real x′ would enter it
    without noise. The conditional energy sees real pairs, and generated partners of real x′ inside
    the clip;
  * batches are Poisson samples and both energies' steps are counted;
  * each tagged group has an energy and a penalty of its own, and more than one group share a
    further energy that ties them together;
  * what the penalty does to an energy says nothing certain of what the generator emits, so the
    certificate tests emitted records (`core.lmdp.certificate`).

Source: Tillman, Balch and Veloso, "Privacy-preserving energy-based generative models for marginal
distribution protection", TMLR 2023.
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
    from core.models.ppem.energy_gan_trainer import Pair
    from core.models.shared.fitted import SlotFitted
    from core.models.shared.snapshot_ensemble import Players
    from core.privacy.guarded import PrivateTable

__all__ = ["Ppem", "PpemSettings"]

MARGINAL, CONDITIONAL = "marginal", "conditional"
TITLES = {
    MARGINAL: "Training the tagged columns",
    CONDITIONAL: "Training the other columns given them",
}
STATISTIC, CRITICAL = "Stein statistic, generated records", "critical value"
WITHOUT_PRIVACY = {
    "marginal_steps": 1000,
    "steps": 3000,
    "energy_steps": 5,
    "batch": 128,
    "fakes": 128,
    "rate": 5e-4,
    "hidden": 256,
    "energy_hidden": 256,
    "box": 0.0,
}


class PpemSettings(BaseModel):
    """Public settings; none depends on data.

    Attributes:
      marginal_steps, steps: generator steps of the two pairs.
      energy_steps: private energy steps a generator step.
      batch: expected records a private step.
      fakes: generated records a step.
      marginal_share: of the budget, for the tagged columns.
      clip_norm: of one record's energy gradient.
      penalty_clip: of the α-LMDP penalty's gradient, over the clip norm.
      penalty: its weight λ_α; 0 trains without.
      alpha: level of its test.
      margin: m of the margin loss.
      lipschitz: weight of the Lipschitz penalty.
      hidden, latent: widths of the generators.
      energy_hidden: width of the energies' three hidden layers.
      rate, energy_rate: peak learning rates.
      box: largest absolute energy weight over the largest at the start; 0 for none.
      temperature: of the Gumbel-softmax.
      snapshots: of the last pair, kept over its last quarter for boosting.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    marginal_steps: int = Field(default=500, ge=1, le=100_000)
    steps: int = Field(default=2000, ge=1, le=100_000)
    energy_steps: int = Field(default=10, ge=1, le=200)
    batch: int = Field(default=512, ge=1, le=100_000)
    fakes: int = Field(default=256, ge=16, le=10_000)
    marginal_share: float = Field(default=0.2, gt=0.0, lt=1.0)
    clip_norm: float = Field(default=1.0, gt=0.0, le=100.0)
    penalty_clip: float = Field(default=0.25, gt=0.0, le=10.0)
    penalty: float = Field(default=3.0, ge=0.0, le=1000.0)
    alpha: float = Field(default=0.05, gt=0.0, lt=0.5)
    margin: float = Field(default=10.0, gt=0.0, le=1000.0)
    lipschitz: float = Field(default=1.0, ge=0.0, le=1000.0)
    hidden: int = Field(default=128, ge=4, le=4096)
    latent: int = Field(default=32, ge=1, le=1024)
    energy_hidden: int = Field(default=64, ge=4, le=4096)
    rate: float = Field(default=2e-4, gt=0.0, le=1.0)
    energy_rate: float = Field(default=1e-3, gt=0.0, le=1.0)
    box: float = Field(default=1.0, ge=0.0, le=100.0)
    temperature: float = Field(default=0.7, ge=0.05, le=10.0)
    snapshots: int = Field(default=0, ge=0, le=1000)


_setting = partial(setting_of, PpemSettings)


@register
class Ppem:
    """See the module."""

    card: ClassVar[Card] = Card(
        id="ppem",
        name="PPEM",
        summary="Two energies learn what records look like: one the tagged columns alone, one the "
        "others given them. A generator follows each.",
        good_at="Keeping how the other columns depend on tagged ones while the tagged columns' own "
        "distribution is bent away from the real one as it learns.",
        weak_at="Slower than the others, and single columns come out less exact.",
        source="Tillman, Balch and Veloso, TMLR 2023",
        published=(
            ("Credit fraud, AUROC, 2 / 5 tagged, no DP", "0.922 / 0.948 (real 0.975)"),
            ("Credit fraud, AUROC, 2 / 5 tagged, (1, 1/n)", "0.872 / 0.889"),
        ),
        stages=(
            Stage(
                name=MARGINAL,
                title=TITLES[MARGINAL],
                makes="tagged columns, bent away from the real ones",
                private=True,
            ),
            Stage(
                name=CONDITIONAL,
                title=TITLES[CONDITIONAL],
                makes="the other columns given those",
                private=True,
            ),
        ),
        charts=(
            Chart(
                title="Stein statistic against its critical value",
                caption="How clearly a test tells the tagged columns' energy from the records that "
                "the generator makes. Above the line it tells them apart. It says nothing certain "
                "of the finished table: that is what the certificate is for.",
                unit="statistic, higher is further apart",
                series=(STATISTIC, CRITICAL),
            ),
            Chart(
                title="How much of each step is signal",
                caption="Length of the energy's average step over that of its noise alone.",
                unit="signal over noise",
                series=("tagged: signal above noise", "others: signal above noise"),
            ),
        ),
        protects=True,
        soundness="The α-LMDP penalty is clipped apart from the records, whose gradients it would "
        "otherwise tie together; the conditional generator learns on generated tagged columns, "
        "since real ones would enter it without noise; both energies are counted.",
        settings=(
            _setting("marginal_steps", "Steps, tagged columns", "Generator steps.", 1, 20_000),
            _setting("steps", "Steps, other columns", "Generator steps.", 1, 20_000),
            _setting("energy_steps", "Energy steps each", "Private steps each.", 1, 100),
            _setting("batch", "Records a step", "Expected size of a random batch.", 1, 20_000),
            _setting("fakes", "Generated records a step", "Larger is smoother.", 16, 5000),
            _setting("marginal_share", "Budget, tagged columns", "Share of ε.", 0.01, 0.99),
            _setting("clip_norm", "Clip norm", "Largest influence of one record.", 0.01, 100),
            _setting("penalty_clip", "Penalty clip", "Of the clip norm.", 0.01, 10),
            _setting("penalty", "Penalty weight λ_α", "0 trains without.", 0, 100),
            _setting("margin", "Margin", "Energy that generated records are raised to.", 0.1, 100),
            _setting("lipschitz", "Lipschitz weight", "Smoother energies when larger.", 0, 100),
            _setting("hidden", "Generator width", "Width of the generators' layers.", 4, 2048),
            _setting("latent", "Latent width", "Independent directions of variation.", 1, 512),
            _setting("energy_hidden", "Energy width", "Smaller means less noise.", 4, 2048),
            _setting("rate", "Generator rate", "Peak learning rate.", 1e-5, 0.1),
            _setting("energy_rate", "Energy rate", "Peak learning rate.", 1e-5, 0.1),
            _setting("box", "Energy box", "Largest weight over the largest at the start.", 0, 10),
            _setting("temperature", "Temperature", "Of relaxed categories.", 0.05, 5),
        ),
    )

    def plan(
        self, domain: Domain, n: int, budget: Budget, settings: dict[str, Any] | None = None
    ) -> Plan:
        """See `Synthesizer.plan`."""
        check_budget(budget, n)
        fitting = {} if budget.private else WITHOUT_PRIVACY
        chosen = PpemSettings(**(fitting | (settings or {})))
        rate = min(1.0, chosen.batch / n)
        tagged, others = parts_of(domain)
        share = chosen.marginal_share if others else 1.0

        def phase(name: str, what: str, scale: float, share: float, steps: int) -> Phase:
            count = steps * chosen.energy_steps
            return Phase(
                name=name,
                title=TITLES[name],
                what=f"Gradients of an energy of {what} at random batches of about "
                f"{min(chosen.batch, n):,} records, each record's clipped, with Gaussian noise on "
                "every sum.",
                share=share,
                noise_multiplier=noise_for_share(scale, share, count=count, sampling_rate=rate),
                count=count,
                sampling_rate=rate,
            )

        def phases(scale: float) -> tuple[Phase, ...]:
            what = ", ".join(tagged) if domain.sensitive else "all columns"
            first = phase(MARGINAL, what, scale, share, chosen.marginal_steps)
            if not others:
                return (first,)
            rest = f"{len(others)} columns given those"
            return (first, phase(CONDITIONAL, rest, scale, 1.0 - share, chosen.steps))

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
        from core.models.ppem.trainer import Chain
        from core.models.shared.training_loop import Checkpoint, Loop, run_loop

        settings = PpemSettings(**plan.settings)
        fresh = {"seed": secrets.randbits(62) if seed is None else seed}
        kept = Checkpoint.open(folder / "ppem.pt", table.meter, resume=resume, fresh=fresh)
        chain = Chain(
            Codec(table.domain),
            settings,
            private=plan.budget.private,
            seed=kept.state["seed"],
            device=device,
        )

        def loop(name: str, pair: Pair, label: str) -> Loop:
            pair.go_on(kept.state.get(name), charged=table.meter.runs(name))
            return Loop(
                name=name,
                title=TITLES[name],
                start=pair.done,
                steps=pair.how.steps,
                step=pair.step,
                metrics=lambda _: _told(pair, label),
                preview=lambda: chain.fitted().preview() if chain.complete else [],
                keep=lambda: kept.keep(**{name: pair.state_dict()}),
                private=True,
            )

        first = chain.marginal(table)
        marginal = loop(MARGINAL, first, "tagged")
        if CONDITIONAL not in kept.state:
            run_loop(marginal, observe)
        if chain.others is not None:
            run_loop(loop(CONDITIONAL, chain.conditional(table), "others"), observe)
        return chain.fitted()

    def load(self, folder: Path) -> SlotFitted:
        """See `Synthesizer.load`."""
        from core.models.ppem.trainer import Chain
        from core.models.shared.fitted import read_fitted

        heads, settings, weights, history = read_fitted(folder)
        chain = Chain(heads.codec, PpemSettings(**settings), private=True, seed=0)
        return chain.loaded(weights, history)

    def players(self, fitted: SlotFitted) -> Players:
        """The last pair's snapshots, for boosting; see `core.models.pgb.plan`."""
        from core.models.ppem.trainer import Chain

        chain = Chain(fitted.heads.codec, PpemSettings(**fitted.settings), private=True, seed=0)
        return chain.players(fitted)


def parts_of(domain: Domain) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the columns that are modelled first, and of the others.

    Without tags all columns come first: there is nothing to keep apart.
    """
    names = tuple(column.name for column in domain.modelled)
    tagged = tuple(name for group in domain.sensitive.values() for name in group) or names
    return tagged, tuple(name for name in names if name not in tagged)


def _told(pair: Pair, label: str) -> dict[str, float]:
    """Metrics of a pair, and of its least convincing group the Stein statistic."""
    told = {f"{label}: {name}": value for name, value in pair.metrics().items()}
    if pair.steins:
        told[STATISTIC] = min(pair.statistics())
        told[CRITICAL] = pair.steins[0].critical
    return told
