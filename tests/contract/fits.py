"""Small plans and fits of every registered model; what tests only look at is made once."""

from __future__ import annotations

import functools
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.models.events import OnEvent
from core.models.planning import plan_fit
from core.models.registry import cards, synthesizer
from core.models.saved_model import Fitted
from core.models.step import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.meter import Meter
from core.privacy.plan import Budget, Plan
from tests.models.tables import Watcher, domain, door
from tests.privacy.deterministic_noise import DeterministicNoise

IDS = [card.id for card in cards()]
N = 400
LEARN_N = 4000
SMALL_GAN = {
    "critic_steps": 2, "batch": 64, "fakes": 32, "hidden": 16, "latent": 4, "critic_hidden": 16,
    "snapshots": 3, "rate": 1e-2,
}  # fmt: skip
QUICK: dict[str, dict[str, object]] = {
    "pearl": {"steps": 40, "frequencies": 200, "batch": 64, "hidden": 16, "latent": 4},
    "dp_gan": {"steps": 20, **SMALL_GAN},
    "dp_auto_gan": {"steps": 20, "encoder_steps": 20, "encoder_hidden": 16, "noise": 4,
                    **SMALL_GAN},
    "p3gm": {"steps": 30, "batch": 64, "hidden": 16, "em_steps": 3, "dimensions": 4},
    "pgb": {"steps": 20, "rounds": 20, "candidates": 16, **SMALL_GAN},
    "scan_focus": {"steps": 30, "preliminary_steps": 10, "components": 64, "members": 2,
                   "hidden": 16, "latent": 4},
    "ppem": {"marginal_steps": 15, "steps": 20, "energy_steps": 2, "batch": 64, "fakes": 32,
             "hidden": 16, "latent": 4, "energy_hidden": 16, "rate": 1e-2},
}  # fmt: skip
# long enough to be stopped in the middle, when the clock runs with the steps
LONG: dict[str, dict[str, object]] = {
    "pearl": {"steps": 30},
    "dp_gan": {"steps": 30},
    "dp_auto_gan": {"steps": 30},
    "p3gm": {"steps": 30},
    "ppem": {"steps": 30},
    "pgb": {"rounds": 30},
    "scan_focus": {"steps": 30},
}
# Enough to learn the small table when there is no noise, by training alone: counts would mend what
# a single step has made, and the test would not see whether anything is learnt.
LEARN: dict[str, dict[str, object]] = {
    "scan_focus": {"steps": 300, "preliminary_steps": 60, "components": 200, "members": 1,
                   "hidden": 64, "latent": 16},
    "pearl": {"steps": 400, "frequencies": 1500, "batch": 128, "hidden": 64},
    "pgb": {"steps": 900, "critic_steps": 10, "batch": 256, "fakes": 128, "hidden": 64,
            "latent": 16, "critic_hidden": 64, "rate": 3e-4, "box": 1.0, "rounds": 60,
            "snapshots": 8, "candidates": 64},
    "dp_auto_gan": {"steps": 400, "critic_steps": 10, "batch": 128, "fakes": 64, "hidden": 64,
                    "noise": 16, "critic_hidden": 64, "rate": 3e-4, "box": 1.0, "latent": 6,
                    "encoder_steps": 800, "encoder_hidden": 32, "count_share": 0.0},
    "p3gm": {"steps": 1500, "batch": 128, "hidden": 64, "dimensions": 8, "weight": 0.3,
             "count_share": 0.0},
    "ppem": {"marginal_steps": 100, "steps": 250, "energy_steps": 4, "batch": 64, "fakes": 64,
             "hidden": 64, "latent": 16, "energy_hidden": 64, "penalty": 0.0, "rate": 1e-3,
             "count_share": 0.0},
}  # fmt: skip


@functools.cache
def planned(
    model: str, epsilon: float = 1.0, target: str | None = "ill", *, long: bool = False
) -> Plan:
    """A quick plan, or one that is long enough to be stopped in the middle."""
    settings = {**QUICK[model], **(LONG[model] if long else {})}
    budget = Budget(epsilon=epsilon, delta=1e-5)
    return plan_fit(synthesizer(model), domain(target), N, budget, settings)


def fit(
    table: PrivateTable, plan: Plan, folder: Path, on_event: OnEvent | None = None, **more: Any
) -> Fitted:
    """A fit as a worker begins it; `more` goes into its context."""
    context = FitContext(on_event=on_event or Watcher(), folder=folder, **({"seed": 1} | more))
    return synthesizer(plan.model).fit(table, plan, context)


@dataclass(frozen=True)
class Fit:
    """A fit that is over: what was planned, told, counted and made."""

    plan: Plan
    watcher: Watcher
    meter: Meter
    fitted: Fitted


@functools.cache
def quick_fit(model: str, epsilon: float = 1.0, target: str | None = "ill") -> Fit:
    """A quick fit that nothing disturbed; made once, to be looked at only."""
    plan, watcher = planned(model, epsilon, target), Watcher()
    table = door(plan, target=target)
    with tempfile.TemporaryDirectory() as folder:
        fitted = fit(table, plan, Path(folder), watcher)
    return Fit(plan, watcher, table.meter, fitted)


def learnt(model: str) -> Fitted:
    """A fit without noise that is long enough to learn the small table."""
    settings = {**QUICK[model], **LEARN[model]}
    budget = Budget(epsilon=math.inf, delta=1e-5)
    plan = plan_fit(synthesizer(model), domain(), LEARN_N, budget, settings)
    table = door(plan, noise_source=DeterministicNoise(1))  # the same batches each time
    with tempfile.TemporaryDirectory() as folder:
        return fit(table, plan, Path(folder))
