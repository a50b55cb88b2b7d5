"""What must hold after any fault: the ledger never below what was released, the chain sound."""

from __future__ import annotations

import json

from core.privacy.accounting.accountant import epsilon
from core.privacy.plan import Plan
from core.runs.records import RunRecord
from core.runs.storage.artefacts import METER
from core.runs.storage.store import RunStore

ROUNDING = 1e-9


def metered(store: RunStore, run: RunRecord) -> dict[str, int]:
    """How often each phase ran by the run's meters on disk, all attempts together."""
    counts: dict[str, int] = {}
    for path in store.artefacts(run.id).folder.rglob(METER):
        for name, count in json.loads(path.read_text())["counts"].items():
            counts[name] = counts.get(name, 0) + count
    return counts


def cost(plan: Plan, counts: dict[str, int]) -> float:
    """ε of so many runs of the plan's phases."""
    ran = [p.model_copy(update={"count": counts[p.name]}) for p in plan.phases if counts[p.name]]
    return epsilon(ran, plan.budget.delta)[0] if ran else 0.0


def paid_for(store: RunStore, run: RunRecord, *, starts: int = 1) -> None:
    """Compare a run's meters with its debits.

    Args:
      store: where.
      run: as it ended.
      starts: how often it began from nothing after something was released; each pays.
    """
    ledger = store.ledger
    assert ledger.verify()
    keys = {run.id, *(f"{run.id}.{number}" for number in range(2, run.attempt + 1))}
    debits = [e for e in ledger.entries(run.account_id) if e.kind == "release" and e.run in keys]
    counts = metered(store, run)
    assert len(debits) == starts, "one debit for each start that released something"
    if not counts or not any(counts.values()):
        return
    planned = {phase.name: phase.count * run.plan.attempts for phase in run.plan.phases}
    assert all(counts[name] <= planned[name] for name in counts), "nothing ran that was not planned"
    (newest,) = [entry for entry in debits if entry.id == run.debit]
    assert newest.epsilon is not None
    assert cost(run.plan, counts) <= newest.epsilon + ROUNDING, "the ledger is below the releases"
