"""A run of several attempts, killed at every step of each: it ends, and pays for what it released.

The steps are all files that take their place (before and after), and all that the run tells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.models.events import Emitter, FitEvent, Signal
from core.models.planning import plan_fit
from core.models.saved_model import SavedModel
from core.privacy.mechanisms.additive import Mechanism
from core.privacy.plan import Budget, Plan, Protection
from core.runs.accounts.account import set_limit
from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.execution import attempts, lmdp_certificate
from core.runs.execution.paid_release import Certify
from core.runs.execution.reporter import Reporter
from core.runs.records import RunRecord, TableRecord
from core.runs.storage.store import RunStore
from core.services import reviews, runs
from tests.faults.ledger import paid_for
from tests.runs import toy
from tests.runs.workers import lose, queued, releases, work

pytestmark = [pytest.mark.usefixtures("here"), pytest.mark.slow]
GROUPS = {"ages": ("age",)}


class Killed(BaseException):
    """The process ends here."""


class Kills:
    """Counts steps, and ends the process at one of them.

    Attributes:
      seen: what each step was.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.at: Callable[[str], bool] = lambda step: False

    def step(self, name: str) -> None:
        self.seen.append(name)
        if self.at(name):
            self.at = lambda step: False  # who is dead does nothing more, and dies once
            raise Killed(name)

    def nth(self, number: int) -> None:
        self.seen, self.at = [], lambda step: len(self.seen) == number


class TwoPart(toy.Toy):
    """Releases once, then a checkpoint; a model of two files that belong together."""

    def fit(self, table, plan, context):
        checkpoint = context.folder / "step.json"
        Emitter(context.on_event).phase("fit", "Fitting")
        if not (context.resume and checkpoint.exists()):
            table.meter.charge("sum")  # from here to the checkpoint a crash loses the release
            half = checkpoint.with_suffix(".half")
            half.write_text(json.dumps({"attempt": str(context.folder)}))
            half.replace(checkpoint)
        return TwoPartFitted(table.domain, context.folder.name)


class TwoPartFitted(toy.ToyFitted):
    def __init__(self, domain, attempt: str) -> None:
        super().__init__(domain)
        self.attempt = attempt

    def save(self, folder: Path) -> None:
        for name in ("a", "b"):
            half = folder / f".{name}.half"
            half.write_text(json.dumps([self.attempt, self.domain.model_dump_json()]))
            half.replace(folder / f"{name}.json")


def load(_model: str, folder: Path) -> SavedModel:
    (attempt, domain), other = (json.loads((folder / f"{n}.json").read_text()) for n in "ab")
    assert attempt == other[0], "half of one model and half of another"
    return SavedModel.load(folder, TwoPartFitted(toy.Domain.model_validate_json(domain), attempt))


def plan_of(table: TableRecord, made: int) -> Plan:
    protection = Protection(groups=GROUPS, shift=0.0, certificate=0.2)
    budget = Budget(epsilon=4.0, delta=1e-6)
    added = Certify(protection, budget).phases(table.schema.as_proposed().domain(), table.n, 1.0)
    plan = plan_fit(
        TwoPart(),
        table.schema.as_proposed().domain(),
        table.n,
        budget,
        {},
        added=added,
        attempts=made,
    )
    return plan.model_copy(update={"protection": protection})


class NoCount(Mechanism):
    """Counts nothing of anybody, so that the noise alone is compared with the threshold."""

    noise, sensitivity, group_size = "laplace", 1.0, 1

    def statistic(self, rows, mask):
        return mask.double().sum().reshape(1) * 0.0


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Certificates by hand: whether the next is granted; refused when nothing more is said."""
    answers: list[bool] = []
    monkeypatch.setattr(lmdp_certificate, "NEEDED", 64)
    monkeypatch.setattr(lmdp_certificate.GroupTest, "calibrate", lambda *_a, **_k: None)
    monkeypatch.setattr(lmdp_certificate, "RejectionCount", lambda _test: NoCount())
    monkeypatch.setattr(
        lmdp_certificate,
        "threshold",
        lambda *_a, **_k: -1e9 if answers and answers.pop(0) else 1e9,
    )
    monkeypatch.setattr(attempts, "load_fitted", load)
    return answers


@pytest.fixture
def kills(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kills]:
    """Every file that takes its place, and every word to the reporter, is a step."""
    kills, replace, report = Kills(), Path.replace, Reporter.__call__

    def replaced(self: Path, target: Path) -> Path:
        place = f"{Path(target).parent.name}/{Path(target).name}"
        kills.step(f"before {place}")
        made = replace(self, target)
        kills.step(f"after {place}")
        return made

    def told(self: Reporter, event: FitEvent) -> Signal:
        kills.step(f"{event.kind} {event.data.get('name', '')}")
        return report(self, event)

    monkeypatch.setattr(Path, "replace", replaced)
    monkeypatch.setattr(Reporter, "__call__", told)
    return kills


def go_on(store: RunStore, run: RunRecord) -> RunRecord:
    """What a person does with a run whose worker is gone, until it ends; three times at most."""
    for _ in range(3):
        if not run.state.live and run.state is not State.LOST and run.state is not State.FAILED:
            return run
        assert run.error is None or "unexpected" not in run.error
        again = not run.resumable
        runs.resume(store, Queue(), run.id, spend_again=again)  # type: ignore[arg-type]
        store.set_state(run.id, State.QUEUED)
        run = work(store, run.id, find=lambda _id: TwoPart())
    raise AssertionError(f"still {run.state}: {run.error}")


class Queue:
    """Starts nothing."""

    def resume(self, run_id: str) -> None: ...


def killed(store: RunStore, table: TableRecord, plan: Plan, *, words: str = "") -> RunRecord:
    """A run that dies where `Kills` says, as it is found afterwards."""
    run = queued(store, table, plan, shift_words=words)
    with pytest.raises(Killed):
        work(store, run.id, find=lambda _id: TwoPart())
        raise Killed  # past its last step: a report that is kept already is not made again
    if store.run(run.id).state is State.DONE:
        return store.run(run.id)
    lose(store, run.id)
    return store.run(run.id)


def steps(store: RunStore, table: TableRecord, plan: Plan, kills: Kills) -> list[str]:
    kills.nth(-1)
    assert (
        work(store, queued(store, table, plan).id, find=lambda _id: TwoPart()).state is State.DONE
    )
    return list(kills.seen)


def test_dying_between_the_second_release_and_its_checkpoint(store, table, refused, kills):
    """The release is charged and lost: the attempt counts as made, and the third begins."""
    kills.at = lambda step: step == "before attempt-2/step.json"
    run = killed(store, table, plan_of(table, 3))
    assert run.resumable
    done = go_on(store, run)
    assert done.debit == run.debit and releases(store, table) == 1
    paper = reviews.privacy_certificate(store, run.id)
    assert paper is not None and paper["lmdp"]["attempts_made"] == 3
    counts = {phase["name"]: phase["count"] for phase in paper["phases"]}
    assert counts == {"sum": 3, "certificate: ages": 2}, "the lost release is counted, not redone"
    assert load("", store.artefacts(run.id).path("model")).base.attempt == "attempt-3"
    notes = [e.data["text"] for e in store.journal.events(run.id, kind="note")]
    assert any("Attempt 2 lost a release" in note for note in notes)


def test_dying_there_in_the_last_attempt_keeps_the_one_before(store, table, refused, kills):
    kills.at = lambda step: step == "before attempt-2/step.json"
    run = killed(store, table, plan_of(table, 2))
    done = go_on(store, run)
    assert done.state is State.DONE and releases(store, table) == 1
    paper = reviews.privacy_certificate(store, run.id)
    assert paper is not None and paper["lmdp"]["granted"] is False
    assert load("", store.artefacts(run.id).path("model")).base.attempt == "checkpoint"


def test_a_crash_in_the_first_attempt_restarts_at_a_stated_price(store, table, refused, kills):
    kills.at = lambda step: step == "before checkpoint/step.json"
    run = killed(store, table, plan_of(table, 2))
    assert not run.resumable and "spends its budget again" in run.message
    with pytest.raises(RunStoreError, match="spends ε 4 again"):
        runs.resume(store, Queue(), run.id)
    assert go_on(store, run).state is State.DONE
    assert releases(store, table) == 2


def test_a_certificate_that_was_lost_grants_nothing(store, table, refused, kills):
    refused += [True, True]
    kills.at = lambda step: step == "before checkpoint/verdict.json"
    run = killed(store, table, plan_of(table, 1))
    assert go_on(store, run).state is State.DONE
    paper = reviews.privacy_certificate(store, run.id)
    (verdict,) = paper["lmdp"]["verdicts"]
    assert verdict["granted"] is False and "lost" in verdict["test"] and "count" not in verdict
    assert {p["name"]: p["count"] for p in paper["phases"]} == {"sum": 1, "certificate: ages": 1}


def test_a_verdict_keeps_its_template_over_a_crash(store, table, refused, kills):
    refused += [True, True]
    kills.at = lambda step: step == "after checkpoint/verdict.json"
    assert go_on(store, killed(store, table, plan_of(table, 1))).state is State.DONE
    (verdict,) = reviews.privacy_certificate(store, store.runs()[0].id)["lmdp"]["verdicts"]
    assert "count" in verdict and "{group}" in verdict["test"].template


def test_a_fault_of_a_model_is_not_taken_for_a_crash(store, table, refused):
    class Greedy(TwoPart):
        def fit(self, table, plan, context):
            table.meter.charge("sum")
            return super().fit(table, plan, context)

    run = work_failing(store, table, Greedy())
    assert run.state is State.FAILED and "UnplannedReleaseError" in str(run.error)


def work_failing(store: RunStore, table: TableRecord, model: toy.Toy) -> RunRecord:
    run = queued(store, table, plan_of(table, 2))
    with pytest.raises(RuntimeError):
        work(store, run.id, find=lambda _id: model)
    return store.run(run.id)


def check_kills(store, table, kills, numbers) -> None:
    set_limit(store, table.id, epsilon=100.0)
    plan = plan_of(table, 2)
    names = steps(store, table, plan, kills)
    assert len([name for name in names if "attempt-2" in name]) >= 8
    for number in numbers(len(names)):
        kills.nth(number)
        run = killed(store, table, plan, words="several runs of a test")
        done = go_on(store, run)
        assert done.state is State.DONE, names[number - 1]
        load("", store.artefacts(run.id).path("model"))
        paid_for(store, done, starts=done.attempt)


def test_killed_at_steps_of_every_kind(store, table, refused, kills):
    check_kills(store, table, kills, lambda n: range(3, n, 7))


@pytest.mark.long
def test_killed_at_every_step(store, table, refused, kills):
    check_kills(store, table, kills, lambda n: range(1, n + 1))
