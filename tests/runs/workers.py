"""Runs of the toy model, by worker processes or in this one, for the tests of workers."""

import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr
from typing import Any

from sqlalchemy import select

from core.models.planning import DiscoverDomain, plan_fit
from core.models.synthesizer import Synthesizer
from core.privacy.discovery.open_domain import open_domain, planned_schema
from core.privacy.plan import Budget, Plan
from core.runs.execution import worker
from core.runs.execution.launching.launcher import Launcher
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.records import RunRecord, TableRecord
from core.runs.storage.database import RunRow
from core.runs.storage.processes.process import LostRun
from core.runs.storage.store import RunStore
from core.services import runs
from tests.requests_for import request_for
from tests.runs import toy

PATIENCE = 40.0  # seconds; a worker starts in about 2 on a free core


def toy_plan(table: TableRecord, *, epsilon: float = 1.0, **settings: float) -> Plan:
    """A plan of the toy model, which learns what the table's schema leaves open."""
    wanted, budget = open_domain(table.schema), Budget(epsilon=epsilon, delta=1e-6)
    domain = planned_schema(table.schema, private=budget.private).domain()
    discover = None
    if wanted.names and budget.private:
        discover = DiscoverDomain.of(wanted, budget)
    return plan_fit(toy.Toy(), domain, table.n, budget, dict(settings), discover=discover)


def until(check: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def ended(store: RunStore, run_id: str) -> RunRecord:
    until(lambda: not store.run(run_id).state.live)
    return store.run(run_id)


def releases(store: RunStore, table: TableRecord) -> int:
    entries = store.ledger.entries(table.account_id)
    return sum(entry.kind == "release" for entry in entries)


def lose(store: RunStore, run_id: str) -> None:
    """Mark a run as one whose worker is gone, without waiting for a look."""
    with store.engine.connect() as connection:
        asked = select(RunRow.heartbeat).where(RunRow.id == run_id)
        heartbeat = connection.execute(asked).scalar_one()
    store._lose(LostRun(run_id, heartbeat))


def stepping(store: RunStore, run_id: str) -> bool:
    return store.journal.latest(run_id, "progress") is not None


def start(store: RunStore, launcher: Launcher, plan: Plan, **more: Any) -> RunRecord:
    (table,) = store.tables()
    return runs.start(store, launcher, table.id, plan, request_for(plan, **more))


def queued(store: RunStore, table: TableRecord, plan: Plan, *, shift_words: str = "") -> RunRecord:
    return store.create_run(
        table.id,
        plan,
        request_for(plan, rows=5, seed=0, device="cpu", shift_words=shift_words),
        schema=table.schema,
    )


def work(
    store: RunStore,
    run_id: str,
    compare: Any = toy.compare,
    find: Callable[[str], Synthesizer] = toy.find,
) -> RunRecord:
    """Work a queued run off in this process."""
    assert store.claim(run_id, slots=1)
    command = [run_id, "--home", str(store.workspace.home)]
    worker.main(command, find=find, compare=compare, command=toy.COMMAND)
    return store.run(run_id)


class HereLauncher(LocalLauncher):
    """A launcher whose worker is this process, so that a test need not wait for one to start."""

    def _start(self, run_id: str) -> None:
        command = [run_id, "--home", str(self.store.workspace.home)]
        with (
            self.store.artefacts(run_id).path("worker.log").open("a") as log,
            redirect_stderr(log),
        ):
            try:
                worker.main(command, find=toy.find, compare=toy.compare, command=toy.COMMAND)
            except Exception:
                traceback.print_exc()
