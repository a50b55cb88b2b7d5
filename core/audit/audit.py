"""An audit: a lower bound on a model's ε, found by attacking its own code on a table made by code.

Four attacks share the error that the confidence leaves evenly. An audit that stays below the claim
proves nothing; one that passes it refutes the claim, but for the chance that the confidence states.
The same attacks are played with a tenth of the noise (`Audit.power`): what they find there is what
they are able to see.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.audit.bounds import bound_from_gaussians, bound_from_guesses, bound_from_rates, rates
from core.audit.canary_attack import (
    AuditTable,
    LeaveOneOut,
    audit_table,
    one_run,
    prepare_leave_one_out,
)
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.steps.calibration.calibrated import SHARE
from core.privacy.plan import Budget, Plan, default_delta

ONE_RUN, ONE_OUT = "one run", "leave one out"
ALONE, SAMPLED = "nobody else", "nobody else, random batches"
METHOD = (
    "one run with canaries (Steinke, Nasr and Jagielski, 2023) and leave-one-out at a known seed "
    "(Gaussian trade-off where nobody else is there, else Clopper–Pearson), white box, Bonferroni"
)
CONFIDENCE = 0.95  # of the largest bound
_EACH = 1.0 - (1.0 - CONFIDENCE) / 4.0  # of each attack's: all four share the error
WEAK = 0.1  # share of the planned noise at which an audit's power is measured

_SETTINGS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("settings.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Sizes:
    """How much is tried.

    Attributes:
      canaries: m, coins of the one run; half of them are guessed.
      records: n of the leave-one-out; repeats: R, of every release in each world.
      rows: equal rows of each record; more than one attacks what is claimed per person. With a
        model that learns histories they are events, and a canary is all windows of a person.
    """

    canaries: int = 128
    others: int = 16
    steps: int = 2
    records: int = 512
    repeats: int = 400
    alone_repeats: int = 2400
    sampled_repeats: int = 200
    full: bool = False
    scored: int = 160
    rows: int = 1


FEW = 16  # n where nobody else is there
SAMPLED_STEPS, RATE = 4, 0.5  # of random batches: the record is in one of them, nearly always
QUICK = Sizes()
LONG = Sizes(
    canaries=100,
    others=3000,
    repeats=2000,
    alone_repeats=4000,
    sampled_repeats=1000,
    full=True,
    scored=100,
)


@dataclass(frozen=True)
class Finding:
    """What one attack proves."""

    name: str
    lower_bound: float
    confidence: float
    detail: dict[str, Any]


@dataclass(frozen=True)
class Audit:
    """What all attacks together prove.

    Attributes:
      claimed: ε that the plans state; every attack had a plan of its own for the same claim.
      power: the bound that the same attacks get where a tenth of the noise is added, if measured.
    """

    model: str
    claimed: float
    delta: float
    confidence: float
    lower_bound: float
    power: float | None
    method: str
    canaries: int
    seed: int
    seconds: float
    parts: tuple[Finding, ...]

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted."""
        return self.lower_bound > self.claimed

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "refuted": self.refuted}


class Trial:
    """The attacks on one model at one claim; plans and preparations are made once."""

    def __init__(
        self,
        model: str,
        epsilon: float,
        *,
        delta: float | None = None,
        seed: int = 0,
        sizes: Sizes = QUICK,
    ):
        self.model, self.seed, self.sizes = model, seed, sizes
        largest = max(sizes.records, sizes.canaries + sizes.others)
        chosen = default_delta(largest) if delta is None else delta
        self.budget = Budget(epsilon=epsilon, delta=chosen)
        if not self.budget.private:
            raise ValueError("An audit needs a finite ε: without a claim nothing can be refuted.")
        settings = synthesizer(model).card.settings
        self.counted = SHARE in {setting.name for setting in settings}
        self._prepared: dict[str, LeaveOneOut] = {}
        self._tables: dict[tuple[int, int], AuditTable] = {}

    def one_run(self, noise: float = 1.0) -> Finding:
        """Coins of all canaries, guessed from one fit."""
        sizes = self.sizes
        attacked = self._table(sizes.canaries, sizes.others)
        plan = self._plan(attacked, None if sizes.full else sizes.steps, 1.0, plain=True)
        releases = sum(phase.count for phase in plan.phases if phase.mechanism != "zcdp")
        every = 1 if not sizes.full else max(1, releases // sizes.scored)
        guessed = 2 * (sizes.canaries // 4)
        seen = one_run(plan, attacked, seed=self.seed, noise=noise, guessed=guessed, every=every)
        bound = bound_from_guesses(seen, delta=self.budget.delta, confidence=_EACH)
        return Finding(ONE_RUN, bound, _EACH, asdict(seen) | _plan_words(plan))

    def leave_one_out(self, noise: float = 1.0) -> Finding:
        """One record left out, where every record takes part in every step."""
        return self._one_out(ONE_OUT, noise)

    def nobody_else(self, noise: float = 1.0) -> Finding:
        """One record left out of a table where all others are ⊥ in both worlds."""
        return self._one_out(ALONE, noise)

    def random_batches(self, noise: float = 1.0) -> Finding:
        """The same where batches are random, so that the claim rests on sampling."""
        return self._one_out(SAMPLED, noise)

    def attacks(self) -> tuple[Callable[[float], Finding], ...]:
        """All of them; each takes the share of the planned noise that is really added."""
        return (self.one_run, self.leave_one_out, self.nobody_else, self.random_batches)

    def _one_out(self, name: str, noise: float) -> Finding:
        if name not in self._prepared:
            self._prepared[name] = self._prepare(name)
        attack, delta = self._prepared[name], self.budget.delta
        scores, plan = attack.scores(noise=noise), attack.plan
        if name == ALONE and all(phase.mechanism != "laplace" for phase in plan.phases):
            # every record takes part, and what is scored has Gaussian noise alone
            bound = bound_from_gaussians(*scores, delta=delta, confidence=_EACH)
            return Finding(name, bound, _EACH, _plan_words(plan))
        seen = rates(*scores, delta=delta, confidence=_EACH)
        bound = bound_from_rates(seen, delta=delta, confidence=_EACH)
        return Finding(name, bound, _EACH, asdict(seen) | _plan_words(plan))

    def _prepare(self, name: str) -> LeaveOneOut:
        sizes = self.sizes
        n, steps, rate, repeats = {
            ONE_OUT: (sizes.records, sizes.steps, 1.0, sizes.repeats),
            ALONE: (FEW, 1, 1.0, sizes.alone_repeats),
            SAMPLED: (FEW, SAMPLED_STEPS, RATE, sizes.sampled_repeats),
        }[name]
        attacked, alone = self._table(1, n - 1), name != ONE_OUT
        plan = self._plan(attacked, steps, rate, plain=alone)
        return prepare_leave_one_out(plan, attacked, seed=self.seed, repeats=repeats, alone=alone)

    def _table(self, canaries: int, others: int) -> AuditTable:
        if (canaries, others) not in self._tables:
            rows, history = self.sizes.rows, synthesizer(self.model).histories
            made = audit_table(canaries, others, rows=rows, history=history and rows > 1)
            self._tables[canaries, others] = made
        return self._tables[canaries, others]

    def _plan(self, attacked: AuditTable, steps: int | None, rate: float, *, plain: bool) -> Plan:
        """The model's own plan for the claim; with few steps and small networks unless None."""
        n = attacked.n
        settings: dict[str, Any] = {}
        if steps is not None:
            for kind in ("small", "plain") if plain else ("small",):
                settings |= _SETTINGS[kind].get(self.model, {})
            settings |= dict.fromkeys(_SETTINGS["steps"].get(self.model, ()), steps)
            if self.counted:
                settings[SHARE] = 0.0
            if self.model in _SETTINGS["steps"]:
                settings["batch"] = max(1, round(rate * n))
        return plan_fit(synthesizer(self.model), attacked.domain, n, self.budget, settings)


def run_audit(
    trial: Trial, *, power: bool = True, tell: Callable[[str], None] = lambda _: None
) -> Audit:
    """Play all attacks on a model as it is and, for the power, with a tenth of its noise."""
    started = time.monotonic()
    parts, seen = [], []
    for attack in trial.attacks():
        tell(_words(attack))
        parts.append(attack(1.0))
        if power and not (trial.sizes.full and parts[-1].name == ONE_RUN):
            tell(f"{_words(attack)}, with a tenth of the noise")
            seen.append(attack(WEAK).lower_bound)
    return Audit(
        model=trial.model,
        claimed=trial.budget.epsilon,
        delta=trial.budget.delta,
        confidence=CONFIDENCE,
        lower_bound=max(part.lower_bound for part in parts),
        power=max(seen) if seen else None,
        method=METHOD,
        canaries=trial.sizes.canaries,
        seed=trial.seed,
        seconds=round(time.monotonic() - started, 1),
        parts=tuple(parts),
    )


def _plan_words(plan: Plan) -> dict[str, Any]:
    told = {"name", "count", "noise_multiplier", "sampling_rate"}
    return {"records": plan.n, "phases": [p.model_dump(include=told) for p in plan.phases]}


def _words(attack: Callable[[float], Finding]) -> str:
    return getattr(attack, "__name__", "an attack").replace("_", " ")
