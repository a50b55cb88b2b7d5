"""Certificates say what Opacus's accountants make of a run, which outlives their failing."""

from __future__ import annotations

import json

import pytest

from core.message import from_json
from core.models.planning import plan_fit
from core.privacy.accounting import second_opinion as module
from core.privacy.plan import Budget
from core.runs.execution.job import Job
from core.runs.execution.opinion import opinion_of_opacus
from core.runs.execution.pipeline import Outcome, execute
from core.runs.execution.training_rows import FrameRows
from core.runs.storage.artefacts import PRIVACY_CERTIFICATE, LocalArtefacts
from core.schema.column import Learned
from tests.privacy.toys import phase
from tests.requests_for import request_for
from tests.runs import toy
from tests.runs.conftest import ROWS

pytestmark = pytest.mark.slow


def run(store, schema, frame, tmp_path, epsilon=1.0, **budget) -> Outcome:
    plan = plan_fit(toy.Toy(), schema.domain(), ROWS, Budget(epsilon=epsilon, delta=1e-6))
    (tmp_path / "run").mkdir()
    job = Job(
        table="t",
        plan=plan.model_copy(update=budget),
        request=request_for(
            plan.model_copy(update=budget), rows=5, seed=1, without_privacy="confirmed"
        ),
        schema=schema,
        device="cpu",
        artefacts=LocalArtefacts(tmp_path / "run"),
        account_id="p1",
        debit_key="k",
    )
    rows = FrameRows(frame)
    done = execute(job, rows, store=store, on_event=lambda _: 0, find=lambda _: toy.Toy())
    with job.artefacts.open(PRIVACY_CERTIFICATE) as file:
        assert (
            json.load(file, object_hook=from_json) == done.privacy_certificate
        )  # no NaN, no infinity
    return done


def test_a_certificate_holds_both_figures(store, table, schema, frame, tmp_path):
    done = run(store, schema, frame, tmp_path)
    opinion = done.privacy_certificate["second_opinion"]
    together = opinion["together"]
    assert opinion["agrees"] is True and opinion["not_covered"] == {}
    assert together["epsilon"] == pytest.approx(1.0, abs=1e-6)
    assert 0.98 < together["opacus_lowest"] < 1.0 < together["opacus_highest"] < 1.02
    assert opinion["accountants"].startswith("RDP and PRV of Opacus")
    assert "For 1 of 1 phases" in opinion["statement"]
    assert not any("Opacus" in said for said in done.guarantee.conditions)


def test_a_disagreement_is_a_condition_and_lowers_no_claim(
    store, table, schema, frame, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "epsilon", lambda phases, delta, rows: (0.5, "half of it"))
    done = run(store, schema, frame, tmp_path)
    opinion = done.privacy_certificate["second_opinion"]
    assert opinion["agrees"] is False
    assert "sum: 0.5 here, between 0.9" in opinion["statement"]
    assert "Do not rely on ε" in opinion["statement"]
    assert opinion["statement"] in done.guarantee.conditions
    assert opinion["statement"] in done.privacy_certificate["conditions"]
    assert done.guarantee.epsilon == pytest.approx(1.0, abs=1e-6)


def test_a_run_outlives_accountants_that_fail(store, table, schema, frame, tmp_path, monkeypatch):
    def failing(*args: object) -> float:
        raise OverflowError

    monkeypatch.setattr(module, "_rdp", failing)
    module._of_opacus.cache_clear()
    done = run(store, schema, frame, tmp_path)
    opinion = done.privacy_certificate["second_opinion"]
    assert opinion["agrees"] is None and "failed (OverflowError)" in opinion["statement"]
    assert done.guarantee.epsilon == pytest.approx(1.0, abs=1e-6)


def test_all_declared_attempts_are_compared(store, table, schema, frame, tmp_path):
    done = run(store, schema, frame, tmp_path, epsilon=0.5, attempts=4)
    together = done.privacy_certificate["second_opinion"]["together"]
    assert together["epsilon"] == pytest.approx(1.04, abs=0.02)  # about √4 times that of one


def test_a_run_without_privacy_has_no_second_opinion(store, table, schema, frame, tmp_path):
    done = run(store, schema, frame, tmp_path, epsilon=float("inf"))
    assert "second_opinion" not in done.privacy_certificate


def test_what_opacus_cannot_express_is_named():
    earlier = Learned(domain="", entry="3-ab", epsilon=0.1, epsilon_replace=0.2, delta=1e-7)
    zcdp = phase("boost", 0.0, mechanism="zcdp", rho=1e-4)
    found = opinion_of_opacus((phase("sum", 5.0), zcdp), 1e-6, earlier=(earlier,))
    assert found["not_covered"].keys() == {"boost", "ledger entry 3-ab"} and found["agrees"]
    assert "For 1 of 2 phases" in found["statement"]
    alone = opinion_of_opacus((zcdp,), 1e-6)
    assert alone["agrees"] is None and "do not cover any phase" in alone["statement"]
