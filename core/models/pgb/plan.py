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
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from core.models.card import Card, Chart, Frozen, Setting, Stage, settings_of, tunable
from core.models.dp_auto_gan.plan import DpAutoGan
from core.models.dp_gan.plan import DpGan
from core.models.ppem.plan import Ppem
from core.models.registry import register
from core.models.steps.calibration.calibrated import Calibrated
from core.models.steps.training.settings import counting_share
from core.models.synthesizer import Settings
from core.privacy.accounting.curves import zcdp_rho
from core.privacy.plan import Budget, Phase
from core.schema.schema import Domain

T = TypeVar("T", Stage, Chart)
BOOST = "boosting"  # name of the selections' phase
TITLE = "Choosing among all generators"
BASES: dict[str, Calibrated[Any]] = {
    base.card.id: base() for base in (DpGan, DpAutoGan, Ppem)
}  # each keeps snapshots when its setting `snapshots` says how many


# What serves better where there is no noise, unless it is set by hand.
WITHOUT_PRIVACY = {"rounds": 1000, "candidates": 1024}


class PgbSettings(Frozen):
    """Public settings beside those of the base; none depends on data.

    The paper writes N for snapshots, T for rounds and r for candidates.

    Attributes:
      base: id of the model that is boosted.
      count_share: of what the selections leave; the base's own is 0.
      rejection: whether to keep records in proportion to D/(1 - D) of the average critic.
    """

    base: Literal["dp_gan", "dp_auto_gan", "ppem"] = "dp_gan"
    snapshots: int = tunable(
        32,
        "Snapshots",
        "Copies of the generator and critic kept from the last quarter of training.",
        form=(2, 500),
        ge=2,
        le=1000,
    )
    rounds: int = tunable(
        400,
        "Rounds",
        "How often a critic or question is chosen. More rounds mean more noise in each choice.",
        form=(1, 5000),
        ge=1,
        le=10_000,
    )
    candidates: int = tunable(
        256,
        "Candidates per generator",
        "Records from each generator that can enter the mixture.",
        form=(1, 2000),
        ge=1,
        le=10_000,
    )
    questions: int = tunable(
        1000,
        "Public questions",
        "Simple questions about one or two columns that can be chosen instead of a critic. 0 uses "
        "critics only.",
        form=(0, 5000),
        ge=0,
        le=10_000,
    )
    boost_share: float = tunable(
        0.15,
        "Budget for boosting",
        "Share of ε spent on choosing critics.",
        form=(0.01, 0.9),
        gt=0.0,
        lt=1.0,
    )
    count_share: float = counting_share(0.5)
    rejection: int = tunable(
        1,
        "Rejection sampling",
        "Also drops records that the average critic takes for generated. 1 is on, 0 is off.",
        form=(0, 1),
        ge=0,
        le=1,
    )


@dataclass(frozen=True)
class BoostedSettings:
    """Boosting's own settings beside those of its base."""

    own: PgbSettings
    base: Settings

    def model_dump(self) -> dict[str, Any]:
        """See `Settings`: of both, side by side; what they share is equal."""
        return self.base.model_dump() | self.own.model_dump()


def split_settings(settings: Mapping[str, Any]) -> tuple[PgbSettings, dict[str, Any]]:
    """Boosting's own settings, and the base's by name, of all by name."""
    names = PgbSettings.model_fields
    own = PgbSettings(**{name: value for name, value in settings.items() if name in names})
    rest = {name: value for name, value in settings.items() if name not in names}
    return own, rest | {"snapshots": own.snapshots, "count_share": 0.0}


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
        summary="Trains a private GAN and keeps copies of its generators and critics "
        "along the way. The critics then choose, with noise, the mixture of "
        "generators that is hardest to tell from the real table.",
        good_at="Better results than the last generator of its base model, for the same budget.",
        weak_at="Patterns that its base model never learned; drawing rows takes longer.",
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
                title="How much of the mixture is recognised",
                caption="Share of the mixture that the chosen critic takes for generated. At about "
                "50%, no critic can tell the mixture from the real table.",
                unit="% taken for generated",
                series=("mixture taken for generated, %",),
            ),
            Chart(
                title="Candidates in use",
                caption="Effective number of candidate records in the mixture, as a "
                "share of all candidates.",
                unit="% of candidates",
                series=("candidates in use, %",),
            ),
            Chart(
                title="Which critic was chosen",
                caption="Snapshot of training whose critic was chosen. Rounds won by "
                "a public question about columns are left out.",
                unit="snapshot, in order of training",
                series=("chosen snapshot",),
            ),
            Chart(
                title="Rounds won by a critic",
                caption="Share of rounds in which a trained critic was chosen. In the others, a "
                "public question about one or two columns told the tables apart better.",
                unit="% of rounds",
                series=("rounds won by a critic, %",),
            ),
            *_each((chart for base in BASES.values() for chart in base.card.charts), "title"),
        ),
        soundness="Scores are means over all records, and one record can move them in"
        " one direction only, so a round costs half of what the paper "
        "counts. Rejection sampling is calibrated on generated records.",
        settings=(
            Setting(
                name="base",
                label="Base model",
                help="The model whose generators are combined.",
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
            what="The critic, or public question about columns, that best tells the "
            "real table from the mixture. It is chosen by the exponential "
            "mechanism from mean scores over all records.",
            mechanism="zcdp" if budget.private else "gaussian",
            rho=rho,
            share=own.boost_share,
            noise_multiplier=0.0,
            count=own.rounds,
        )
        return (boost,)
