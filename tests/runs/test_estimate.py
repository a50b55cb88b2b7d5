"""How long a run may take, judged by earlier ones."""

from __future__ import annotations

import pytest

from core.runs.estimate import expected_seconds
from core.runs.events import State


@pytest.fixture
def planned(plan):
    def make(steps=None, **change):
        settings = {} if steps is None else {"steps": steps}
        return plan.model_copy(update={"settings": settings, **change})

    return make


@pytest.fixture
def ran(store, table):
    def make(plan, seconds, state=State.DONE):
        run = store.create_run(table.id, plan, schema=table.schema, rows=1, seed=None, device="cpu")
        store.record(run.id, seconds=seconds)
        store.set_state(run.id, state)

    return make


def test_training_scales_with_steps_and_the_report_does_not_count(store, table, planned, ran):
    ran(planned(100), {"fingerprint": 2.0, "training": 10.0, "sampling": 1.0, "report": 50.0})
    assert expected_seconds(store, table.id, planned(300)) == pytest.approx(33.0)


def test_nothing_to_judge_by(store, table, planned, ran):
    assert expected_seconds(store, table.id, planned(100)) is None
    ran(planned(100), {"training": 10.0}, State.FAILED)
    ran(planned(100, model="other"), {"training": 10.0})
    ran(planned(), {"training": 10.0})
    assert expected_seconds(store, table.id, planned(100)) is None
    ran(planned(100), {"training": 10.0})
    assert expected_seconds(store, table.id, planned()) is None
    assert expected_seconds(store, "0" * 10, planned(100)) is None


def test_the_newest_run_counts(store, table, planned, ran):
    ran(planned(100), {"training": 10.0})
    ran(planned(100), {"training": 20.0})
    assert expected_seconds(store, table.id, planned(100)) == pytest.approx(20.0)
