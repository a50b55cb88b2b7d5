"""Metrics say what the database holds, by labels that nobody could have written."""

from __future__ import annotations

import errno

import pytest
import torch
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update

from core.models.registry import cards
from core.operations import monitoring
from core.operations.monitoring import FAILURES, metrics_text, phase_label
from core.runs.accounts.account import pay, set_limit
from core.runs.errors import StorageError, failure_kind
from core.runs.events import State
from core.runs.records import TableRecord
from core.runs.storage.database import RunRow
from core.runs.storage.store import RunStore
from tests.runs.workers import queued, toy_plan

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(store: RunStore) -> Samples:
    text = metrics_text(store).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def change(store: RunStore, run_id: str, **values: object) -> None:
    with store.engine.begin() as connection:
        connection.execute(update(RunRow).where(RunRow.id == run_id).values(**values))


def test_states_queue_and_failures(
    store: RunStore,
    table: TableRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = toy_plan(table)
    ids = [queued(store, table, plan).id for _ in range(5)]
    monkeypatch.setattr(monitoring.time, "time", lambda: 1000.0)
    change(store, ids[0], queued=940.0)
    change(store, ids[1], queued=990.0)
    change(store, ids[2], state=State.FAILED, failure="memory")
    change(store, ids[3], state=State.DONE)
    # a worker of another machine that gave no sign of life
    change(store, ids[4], state=State.RUNNING, host="elsewhere", heartbeat=1.0)
    samples = read(store)
    states = {"queued": 2, "failed": 1, "done": 1, "lost": 1, "running": 0, "paused": 0}
    for state, count in states.items():
        assert samples["facsimile_runs", (("state", state),)] == count
    assert samples["facsimile_queue_length", ()] == 2
    assert samples["facsimile_queue_oldest_seconds", ()] == 60.0
    kinds = {kind: samples["facsimile_failed_runs", (("kind", kind),)] for kind in FAILURES}
    assert kinds == dict.fromkeys(FAILURES, 0.0) | {"memory": 1.0}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (KeyError("age"), "unexpected"),
        (torch.OutOfMemoryError(), "memory"),
        (OSError(errno.ENOMEM, ""), "memory"),
        (OSError(errno.ENOSPC, ""), "storage"),
        (StorageError("It is away."), "storage"),
    ],
)
def test_failures_have_kinds(error: Exception, kind: str) -> None:
    assert failure_kind(error) == kind


def test_seconds_by_phase_and_model(store: RunStore, table: TableRecord) -> None:
    plan = toy_plan(table).model_copy(update={"model": "pearl"})
    for seconds in ({"embedding": 0.2, "certificate: Anna": 2.0}, {"embedding": 40.0, "Anna": 1}):
        change(store, queued(store, table, plan).id, state=State.DONE, seconds=seconds)
    change(store, queued(store, table, plan).id, seconds={"embedding": 9.0})  # not ended
    samples = read(store)

    def of(phase: str, **more: str) -> tuple[tuple[str, str], ...]:
        return tuple(sorted({"model": "pearl", "phase": phase, **more}.items()))

    name = "facsimile_phase_seconds"
    assert samples[f"{name}_count", of("embedding")] == 2
    assert samples[f"{name}_sum", of("embedding")] == pytest.approx(40.2)
    bounds = {"0.1": 0, "0.3": 1, "30.0": 1, "60.0": 2, "+Inf": 2}
    assert {b: samples[f"{name}_bucket", of("embedding", le=b)] for b in bounds} == bounds
    assert samples[f"{name}_count", of("certificate")] == 1
    assert samples[f"{name}_count", of("other")] == 1
    assert not [key for key in samples if "Anna" in str(key)]


def test_every_stage_of_a_model_is_a_label_and_no_other_name_is() -> None:
    names = [stage.name for card in cards() for stage in card.stages]
    assert names and [phase_label(name) for name in names] == names
    assert phase_label("certificate: Anna Meier") == "certificate"
    assert phase_label("Anna Meier") == phase_label("") == "other"


def test_accounts_go_by_their_number(
    store: RunStore,
    table: TableRecord,
) -> None:
    set_limit(store, table.id, epsilon=3.0)
    domain, ledger = table.schema.as_proposed().domain(), store.ledger
    for epsilon, key in ((0.5, "a"), (0.25, "b"), (float("inf"), "c")):
        plan = toy_plan(table, epsilon=epsilon)
        account = table.account_id
        pay(ledger, account, plan, key, domain=domain, allow_non_private=True)
    samples, account = read(store), (("account", "1"),)
    assert samples["facsimile_account_epsilon_limit", account] == 3.0
    assert samples["facsimile_account_epsilon_sum", account] == pytest.approx(0.75, abs=0.01)
    assert samples["facsimile_account_releases", account] == 3
    assert samples["facsimile_account_non_private_releases", account] == 1
    assert 0 < samples["facsimile_account_left_ratio", account] < 1
    assert table.account_id not in metrics_text(store).decode()
