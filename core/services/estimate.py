"""How long a run may take, judged by earlier runs of the same model here."""

from __future__ import annotations

from core.privacy.plan import Plan
from core.runs.storage.events import State
from core.runs.storage.store import RunStore

__all__ = ["expected_seconds"]

TRAINING = "training"  # a phase of free steps, as many as the `steps` setting says


def expected_seconds(store: RunStore, table_id: str, plan: Plan) -> float | None:
    """Seconds until the synthetic table, scaled from the newest like run; None without one.

    Private phases scale with how often they run and on how many records, free training with its
    steps; everything else is taken as it was.

    Args:
      store: where earlier runs are.
      table_id: runs of this table are asked; others have other widths.
      plan: what is planned.
    """
    for run in store.runs(table_id):
        if run.state is State.DONE and run.model == plan.model and _alike(run.plan, plan):
            return sum(
                seconds * _ratio(name, run.plan, plan)
                for name, seconds in run.seconds.items()
                if name != "report"
            )
    return None


def _alike(earlier: Plan, plan: Plan) -> bool:
    """Whether one can be scaled from the other."""
    sized = "steps" in earlier.settings and "steps" in plan.settings
    return sized and {p.name for p in earlier.phases} == {p.name for p in plan.phases}


def _ratio(name: str, earlier: Plan, plan: Plan) -> float:
    """How much longer a phase takes than it did."""
    if name == TRAINING:
        return float(plan.settings["steps"]) / max(1.0, float(earlier.settings["steps"]))
    if name not in {phase.name for phase in plan.phases}:
        return 1.0
    now, then = plan.phase(name), earlier.phase(name)
    return (now.count * (now.sampling_rate or 1.0)) / (then.count * (then.sampling_rate or 1.0))
