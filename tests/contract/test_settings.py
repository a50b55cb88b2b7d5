"""Settings that a plan accepts can run: nothing is spent on a fit that cannot end."""

from __future__ import annotations

import pytest

from core.models.dp_auto_gan import plan as dp_auto_gan
from core.models.dp_gan import plan as dp_gan
from core.models.p3gm import plan as p3gm
from core.models.pearl import plan as pearl
from core.models.pgb import plan as pgb
from core.models.planning import plan_fit
from core.models.ppem import plan as ppem
from core.models.registry import synthesizer
from core.models.synthesizer import FitContext
from core.privacy.plan import Budget
from tests.contract.test_contract import IDS, QUICK
from tests.models.tables import Watcher, domain, door

N = 80
SETTINGS = {
    "dp_gan": dp_gan.DpGanSettings,
    "dp_auto_gan": dp_auto_gan.DpAutoGanSettings,
    "p3gm": p3gm.P3gmSettings,
    "pearl": pearl.PearlSettings,
    "pgb": pgb.PgbSettings,
    "ppem": ppem.PpemSettings,
}


def smallest(model):
    """Every numeric setting at the least value it may have, or just above an exclusive bound."""
    least = {}
    for name, field in SETTINGS[model].model_fields.items():
        for limit in field.metadata:
            if hasattr(limit, "ge"):
                least[name] = limit.ge
            elif hasattr(limit, "gt"):
                least[name] = limit.gt + 1e-3
    return least


@pytest.mark.parametrize("model", IDS)
def test_the_smallest_settings_that_a_plan_accepts_can_run(model, tmp_path):
    settings = QUICK[model] | smallest(model)
    if model in ("dp_gan", "dp_auto_gan", "p3gm"):  # PPEM's batches of one stand for theirs:
        settings["batch"] = QUICK[model]["batch"]  # noise for such rare records takes long to find
    if model == "pearl":
        settings["steps"] = pearl.LEAST_STEPS  # 0 is automatic: not the least
    plan = plan_fit(synthesizer(model), domain(), N, Budget(epsilon=1.0, delta=1e-4), settings)
    fitted = synthesizer(model).fit(
        door(plan), plan, FitContext(observe=Watcher(), folder=tmp_path, seed=1)
    )
    assert len(fitted.sample(5, seed=1)) == 5


def test_pearl_refuses_a_handful_of_steps_in_the_plan():
    """Two were accepted once, and lost the budget to a division by zero after the release."""
    for steps in (1, 2, 9):
        with pytest.raises(ValueError, match="at least 10"):
            plan_fit(
                synthesizer("pearl"), domain(), N, Budget(epsilon=1.0, delta=1e-4), {"steps": steps}
            )
