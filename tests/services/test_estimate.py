"""How long a run may take, judged by earlier ones."""

from __future__ import annotations

import pytest

from core.runs.events import State
from core.services.runs import expected_seconds
from tests.requests_for import request_for


@pytest.fixture
def planned(plan):
    def make(steps=None, **change):
        settings = {} if steps is None else {"steps": steps}
        return plan.model_copy(update={"settings": settings, **change})

    return make


@pytest.fixture
def ran(store, table):
    def make(plan, seconds, state=State.DONE):
        run = store.create_run(
            table.id, plan, request_for(plan, rows=1, device="cpu"), schema=table.schema
        )
        store.record(run.id, seconds=seconds)
        store.set_state(run.id, state)

    return make


def test_training_time_scales_with_steps_without_the_report(store, table, planned, ran):
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


def test_private_phases_scale_with_their_runs_and_batches(store, table, planned, ran):
    def private(count, rate):
        phase = planned().phases[0].model_copy(update={"count": count, "sampling_rate": rate})
        return planned(5).model_copy(update={"phases": (phase,)})

    ran(private(100, 0.1), {"sum": 10.0, "sample": 1.0})
    assert expected_seconds(store, table.id, private(300, 0.1)) == pytest.approx(31.0)
    assert expected_seconds(store, table.id, private(100, 0.2)) == pytest.approx(21.0)


def test_a_plan_with_other_phases_is_no_guide(store, table, planned, ran):
    ran(planned(100), {"sum": 10.0})
    other = planned(100).phases[0].model_copy(update={"name": "else"})
    assert expected_seconds(store, table.id, planned(100, phases=(other,))) is None
