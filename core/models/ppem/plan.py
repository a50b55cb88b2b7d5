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

from typing import ClassVar

from pydantic import Field

from core.message import Message, plural
from core.models.card import Card, Chart, Frozen, Stage, settings_of, tunable
from core.models.registry import register
from core.models.steps.calibration.calibrated import Calibrated
from core.models.steps.counting.steps import CLOSENESS, COUNTING_STAGES
from core.models.steps.training import settings as common
from core.models.steps.training.phases import gradient_phase
from core.privacy.plan import Phase
from core.schema.schema import Domain

MARGINAL, CONDITIONAL = "marginal", "conditional"
TITLES = {MARGINAL: "Training on the tagged columns", CONDITIONAL: "Training on the other columns"}
STATISTIC, CRITICAL = "Stein statistic, generated records", "critical value"


# What serves better where there is no noise, unless it is set by hand.
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


class PpemSettings(Frozen):
    """Public settings; none depends on data.

    Attributes:
      alpha: level of the penalty's test.
      snapshots: of the last phase, kept over its last quarter for boosting.
    """

    marginal_steps: int = tunable(
        500, "Steps for tagged columns", common.MORE_STEPS, form=(1, 20_000), ge=1, le=100_000
    )
    steps: int = tunable(
        2000, "Steps for other columns", common.MORE_STEPS, form=(1, 20_000), ge=1, le=100_000
    )
    energy_steps: int = tunable(
        10,
        "Energy network steps per generator step",
        common.READS_RECORDS,
        form=(1, 100),
        ge=1,
        le=200,
    )
    batch: int = common.BATCH
    fakes: int = common.FAKES
    marginal_share: float = tunable(
        0.2,
        "Budget for tagged columns",
        "Share of the training budget. The other columns get the rest.",
        form=(0.01, 0.99),
        gt=0.0,
        lt=1.0,
    )
    clip_norm: float = common.CLIP_NORM
    penalty_clip: float = tunable(
        0.25,
        "Penalty clipping",
        "Limit for the α-LMDP penalty, as a multiple of the clipping norm.",
        form=(0.01, 10),
        gt=0.0,
        le=10.0,
    )
    penalty: float = tunable(
        3.0,
        "Penalty weight λ_α",
        "How strongly training shifts the tagged columns. 0 trains without a penalty.",
        form=(0, 100),
        ge=0.0,
        le=1000.0,
    )
    alpha: float = Field(default=0.05, gt=0.0, lt=0.5)
    margin: float = tunable(
        10.0,
        "Margin",
        "Training raises the energy of generated records up to this level.",
        form=(0.1, 100),
        gt=0.0,
        le=1000.0,
    )
    lipschitz: float = tunable(
        1.0,
        "Lipschitz penalty",
        "Higher values give smoother energies.",
        form=(0, 100),
        ge=0.0,
        le=1000.0,
    )
    hidden: int = tunable(
        128, "Generator width", common.GENERATOR_LAYERS, form=(4, 2048), ge=4, le=4096
    )
    latent: int = common.LATENT
    energy_hidden: int = tunable(
        64, "Energy network width", common.SMALLER_NET, form=(4, 2048), ge=4, le=4096
    )
    rate: float = common.RATE
    energy_rate: float = tunable(
        1e-3, "Energy network learning rate", common.PEAK_RATE, form=(1e-5, 0.1), gt=0.0, le=1.0
    )
    box: float = tunable(
        1.0, "Energy network weight limit", common.WEIGHT_LIMIT, form=(0, 10), ge=0.0, le=100.0
    )
    temperature: float = common.TEMPERATURE
    snapshots: int = common.SNAPSHOTS
    count_share: float = common.counting_share(0.5)


@register
class Ppem(Calibrated[PpemSettings]):
    """See the module."""

    settings_class = PpemSettings
    without_privacy = WITHOUT_PRIVACY
    card: ClassVar[Card] = Card(
        id="ppem",
        name="PPEM",
        summary="Learns the tagged columns first, then the other columns given the tagged ones. In "
        "both stages, one network scores how real a record looks and a generator follows it.",
        good_at="Hiding how tagged columns are distributed, while keeping how the "
        "other columns depend on them.",
        weak_at="Slower than the other models. If columns are tagged, nothing is "
        "counted, and single columns are less accurate.",
        source="Tillman, Balch and Veloso, TMLR 2023",
        published=(
            ("Credit fraud, AUROC, 2 / 5 tagged, no DP", "0.922 / 0.948 (real 0.975)"),
            ("Credit fraud, AUROC, 2 / 5 tagged, (1, 1/n)", "0.872 / 0.889"),
        ),
        stages=(
            *COUNTING_STAGES,
            Stage(
                name=MARGINAL,
                title=TITLES[MARGINAL],
                makes="tagged columns, shifted away from the real ones",
                private=True,
            ),
            Stage(
                name=CONDITIONAL,
                title=TITLES[CONDITIONAL],
                makes="the other columns, given the tagged ones",
                private=True,
            ),
        ),
        charts=(
            Chart(
                title="Stein statistic against its critical value",
                caption="Measures how far generated tagged columns are from what the "
                "energy network has learned. Above the critical value, a test"
                " can tell the two apart. This proves nothing about the "
                "finished table, which is tested for the certificate.",
                unit="test statistic (higher: further apart)",
                series=(STATISTIC, CRITICAL),
            ),
            Chart(
                title="Signal and noise in each step",
                caption="Size of the energy network's average training step, divided "
                "by the size of its noise.",
                unit="signal-to-noise ratio",
                series=(
                    "tagged columns: signal-to-noise ratio",
                    "other columns: signal-to-noise ratio",
                ),
            ),
            CLOSENESS,
        ),
        protects=True,
        soundness="The α-LMDP penalty depends on the whole batch, so it is clipped separately and "
        "its effect is part of the sensitivity. The second generator trains on generated tagged "
        "columns, because real ones would reach it without noise. Steps of both energy networks "
        "count towards ε.",
        settings=settings_of(PpemSettings),
    )

    def training_phases(
        self, domain: Domain, n: int, settings: PpemSettings, scale: float
    ) -> tuple[Phase, ...]:
        """See `Synthesizer.training_phases`."""
        tagged, others = column_groups(domain)

        def phase(name: str, what: Message, share: float, steps: int) -> Phase:
            return gradient_phase(
                name,
                TITLES[name],
                of=Message(" of an energy network for {what}", what=what),
                scale=scale,
                n=n,
                batch=settings.batch,
                count=steps * settings.energy_steps,
                share=share,
            )

        first = Message("all columns")
        if domain.sensitive:
            first = Message("{columns}", columns=", ".join(tagged))
        if not others:
            return (phase(MARGINAL, first, 1.0, settings.marginal_steps),)
        share = settings.marginal_share
        rest = plural(len(others), "1 other column", "{n} other columns")
        return (
            phase(MARGINAL, first, share, settings.marginal_steps),
            phase(CONDITIONAL, rest, 1.0 - share, settings.steps),
        )


def column_groups(domain: Domain) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the columns that are modelled first, and of the others.

    Without tags all columns come first: there is nothing to keep apart.
    """
    names = tuple(column.name for column in domain.modelled)
    tagged = tuple(name for group in domain.sensitive.values() for name in group) or names
    return tagged, tuple(name for name in names if name not in tagged)
