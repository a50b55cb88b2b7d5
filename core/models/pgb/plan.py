"""Private Post-GAN Boosting: the best mixture of all generators that a private GAN went through.

Private phases: those of the base, then T private selections of a critic
(`core.privacy.mechanisms.selection`): every option's mean over all records is bounded by 1/n a
record, all moves have one sign, so one selection has bounded range ε₀ and is ε₀²/8-zCDP, half of
what the paper counts per round and composed in the same accountant as the base. Which snapshots are
kept follows from step counts alone. Everything else touches generated records only: the calibration
of critics, the weights, the constant of rejection sampling.

Options are the critics, public queries of one or two columns, and the opposites of both; the
last two are ours (`pgb.multiplicative_weights` says why). Without differential privacy each round
picks the best.

Source: Neunhoeffer, Wu and Dwork, "Private post-GAN boosting", ICLR 2021.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from core.models.card import Card, Chart, Setting, Stage, settings_of
from core.models.dp_auto_gan.plan import DpAutoGan
from core.models.dp_gan.plan import DpGan
from core.models.pgb.settings import WITHOUT_PRIVACY, BoostedSettings, PgbSettings, split_settings
from core.models.ppem.plan import Ppem
from core.models.registry import register
from core.models.steps.calibration.calibrated import Calibrated
from core.privacy.accounting.curves import zcdp_rho
from core.privacy.plan import Budget, Phase
from core.schema.schema import Domain

T = TypeVar("T", Stage, Chart)
BOOST = "boosting"  # name of the selections' phase
TITLE = "Choosing among all generators"
BASES: dict[str, Calibrated[Any]] = {
    base.card.id: base() for base in (DpGan, DpAutoGan, Ppem)
}  # each keeps snapshots when its setting `snapshots` says how many


def _each(items: Iterable[T], key: str) -> tuple[T, ...]:
    """Without repeats, in order: bases share stages and charts."""
    return tuple({getattr(item, key): item for item in items}.values())


@register
class Pgb(Calibrated[BoostedSettings]):
    """See the module."""

    settings_class = PgbSettings
    candidates: ClassVar[int] = 4  # each is chosen among several generated ones already
    without_privacy = WITHOUT_PRIVACY
    card: ClassVar[Card] = Card(
        id="pgb",
        name="Private Post-GAN Boosting",
        summary="Trains a private GAN, keeps its generators along the way, and lets its critics "
        "choose, privately, the mixture of all of them that is hardest to tell from the table.",
        good_at="More from the same budget than the last generator of its base.",
        weak_at="It can only mix what its base has found; slower to draw rows from.",
        source="Neunhoeffer, Wu and Dwork, ICLR 2021",
        published=(
            ("25 Gaussians, high-quality share at ε = 1", "0.031 → 0.044, with rejection 0.053"),
            ("Titanic, logit ROC AUC at ε = 2", "0.477 → 0.621, with rejection 0.624"),
        ),
        stages=(
            *_each((stage for base in BASES.values() for stage in base.card.stages), "name"),
            Stage(name=BOOST, title=TITLE, makes="a mixture of generators", private=True),
        ),
        charts=(
            Chart(
                title="How the chosen critic sees the mixture",
                caption="Share that the privately chosen critic calls generated. It nears one half "
                "when no critic can tell the mixture from the table.",
                unit="% called generated",
                series=("mixture called generated, %",),
            ),
            Chart(
                title="Candidates that carry the mixture",
                caption="Effective sample size over the number of candidates: how much of what the "
                "generators make is still in the mixture.",
                unit="% of candidates",
                series=("candidates that carry the mixture, %",),
            ),
            Chart(
                title="Which critic was chosen",
                caption="The snapshot whose critic tells the table from the mixture best, chosen "
                "with noise, when no public question about columns does so better.",
                unit="snapshot, in order of training",
                series=("chosen snapshot",),
            ),
            Chart(
                title="Who saw the difference",
                caption="Rounds in which a learned critic was chosen; in the others a public "
                "question about one or two columns told the tables apart better.",
                unit="% of rounds",
                series=("rounds won by a learned critic, %",),
            ),
            *_each((chart for base in BASES.values() for chart in base.card.charts), "title"),
        ),
        soundness="Scores are means over all n records and move one way, which halves ε per round; "
        "rejection sampling is calibrated on generated records.",
        settings=(
            Setting(
                name="base",
                label="Base",
                help="The model whose generators are mixed.",
                default="dp_gan",
                choices=tuple((key, base.card.name) for key, base in BASES.items()),
            ),
            *settings_of(PgbSettings),
            *settings_of(DpGan.settings_class, ("steps", "batch")),
        ),
        boosts=tuple(BASES),
    )

    def configure(self, settings: Mapping[str, Any], *, private: bool) -> BoostedSettings:
        """See `Synthesizer.configure`; settings of the base may be given too."""
        fitting = {} if private else self.without_privacy
        own, rest = split_settings({**fitting, **settings})
        return BoostedSettings(own, BASES[own.base].configure(rest, private=private))

    def training_phases(
        self, domain: Domain, n: int, settings: BoostedSettings, scale: float
    ) -> tuple[Phase, ...]:
        """See `Synthesizer.training_phases`: those of the base."""
        return BASES[settings.own.base].training_phases(domain, n, settings.base, scale)

    def protects_sensitive(self, settings: BoostedSettings) -> bool:
        """See `Calibrated.protects_sensitive`: whether its base does."""
        return BASES[settings.own.base].card.protects

    def fixed_phases(self, budget: Budget, settings: BoostedSettings) -> tuple[Phase, ...]:
        """See `Synthesizer.fixed_phases`: the selections alone cost their share."""
        own, rho = settings.own, None
        if budget.private:
            rho = zcdp_rho(budget.epsilon * own.boost_share, budget.delta) / own.rounds
        boost = Phase(
            name=BOOST,
            title=TITLE,
            what="Which critic or public question about columns tells the real table from the "
            "mixture best, by the exponential mechanism on mean scores of all records.",
            mechanism="zcdp" if budget.private else "gaussian",
            rho=rho,
            share=own.boost_share,
            noise_multiplier=0.0,
            count=own.rounds,
        )
        return (boost,)
