import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from core.privacy.plan import Budget, Guarantee, Phase, Plan
from core.reading.raw_cells import raw_frame
from core.runs.accounts.people import choose_account
from core.runs.events import State
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.column import Column, Kind
from core.schema.schema import Schema
from tests.runs import toy
from tests.runs.workers import until

ROWS = 40


@pytest.fixture
def store(tmp_path: Path, database: str) -> Iterator[RunStore]:
    with RunStore(Workspace(tmp_path / "home")) as opened:
        yield opened


@pytest.fixture
def schema() -> Schema:
    return Schema(
        columns=(
            Column(name="age", kind=Kind.INTEGER, low=0, high=99, step=1, dtype="int64"),
            Column(name="sex", kind=Kind.CATEGORY, categories=("f", "m"), dtype="str"),
        )
    )


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"age": range(ROWS), "sex": ["f", "m"] * (ROWS // 2)})


@pytest.fixture
def table(store: RunStore, schema: Schema, frame: pd.DataFrame) -> TableRecord:
    made = store.add_table(
        raw_frame(frame),
        name="people",
        schema=schema,
        profile={"n": ROWS},
        source="test",
        account_id="p1",
    )
    store.attest(made.id)
    return made


@pytest.fixture
def compared_table(store: RunStore, table: TableRecord, frame: pd.DataFrame) -> TableRecord:
    """The table with what its people are recognised by, as an import keeps it."""
    choose_account(store, frame, title=table.name, table_id=table.id, account_id=table.account_id)
    return table


@pytest.fixture
def plan() -> Plan:
    phase = Phase(name="sum", title="Sum", what="A noisy sum.", share=1.0, noise_multiplier=5.0)
    return Plan(
        model="toy",
        n=ROWS,
        budget=Budget(epsilon=1.0, delta=1e-6),
        phases=(phase,),
        guarantee=Guarantee(epsilon=1.0, epsilon_replace=2.0, delta=1e-6),
    )


@pytest.fixture
def launcher(store: RunStore) -> Iterator[LocalLauncher]:
    """Starts real workers, and ends those that a test leaves behind."""
    yield LocalLauncher(store, command=toy.COMMAND)
    for run in store.runs():
        if run.state is State.RUNNING and run.pid is not None:
            os.kill(run.pid, signal.SIGKILL)
            until(lambda run_id=run.id: store.run(run_id).state is State.LOST)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep what a worker does to its process from this one."""
    before = os.umask(0o077)
    monkeypatch.setattr("core.runs.execution.worker.ignore_hangup", lambda: None)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield
    os.umask(before)
