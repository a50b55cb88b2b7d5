"""Workers of all six models, killed by a signal that nothing can catch: at phases and at random."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.models.registry import cards
from core.privacy.plan import Plan
from core.runs.accounts.account import set_limit
from core.runs.events import State
from core.runs.records import RunRecord, TableRecord
from core.runs.request import RunRequest
from core.runs.storage.store import RunStore
from core.runs.workspace import PROJECT_ROOT, Workspace
from core.services import imports, planning, reviews, runs, tables
from core.services.sample_tables import sample_table
from tests.contract.fits import QUICK
from tests.faults.ledger import cost, metered, paid_for
from tests.faults.test_attempts import Queue
from tests.requests_for import request_for
from tests.runs.workers import lose

pytestmark = pytest.mark.slow

N = 200
MODELS = [card.id for card in cards()]


@pytest.fixture(scope="module")
def zygote() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.zygote"],
        cwd=PROJECT_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.stdin.close()
    process.stdout.close()
    process.wait()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunStore]:
    with RunStore(Workspace(tmp_path_factory.mktemp("kills") / "home")) as opened:
        table = imports.import_frame(opened, sample_table(N), name="t", source="test")
        tables.declare_all(opened, table)
        opened.attest(table.id)
        set_limit(opened, table.id, epsilon=100.0, delta=1e-3)
        yield opened


@pytest.fixture(scope="module")
def plans(store: RunStore) -> dict[str, Plan]:
    (table,) = store.tables()
    requests = {
        model: RunRequest(model=model, epsilon=1.0, settings=dict(QUICK[model])) for model in MODELS
    }
    return {
        model: planning.make_plan(table.schema, table.n, request)
        for model, request in requests.items()
    }


class Workers:
    """Runs of one table, worked off by the zygote's children."""

    def __init__(self, store: RunStore, zygote: subprocess.Popen[str]) -> None:
        self.store, self._zygote = store, zygote
        (self.table,) = store.tables()

    def start(self, plan: Plan) -> RunRecord:
        table: TableRecord = self.table
        return self.store.create_run(
            table.id, plan, request_for(plan, rows=20, device="cpu"), schema=table.schema
        )

    def work(self, run_id: str, **kill: Any) -> RunRecord:
        assert self.store.claim(run_id, slots=1)
        asked = {"run": run_id, "home": str(self.store.workspace.home), **kill}
        assert self._zygote.stdin is not None and self._zygote.stdout is not None
        self._zygote.stdin.write(json.dumps(asked) + "\n")
        self._zygote.stdin.flush()
        assert self._zygote.stdout.readline()
        found = self.store.run(run_id)
        if found.state is State.RUNNING and found.pid is None:
            # it died before it said who it is; a launcher would have, or waits for a minute
            lose(self.store, run_id)
        return self.store.run(run_id)

    def go_on(self, run: RunRecord) -> RunRecord:
        """What a person does with a run that lost its worker."""
        runs.resume(self.store, Queue(), run.id, spend_again=not run.resumable)  # type: ignore[arg-type]
        assert self.store.set_state(run.id, State.QUEUED)
        return self.work(run.id)


@pytest.fixture
def workers(store: RunStore, zygote: subprocess.Popen[str]) -> Workers:
    return Workers(store, zygote)


def check(workers: Workers, plan: Plan, kills: list[dict[str, Any]]) -> int:
    """Kill one run again and again, then let it end; how many kills came in time."""
    run, hits = workers.start(plan), 0
    for kill in kills:
        run = workers.work(run.id, **kill) if not hits else again(workers, run, kill)
        if run.state is State.DONE:
            break
        hits += 1
        assert run.state is State.LOST and "ended unexpectedly" in run.message, run.error
    if run.state is not State.DONE:
        run = workers.go_on(run)
    log = workers.store.artefacts(run.id).path("worker.log").read_text()
    assert (run.state, run.message) == (State.DONE, "Done."), f"{kills} {log}"
    paid_for(workers.store, run, starts=run.attempt)
    claim(workers.store, run)
    return hits


def again(workers: Workers, run: RunRecord, kill: dict[str, Any]) -> RunRecord:
    runs.resume(workers.store, Queue(), run.id, spend_again=not run.resumable)  # type: ignore[arg-type]
    assert workers.store.set_state(run.id, State.QUEUED)
    return workers.work(run.id, **kill)


def claim(store: RunStore, run: RunRecord) -> None:
    """The certificate holds no less than the meter counted, and no more than the ledger charged."""
    paper, counts = reviews.privacy_certificate(store, run.id), metered(store, run)
    assert paper is not None
    assert {phase["name"]: phase["count"] for phase in paper["phases"]} == counts
    assert counts and paper["epsilon_zero_out"] >= cost(run.plan, counts) * (1.0 - 1e-9)
    if run.plan.attempts == 1:  # else all that were declared are claimed, however many were made
        assert paper["epsilon_zero_out"] == pytest.approx(cost(run.plan, counts))


def test_kills_while_sums_batches_and_selections_run(
    workers: Workers, plans: dict[str, Plan]
) -> None:
    """A model of each kind of private access; the long form has all six."""
    dice = random.Random(15)
    for model in ("pearl", "dp_gan", "pgb"):
        assert check(workers, plans[model], [{"event": dice.randint(3, 9)}]) == 1


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
def test_kills_at_every_phase_and_at_random(
    workers: Workers, plans: dict[str, Plan], model: str
) -> None:
    dice, plan = random.Random(f"long {model}"), plans[model]
    names = ["read", *(phase.name for phase in plan.phases), "sample", "report"]
    for name in names:
        assert check(workers, plan, [{"phase": name}]) == 1, name
    check(workers, plan, [{"seconds": dice.uniform(0.1, 1.5)} for _ in range(4)])
    check(workers, plan, [{"event": k} for k in (5, 4, 3)])


# What only some runs do: a model that protects by itself and may begin anew, others whose shift is
# fitted, certificates, and counts for people outside and for scores.
PROTECTED = {
    "ppem": {"shift": None, "attempts": 2},
    "scan_focus": {"shift": 0.4, "attempts": 2},
    "pearl": {"shift": 0.4, "attempts": 1},
}


@pytest.fixture
def tagged(tmp_path: Path) -> Iterator[RunStore]:
    """A table with a tagged column and groups enough for a certificate."""
    with RunStore(Workspace(tmp_path / "home")) as opened:
        table = imports.import_frame(opened, sample_table(1200), name="t", source="test")
        table = tables.change_groups(opened, table, {table.columns[2]: "tagged"})
        tables.declare_all(opened, table)
        opened.attest(table.id)
        yield opened


def protected_plan(store: RunStore, model: str) -> Plan:
    (table,) = store.tables()
    request = RunRequest(
        model=model, epsilon=1.0, settings=dict(QUICK[model]), certificate=0.2, review=0.1,
        score=0.1, **PROTECTED[model],  # type: ignore[arg-type]
    )  # fmt: skip
    return planning.make_plan(table.schema, table.n, request)


@pytest.mark.long
@pytest.mark.parametrize("model", PROTECTED)
def test_kills_of_runs_that_are_certified_and_begin_anew(
    tagged: RunStore, zygote: subprocess.Popen[str], model: str
) -> None:
    workers, plan = Workers(tagged, zygote), protected_plan(tagged, model)
    dice = random.Random(f"tagged {model}")
    names = ["read", plan.phases[0].name, "review", "score", "certificate", "shift", "sample"]
    for kill in [{"phase": name} for name in names] + [
        {"seconds": dice.uniform(0.1, 4.0)} for _ in range(2)
    ]:
        print(kill, check(workers, plan, [kill]))
