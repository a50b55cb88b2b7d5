"""Private Post-GAN Boosting: the best mixture of all generators that a private GAN went through.

Private phases: those of the base, then T private selections of a critic
(`core.privacy.mechanisms.selection`): every option's mean over all records is bounded by 1/n a
record, all moves have one sign, so one selection has bounded range ε₀ and is ε₀²/8-zCDP, half of
what the paper counts per round and composed in the same accountant as the base. Which snapshots are
kept follows from step counts alone. Everything else touches generated records only: the calibration
of critics, the weights, the constant of rejection sampling.

Options are the critics, public questions about one or two columns, and the opposites of both; the
last two are ours (`pgb.multiplicative_weights` says why). Without differential privacy each round
picks the best.

Source: Neunhoeffer, Wu and Dwork, "Private post-GAN boosting", ICLR 2021.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from core.models.dp_auto_gan.plan import DpAutoGan
from core.models.dp_gan.plan import DpGan
from core.models.ppem.plan import Ppem
from core.models.synthesizer import (
    Card,
    Chart,
    Observe,
    Setting,
    Stage,
    Synthesizer,
    register,
    setting_of,
)
from core.privacy.accounting.accountant import check_budget
from core.privacy.accounting.curves import zcdp_rho
from core.privacy.plan import Budget, Phase, Plan
from core.table.schema import Domain

if TYPE_CHECKING:
    from core.models.pgb.fitted import BoostedFitted
    from core.models.shared.fitted import SlotFitted
    from core.models.shared.snapshot_ensemble import Players
    from core.privacy.guarded import PrivateTable

__all__ = ["Pgb", "PgbSettings"]


T = TypeVar("T", Stage, Chart)
BOOST = "boosting"
TITLE = "Choosing among all generators"
WITHOUT_PRIVACY = {"rounds": 1000, "candidates": 1024}


class Base(Synthesizer, Protocol):
    """A model that keeps snapshots of a game when its setting `snapshots` says how many."""

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
        ...

    def load(self, folder: Path) -> SlotFitted:
        """See `Synthesizer.load`."""
        ...

    def players(self, fitted: SlotFitted) -> Players:
        """The snapshots of a fit."""
        ...


BASES: dict[str, type[Base]] = {base.card.id: base for base in (DpGan, DpAutoGan, Ppem)}
Name = Literal["dp_gan", "dp_auto_gan", "ppem"]


class PgbSettings(BaseModel):
    """Public settings beside those of the base; none depends on data.

    Attributes:
      base: id of the model that is boosted.
      snapshots: N, its generators and critics, evenly spaced over the last quarter of its game.
      rounds: T, private selections.
      candidates: r, records of each generator that the game is played with.
      questions: public questions that play beside the learned critics; 0 asks none.
      boost_share: of the budget, for the selections.
      rejection: 1 to also keep records in proportion to D/(1 - D) of the average critic, 0 not to.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: Name = "dp_gan"
    snapshots: int = Field(default=32, ge=2, le=1000)
    rounds: int = Field(default=400, ge=1, le=10_000)
    candidates: int = Field(default=256, ge=1, le=10_000)
    questions: int = Field(default=1000, ge=0, le=10_000)
    boost_share: float = Field(default=0.15, gt=0.0, lt=1.0)
    rejection: int = Field(default=1, ge=0, le=1)


def _each(items: Iterable[T], key: str) -> tuple[T, ...]:
    """Without repeats, in order: bases share stages and charts."""
    return tuple({getattr(item, key): item for item in items}.values())


_setting = partial(setting_of, PgbSettings)
_base_setting = {setting.name: setting for setting in DpGan.card.settings}


@register
class Pgb:
    """See the module."""

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
            _setting("snapshots", "Snapshots", "Generators and critics kept.", 2, 500),
            _setting("rounds", "Rounds", "Private choices of a critic.", 1, 5000),
            _setting("candidates", "Candidates", "Records of each generator.", 1, 2000),
            _setting("questions", "Public questions", "Beside learned critics.", 0, 5000),
            _setting("boost_share", "Budget for boosting", "Share of ε.", 0.01, 0.9),
            _setting("rejection", "Rejection sampling", "1 on, 0 off.", 0, 1),
            *(_base_setting[name] for name in ("steps", "batch")),
        ),
        boosts=tuple(BASES),
    )

    def plan(
        self, domain: Domain, n: int, budget: Budget, settings: dict[str, Any] | None = None
    ) -> Plan:
        """See `Synthesizer.plan`; settings of the base may be given too."""
        check_budget(budget, n)
        fitting = {} if budget.private else WITHOUT_PRIVACY
        own, rest = _parted(fitting | (settings or {}))
        whole = budget.model_copy(update={"reserved": (_selections(own, budget), *budget.reserved)})
        made = BASES[own.base]().plan(domain, n, whole, rest)
        phases = {phase.name: phase for phase in made.phases}
        last = [BOOST, *(phase.name for phase in budget.reserved)]
        order = [name for name in phases if name not in last] + last
        return made.model_copy(
            update={
                "model": self.card.id,
                "budget": budget,
                "phases": tuple(phases[name] for name in order),
                "settings": made.settings | own.model_dump(),
            }
        )

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
    ) -> BoostedFitted:
        """See `Synthesizer.fit`."""
        import torch

        from core.models.pgb.fitted import BoostedFitted, questions_for
        from core.models.pgb.multiplicative_weights import Judge, Rounds
        from core.models.shared.training_loop import Checkpoint, Loop, announce, run_loop

        own, rest = _parted(plan.settings)
        fresh = {"seed": secrets.randbits(62) if seed is None else seed}
        kept = Checkpoint.open(folder / "pgb.pt", table.meter, resume=resume, fresh=fresh)
        base = BASES[own.base]()
        fitted = base.fit(
            table,
            plan.model_copy(update={"settings": rest}),
            observe=observe,
            folder=folder,
            seed=kept.state["seed"],
            device=device,
            resume=resume,
        )
        players = base.players(fitted)
        random = torch.Generator().manual_seed(kept.state["seed"] + 7)
        pool = torch.cat([players.draw(j, own.candidates, random) for j in range(len(players))])
        seen = players.heads.seen(pool)
        questions = questions_for(players, own.model_dump())
        judge = Judge.calibrate(players, seen, questions)
        announce(observe, plan.phase(BOOST))
        selection = table.selection(BOOST, judge, tick=_ticks(observe))
        rounds = Rounds.fresh(judge, seen)
        if "rounds" in kept.state:
            rounds = Rounds(judge, rounds.likes, **kept.state["rounds"])

        def made() -> BoostedFitted:
            return BoostedFitted(fitted, judge, rounds, own.model_dump())

        run_loop(
            Loop(
                name=BOOST,
                title=TITLE,
                start=table.meter.runs(BOOST),
                steps=own.rounds,
                step=lambda: rounds.play(selection),
                metrics=lambda _: rounds.metrics(),
                preview=lambda: made().preview(),
                keep=lambda: kept.keep(rounds=rounds.state()),
                private=True,
            ),
            observe,
        )
        return made()

    def load(self, folder: Path) -> BoostedFitted:
        """See `Synthesizer.load`."""
        from core.models.pgb.fitted import read_boosted

        text = json.loads((folder / "pgb.json").read_text(encoding="utf-8"))
        own = PgbSettings(**text["settings"])
        base = BASES[own.base]()
        fitted = base.load(folder / "base")
        players = base.players(fitted)
        return read_boosted(folder, fitted, players, own.model_dump(), text["rate"])


def _parted(settings: dict[str, Any]) -> tuple[PgbSettings, dict[str, Any]]:
    """Boosting's own settings, and the base's."""
    own = {name: settings[name] for name in PgbSettings.model_fields if name in settings}
    rest = {name: value for name, value in settings.items() if name not in own}
    chosen = PgbSettings(**own)
    return chosen, rest | {"snapshots": chosen.snapshots}


def _selections(own: PgbSettings, budget: Budget) -> Phase:
    """The selections' phase, which alone would cost its share of ε."""
    private, rho = budget.private, None
    if private:
        rho = zcdp_rho(budget.epsilon * own.boost_share, budget.delta) / own.rounds
    return Phase(
        name=BOOST,
        title=TITLE,
        what="Which critic or public question about columns tells the real table from the "
        "mixture best, by the exponential mechanism on mean scores of all records.",
        mechanism="zcdp" if private else "gaussian",
        rho=rho,
        share=own.boost_share,
        noise_multiplier=0.0,
        count=own.rounds,
    )


def _ticks(observe: Observe) -> Callable[[int, int], None]:
    from core.models.synthesizer import FitEvent

    def tick(done: int, total: int) -> None:  # a wish to stop is followed after the round
        data = {"step": done, "steps": total, "phase": BOOST, "unit": "rows"}
        observe(FitEvent(kind="progress", data=data))

    return tick
