"""A plan's request: tests make plans by themselves, also of models that are not registered."""

from __future__ import annotations

from typing import Any

from core.privacy.plan import Plan
from core.runs.request import RunRequest


def request_for(plan: Plan, **asked: Any) -> RunRequest:
    """What would have been asked for, with the run's own wishes by name."""
    budget = plan.budget
    return RunRequest(model=plan.model, epsilon=budget.epsilon, delta=budget.delta, **asked)
