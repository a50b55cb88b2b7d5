"""Settings that a plan accepts can run: nothing is spent on a fit that cannot end."""

from __future__ import annotations

import pytest

from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.steps.training.settings import LEAST_STEPS
from core.privacy.plan import Budget
from tests.contract.fits import IDS, QUICK, fit
from tests.models.tables import domain, door

pytestmark = pytest.mark.slow

N = 80


def smallest(model):
    """Every numeric setting at the least value it may have, or just above an exclusive bound."""
    least = {}
    for name, field in synthesizer(model).settings_class.model_fields.items():
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
    if model in ("pearl", "scan_focus"):
        settings["steps"] = LEAST_STEPS  # 0 is automatic: not the least
    plan = plan_fit(synthesizer(model), domain(), N, Budget(epsilon=1.0, delta=1e-4), settings)
    fitted = fit(door(plan), plan, tmp_path)
    assert len(fitted.sample(5, seed=1)) == 5


def test_pearl_refuses_a_handful_of_steps_in_the_plan():
    """Two were accepted once, and lost the budget to a division by zero after the release."""
    for steps in (1, 2, 9):
        with pytest.raises(ValueError, match="at least 10"):
            plan_fit(
                synthesizer("pearl"), domain(), N, Budget(epsilon=1.0, delta=1e-4), {"steps": steps}
            )
