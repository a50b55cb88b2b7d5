"""Tagged columns in a run: what the plan holds, what is released, and what may be said of it."""

import json
import math
import re
import stat
from pathlib import Path

import pandas as pd
import pytest

from core.models.events import FitEvent, Signal
from core.models.planning import hiding
from core.models.registry import cards, load_fitted
from core.privacy.accounting.accountant import epsilon, guarantee
from core.privacy.plan import Budget, Plan, Protection, certificate_phase, repeated
from core.proposing.propose import infer_schema
from core.runs.errors import RunStoreError
from core.runs.execution import lmdp_certificate
from core.runs.execution.job import Job
from core.runs.execution.pipeline import execute
from core.runs.execution.training_rows import FrameRows
from core.runs.request import RunRequest
from core.runs.storage.artefacts import LocalArtefacts
from core.runs.storage.store import RunStore
from core.runs.storage.workspace_secrets import shift_key
from core.runs.workspace import Workspace
from core.schema.schema import Schema
from core.services import planning
from core.services.sample_tables import sample_table
from tests.requests_for import request_for

pytestmark = pytest.mark.slow

N = 1500
QUICK = {"steps": 40, "frequencies": 200, "batch": 64, "hidden": 16}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return sample_table(N)


@pytest.fixture(scope="module")
def tagged(rows: pd.DataFrame) -> Schema:
    schema = infer_schema(rows)
    return schema.model_copy(update={"sensitive": {"ages": ("age",), "stay": ("ward",)}})


def planned(schema: Schema, epsilon: float = 1.0, **more) -> Plan:
    return planning.make_plan(
        schema,
        N,
        RunRequest(model="pearl", epsilon=epsilon, settings=dict(QUICK), **more),
    )


def unshifted(plan: Plan) -> Plan:
    """The plan without its shift, which costs most of a short run; nobody may plan it so."""
    assert plan.protection is not None
    without = plan.protection.model_copy(update={"shift": 0.0})
    return plan.model_copy(update={"protection": without})


class Heard:
    """An observer that keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[FitEvent] = []

    def __call__(self, event: FitEvent) -> Signal:
        self.events.append(event)
        return Signal.GO_ON


def run(rows, schema, plan, folder: Path, *, resume=False, on_event=None):
    (folder / "run").mkdir(exist_ok=True)
    with RunStore(Workspace(folder / "home")) as store:
        job = Job(
            table="t",
            plan=plan,
            request=request_for(plan, rows=N, seed=1, without_privacy="confirmed"),
            schema=schema,
            device="cpu",
            artefacts=LocalArtefacts(folder / "run"),
            account_id="p",
            debit_key="k",
            resume=resume,
        )
        outcome = execute(job, FrameRows(rows), store=store, on_event=on_event or Heard())
        paid = [e for e in store.ledger.entries("p") if e.kind == "release"]
        return outcome, paid[-1]


def test_certificates_are_phases_that_the_budget_pays_for(tagged):
    free, paid = planned(tagged), planned(tagged, certificate=0.1)
    names = [phase.name for phase in paid.phases]
    assert names[-2:] == [certificate_phase("ages"), certificate_phase("stay")]
    assert paid.guarantee.epsilon <= 1.0
    assert paid.guarantee.epsilon > 0.97
    assert paid.guarantee.epsilon == guarantee(paid.phases, paid.budget.delta).epsilon
    assert paid.phases[0].noise_multiplier > free.phases[0].noise_multiplier
    assert [p.noise_multiplier for p in paid.phases[-2:]] == [10.0, 10.0]
    assert sum(phase.share for phase in paid.phases) == pytest.approx(1.0)


def test_attempts_are_all_paid_for_beforehand(tagged):
    once, thrice = planned(tagged, certificate=0.1), planned(tagged, certificate=0.1, attempts=3)
    assert thrice.charged == repeated(thrice.phases, 3)
    assert thrice.guarantee.epsilon <= 1.0
    assert thrice.guarantee.epsilon == epsilon(thrice.charged, thrice.budget.delta)[0]
    assert thrice.phases[0].noise_multiplier > once.phases[0].noise_multiplier
    # one attempt alone costs less than what is claimed
    assert epsilon(thrice.phases, thrice.budget.delta)[0] < 0.8


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"attempts": 2}, "would reveal what the check saw"),
        ({"certificate": 0.6}, "No amount of noise"),
        ({"shift": 1.5}, "shift"),
        ({"shift": 0.0}, "hides nothing"),
        ({"shift": 0.05}, "hides nothing"),
        ({"alpha": 0.7}, "alpha"),
    ],
)
def test_what_would_leak_or_cannot_be_had_is_refused(tagged, more, words):
    with pytest.raises(ValueError, match=words):
        planned(tagged, **more)


def test_only_a_model_that_hides_by_itself_does_without_a_shift(tagged):
    for model in ("ppem", *(card.id for card in cards() if not card.protects)):
        ask = RunRequest(model=model, epsilon=1.0, shift=0.0)
        if model == "ppem":
            plan = planning.make_plan(tagged, N, ask)
            assert plan.protection.shift == 0.0 and hiding(plan) == "trained"
            continue
        with pytest.raises(ValueError, match="hides nothing.*PPEM"):
            planning.make_plan(tagged, N, ask)


@pytest.mark.parametrize("bought", ["review", "score"])
def test_counts_of_real_rows_need_a_shift_that_covers_them(tagged, bought):
    ask = RunRequest(model="ppem", epsilon=1.0, shift=0.0, **{bought: 0.1})
    with pytest.raises(ValueError, match="no shift covers them"):
        planning.make_plan(tagged, N, ask)


def test_a_certificate_needs_tags_and_enough_rows(rows, tagged):
    plain = tagged.model_copy(update={"sensitive": {}})
    with pytest.raises(ValueError, match="none is tagged"):
        planned(plain, certificate=0.1)
    with pytest.raises(ValueError, match="needs 128 records"):
        planning.make_plan(
            tagged,
            100,
            RunRequest(model="pearl", epsilon=1.0, settings=dict(QUICK), certificate=0.1),
        )


def test_a_private_run_shifts_and_certifies_what_it_releases(rows, tagged, tmp_path):
    plan = planned(tagged, epsilon=2.0, certificate=0.5, shift=0.95)
    heard = Heard()
    outcome, entry = run(rows, tagged, plan, tmp_path, on_event=heard)
    assert outcome.executed == plan.phases
    assert outcome.guarantee.epsilon == plan.guarantee.epsilon
    lmdp = outcome.privacy_certificate["lmdp"]
    assert "does not protect individuals" in lmdp["statement"]
    assert [v["group"] for v in lmdp["verdicts"]] == ["ages", "stay"]
    said = " ".join(lmdp["attack"])
    assert "expectation maximisation" in said and "in the same way as the table" in said
    for name in ("age", "ward"):
        assert re.search(rf"at least \d+% of the shift of {name} can be undone", said)
    for verdict in lmdp["verdicts"]:
        assert verdict["granted"] is (verdict["count"] > verdict["threshold"])
        assert not any(key.startswith("p_") for key in verdict)  # no p-value leaves a private fit
    titles = [e.data["title"] for e in heard.events if e.kind == "phase"]
    assert "Shifting the tagged columns" in titles
    assert "Testing the tagged columns, with noise" in titles
    # the saved model draws shifted rows too
    again = load_fitted("pearl", tmp_path / "run" / "model").sample(N, seed=1)
    pd.testing.assert_frame_equal(again, outcome.tables.synthetic)
    assert entry.epsilon == pytest.approx(plan.guarantee.epsilon)


def test_a_run_without_certificate_is_silent_on_real_columns(rows, tagged, tmp_path):
    plan = unshifted(planned(tagged))  # the shift is tested above
    outcome, _ = run(rows, tagged, plan, tmp_path)
    lmdp = outcome.privacy_certificate["lmdp"]
    assert lmdp["verdicts"] == [] and lmdp["granted"] is None
    assert lmdp["hiding"] == "none" and "Nothing was done to hide" in lmdp["statement"]
    assert lmdp["attack"] == []
    assert outcome.executed == plan.phases


def test_without_privacy_the_check_is_direct_and_may_say_no(rows, tagged, tmp_path):
    plan = unshifted(planned(tagged, epsilon=math.inf))
    outcome, _ = run(rows, tagged, plan, tmp_path)
    verdicts = outcome.privacy_certificate["lmdp"]["verdicts"]
    assert {v["kind"] for v in verdicts} == {"inside check"}
    assert all(0 < v["p_two_sample"] <= 1 for v in verdicts)


def refuse(monkeypatch, until):
    """Certificates that are refused until that attempt.

    Their tests need no exact limits then, and the models no shift: both cost most of a run.
    """
    honest, seen = lmdp_certificate.certify, []
    monkeypatch.setattr(lmdp_certificate, "NEEDED", 1024)
    monkeypatch.setattr("core.lmdp.certificate._CALIBRATION", 100)

    def certify(table, fitted, plan, *, on_event):
        seen.append(1)
        verdicts = honest(table, fitted, plan, on_event=on_event)
        return [v | {"granted": len(seen) >= until} for v in verdicts]

    monkeypatch.setattr(lmdp_certificate, "certify", certify)
    return seen


@pytest.mark.parametrize(("until", "made", "granted"), [(2, 2, True), (9, 3, False)])
def test_attempts_end_when_one_passes_and_the_claim_covers_all(
    rows, tagged, tmp_path, monkeypatch, until, made, granted
):
    seen = refuse(monkeypatch, until)
    plan = unshifted(planned(tagged, epsilon=4.0, certificate=0.1, attempts=3))
    heard = Heard()
    outcome, entry = run(rows, tagged, plan, tmp_path, on_event=heard)
    assert len(seen) == made
    assert outcome.executed == repeated(plan.phases, made)
    assert outcome.guarantee.epsilon == plan.guarantee.epsilon  # however many were needed
    assert outcome.privacy_certificate["lmdp"]["granted"] is granted
    assert outcome.privacy_certificate["lmdp"]["attempts_made"] == made
    assert entry.epsilon == pytest.approx(plan.guarantee.epsilon)
    assert sum("Beginning anew" in str(e.data) for e in heard.events) == made - 1


def test_a_run_whose_function_is_lost_spends_nothing(rows, tagged, tmp_path, monkeypatch):
    monkeypatch.setattr("core.lmdp.shift._TRIALS", 30)
    plan = planned(tagged, review=0.1, score=0.1)
    run(rows, tagged, plan, tmp_path)
    for counts in ("overlay.json", "cells.json"):
        assert json.loads((tmp_path / "run" / counts).read_text())["shifted"] is True
    (file,) = (tmp_path / "home" / "shifts").iterdir()
    file.unlink()
    with RunStore(Workspace(tmp_path / "home")) as store:
        before = len(store.ledger.entries("p"))
        job = Job(
            table="t",
            plan=plan,
            request=request_for(plan, rows=N, seed=1),
            schema=tagged,
            device="cpu",
            artefacts=LocalArtefacts(tmp_path / "run"),
            account_id="p",
            debit_key="second",
        )
        with pytest.raises(RunStoreError, match="is gone.*Nothing was read or spent"):
            execute(job, FrameRows(rows), store=store, on_event=Heard())
        assert len(store.ledger.entries("p")) == before


class Killed(BaseException):
    """The process ends here."""


def test_a_crash_in_the_second_attempt_goes_on_with_it(rows, tagged, tmp_path, monkeypatch):
    refuse(monkeypatch, 2)
    plan = unshifted(planned(tagged, epsilon=4.0, certificate=0.1, attempts=2))

    class Deadly(Heard):
        def __call__(self, event):
            super().__call__(event)
            begun = sum("Beginning anew" in str(e.data) for e in self.events)
            if begun and event.data.get("name") == "training":
                raise Killed
            return Signal.GO_ON

    with pytest.raises(Killed):
        run(rows, tagged, plan, tmp_path, on_event=Deadly())
    verdict = json.loads((tmp_path / "run" / "checkpoint" / "verdict.json").read_text())
    assert not verdict[0]["granted"]
    heard = Heard()
    outcome, _ = run(rows, tagged, plan, tmp_path, resume=True, on_event=heard)
    assert outcome.executed == repeated(plan.phases, 2)  # nothing twice, nothing left out
    assert outcome.privacy_certificate["lmdp"]["attempts_made"] == 2


def test_one_secret_a_table_that_only_its_owner_can_read(tmp_path):
    home = Workspace(tmp_path / "home")
    one, again, other = (shift_key(home, account_id) for account_id in ("a", "a", "b"))
    assert one == again != other
    assert len(one) == 32
    assert stat.S_IMODE((home.home / "shift.key").stat().st_mode) == 0o600
    assert shift_key(Workspace(tmp_path / "elsewhere"), "a") != one


def test_protection_is_part_of_the_plan_and_survives_json(tagged):
    plan = planned(tagged, certificate=0.1)
    again = Plan.model_validate_json(plan.model_dump_json())
    assert again == plan and again.digest == plan.digest
    assert isinstance(again.protection, Protection)
    assert plan.budget == Budget.model_validate_json(plan.budget.model_dump_json())
