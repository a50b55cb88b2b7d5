"""How long a run may take, judged by earlier runs of the same model here."""

from __future__ import annotations

from core.privacy.plan import Plan
from core.runs.events import State
from core.runs.store import RunStore

__all__ = ["expected_seconds"]


def expected_seconds(store: RunStore, table_id: str, plan: Plan) -> float | None:
    """Seconds until the synthetic table, scaled by steps from the newest like run; None without.

    Args:
      store: where earlier runs are.
      table_id: runs of this table are asked; others have other widths.
      plan: what is planned; its `steps` setting scales the training phase.
    """
    steps = plan.settings.get("steps")
    for run in store.runs(table_id):
        earlier = run.plan.settings.get("steps")
        if run.state is not State.DONE or run.model != plan.model or not steps or not earlier:
            continue
        training = run.seconds.get("training", 0.0)
        others = sum(s for name, s in run.seconds.items() if name not in ("training", "report"))
        return others + training * float(steps) / float(earlier)
    return None
