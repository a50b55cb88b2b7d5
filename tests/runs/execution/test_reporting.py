"""Reports of a run: holdout, content cache, the outside report and its paid shares."""

import io
import json
import math
import os

import pandas as pd
import pytest

from core.message import from_json
from core.models.planning import plan_fit
from core.privacy.plan import Budget
from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.execution import reports as reporting
from core.runs.execution import worker
from core.runs.execution.paid_release import ReviewHistograms
from core.runs.execution.reports import content_key
from core.services import reviews
from tests.requests_for import request_for
from tests.runs import toy


class Seen:
    """Stands for the comparison and keeps what it was given."""

    def __init__(self):
        self.calls = []

    def __call__(self, real, synthetic, schema, **more):
        self.calls.append((real, synthetic, more))
        return toy.ToyReport(rows=len(synthetic))


def work(store, run, compare):
    assert store.claim(run.id, slots=1) and store.adopt(run.id, os.getpid())
    command = [run.id, "--home", str(store.workspace.home)]
    status = worker.main(command, find=toy.find, compare=compare, command=toy.COMMAND)
    return status, store.run(run.id)


def queued(store, table, schema, *, review=None, share=0.0):
    schema = schema.model_copy(update={"holdout": share})
    store.save_schema(table.id, schema)
    table = store.table(table.id)
    budget = Budget(epsilon=1.0, delta=1e-6)
    plan = plan_fit(toy.Toy(), schema.domain(), table.training_n, budget)
    if review is not None:
        bought = ReviewHistograms(budget, review).phases(schema.domain(), 1, 1.0)[0]
        plan = plan.model_copy(update={"phases": (*plan.phases, bought)})
    return store.create_run(
        table.id, plan, request_for(plan, rows=25, seed=1, device="cpu"), schema=schema
    )


def test_the_holdout_is_never_trained_on_and_judges_the_result(store, table, schema, frame):
    seen = Seen()
    status, run = work(store, queued(store, table, schema, share=0.25), seen)
    assert status == 0 and run.state is State.DONE and run.plan.n == 30
    ((real, synthetic, more),) = seen.calls
    assert len(real) == 30 and len(more["test"]) == 10 and len(synthetic) == 25
    whole = pd.concat([real, more["test"]]).sort_values("age", ignore_index=True)
    pd.testing.assert_frame_equal(whole, frame, check_dtype=False)
    conditions = json.loads(
        store.artefacts(run.id).path("certificate.json").read_text(), object_hook=from_json
    )["conditions"]
    assert "25% of the records in the file" in conditions[1]


def test_without_a_holdout_all_rows_are_trained_on(store, table, schema):
    seen = Seen()
    _, run = work(store, queued(store, table, schema), seen)
    ((real, _, more),) = seen.calls
    assert len(real) == 40 and "test" not in more and run.plan.n == 40


def test_a_plan_that_ignores_the_holdout_is_refused(store, table, schema):
    plan = plan_fit(toy.Toy(), schema.domain(), 40, Budget(epsilon=1.0, delta=1e-6))
    kept = schema.model_copy(update={"holdout": 0.25})
    with pytest.raises(RunStoreError, match="30 to train on"):
        store.create_run(
            table.id, plan, request_for(plan, rows=5, seed=1, device="cpu"), schema=kept
        )


def test_equal_content_is_measured_once_and_ends_with_its_table(store, table, schema):
    seen = Seen()
    _, run = work(store, queued(store, table, schema), seen)
    heard = []
    reporting.make_reports(store, run, on_progress=lambda *what: heard.append(what), compare=seen)
    assert len(seen.calls) == 1 and heard == [("Measured before", 1.0)]
    assert json.loads(store.artefacts(run.id).path("report.json").read_text()) == {"rows": 25}
    path = store.artefacts(run.id).path("synthetic.parquet")
    pd.read_parquet(path).head(20).to_parquet(path, index=False)
    reporting.make_reports(store, run, on_progress=lambda *_: None, compare=seen)
    assert len(seen.calls) == 2
    folder = store.table_artefacts(table.id).path("reports")
    assert len(list(folder.iterdir())) == 2
    store.delete_table(table.id)
    assert not folder.exists()


def test_a_key_names_bytes_and_facts():
    def key(content, fact):
        return content_key([io.BytesIO(content)], fact)

    assert key(b"1", "x") == key(b"1", "x")
    assert key(b"1", "x") != key(b"1", "y") and key(b"1", "x") != key(b"2", "x")


def test_what_was_bought_is_released_once_and_shown_outside(store, table, schema, frame):
    run = queued(store, table, schema, review=0.5)
    _, done = work(store, run, Seen())
    assert done.state is State.DONE
    overlay = json.loads(store.artefacts(run.id).path(ReviewHistograms.artefact).read_text())
    std = run.plan.phase(ReviewHistograms.name).noise_multiplier * 2**0.5
    assert overlay["noise_std"] == pytest.approx(std) and overlay["n"] == 40
    counts = overlay["counts"]["sex"]
    assert counts != [20, 20] and all(abs(count - 20) < 8 * std for count in counts)
    executed = json.loads(
        store.artefacts(run.id).path("certificate.json").read_text(), object_hook=from_json
    )["phases"]
    assert {p["name"]: p["count"] for p in executed} == {"sum": 1, ReviewHistograms.name: 1}
    outside = reviews.report(store, run.id, "outside")
    assert outside["view"] == "outside" and outside["columns"]["sex"]["real"]
    assert outside["rows_real"] == 40


def test_an_outside_report_without_budget_has_nothing_real(store, table, schema):
    _, done = work(store, queued(store, table, schema), Seen())
    outside = reviews.report(store, done.id, "outside")
    assert all(picture["real"] == [] for picture in outside["columns"].values())
    assert not store.artefacts(done.id).exists(ReviewHistograms.artefact)


def test_a_run_without_privacy_gets_no_outside_report(store, table, schema):
    plan = plan_fit(toy.Toy(), schema.domain(), 40, Budget(epsilon=math.inf, delta=1e-6))
    claim = plan.guarantee.model_copy(update={"epsilon": math.inf, "epsilon_replace": math.inf})
    run = store.create_run(
        table.id,
        plan.model_copy(update={"guarantee": claim}),
        request_for(
            plan.model_copy(update={"guarantee": claim}),
            rows=25,
            seed=1,
            device="cpu",
            without_privacy="not private",
        ),
        schema=schema,
    )
    _, done = work(store, run, Seen())
    assert done.state is State.DONE and not done.private
    assert reviews.report(store, run.id) is not None
    assert reviews.report(store, run.id, "outside") is None


def test_a_charged_release_is_not_made_again_after_a_crash(store, table, schema, monkeypatch):
    """The meter counts the release before it happens; without its file it is lost, not repeated."""
    run = queued(store, table, schema, review=0.5)
    real_release, made = toy.PrivateTable.release, []

    def crashing(self, name, *rest, **more):
        made.append(name)
        real_release(self, name, *rest, **more)
        raise RuntimeError("the machine went down")

    monkeypatch.setattr(toy.PrivateTable, "release", crashing)
    with pytest.raises(RuntimeError):
        work(store, run, Seen())
    monkeypatch.setattr(toy.PrivateTable, "release", real_release)
    assert store.set_state(run.id, State.QUEUED, expect=(State.FAILED,))
    status, done = work(store, store.run(run.id), Seen())
    assert status == 0 and done.state is State.DONE and made == [ReviewHistograms.name]
    assert not store.artefacts(run.id).exists(ReviewHistograms.artefact)
    assert done.guarantee.epsilon > 0
