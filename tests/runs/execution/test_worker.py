"""What a worker does around the fit; in this process, with a toy model that needs no torch."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from core.models.events import FitPaused
from core.runs.accounts.account import default_limit, set_limit, table_account
from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.execution import worker
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.services import reviews, runs
from tests.runs import toy
from tests.runs.workers import PATIENCE, HereLauncher, queued, releases, start, toy_plan, work

pytestmark = [pytest.mark.usefixtures("here"), pytest.mark.slow]


@pytest.fixture
def launcher(store: RunStore) -> HereLauncher:
    return HereLauncher(store)


def test_without_a_checkpoint_a_new_start_is_a_new_debit(
    store: RunStore, launcher: HereLauncher, table: TableRecord
) -> None:
    run = start(store, launcher, toy_plan(table, fail_at=0))
    assert run.state is State.FAILED
    for path in store.artefacts(run.id).path("checkpoint").iterdir():
        path.unlink()
    with pytest.raises(RunStoreError, match="spends ε 1 again"):
        runs.resume(store, launcher, run.id)
    assert store.run(run.id).state is State.FAILED
    runs.resume(store, launcher, run.id, spend_again=True)
    assert releases(store, table) == 2


def test_a_run_without_privacy_needs_words_and_says_so(
    store: RunStore, launcher: HereLauncher, table: TableRecord
) -> None:
    plan = toy_plan(table, epsilon=float("inf"))
    with pytest.raises(RunStoreError, match="Confirm it in words"):
        start(store, launcher, plan)
    assert store.runs() == []
    run = start(store, launcher, plan, without_privacy="public data")
    assert run.state is State.DONE and not run.private
    paper = reviews.privacy_certificate(store, run.id)
    assert paper is not None
    assert paper["claim"] == paper["relation"] == "no differential privacy"
    assert paper["epsilon_zero_out"] is None


def test_a_schema_that_changes_while_a_run_is_made_is_not_used(
    store: RunStore, launcher: HereLauncher, table: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has confirmed that what another page declares just then may be public."""
    asked = store.attested

    def attested(table_id: str) -> bool:
        answer = asked(table_id)
        wider = table.schema["age"].model_copy(update={"high": 120.0})
        store.save_schema(table_id, table.schema.replace(wider))
        return answer

    monkeypatch.setattr(store, "attested", attested)
    assert start(store, launcher, toy_plan(table)).schema == table.schema
    assert not asked(table.id)


def test_an_absent_device_is_refused_before_anything_is_spent(
    store: RunStore,
    launcher: HereLauncher,
    table: TableRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    run = start(store, launcher, toy_plan(table), device="cuda")
    assert run.state is State.FAILED and run.debit is None and run.resumable
    assert run.error is not None and run.error.startswith("There is no CUDA device here.")
    with pytest.raises(ValidationError, match="auto"):
        start(store, launcher, toy_plan(table), device="tpu")


def test_a_run_beyond_the_limit_spends_nothing(
    store: RunStore, launcher: HereLauncher, table: TableRecord
) -> None:
    assert table_account(store, table.id).limit is None
    account = set_limit(store, table.id, epsilon=0.1)
    assert (account.limit, account.delta) == (0.1, default_limit(table.n)[1])
    run = start(store, launcher, toy_plan(table))
    assert run.state is State.FAILED and run.debit is None
    assert run.error is not None and "Nothing was spent" in run.error
    assert run.message.startswith("Stopped. Nothing was spent on this run.")
    assert releases(store, table) == 0


def no_report(*_: object, **__: object) -> Any:
    raise ZeroDivisionError(toy.SECRET)


def test_a_failing_report_never_costs_the_synthetic_table(
    store: RunStore, table: TableRecord, capfd: pytest.CaptureFixture[str]
) -> None:
    run = work(store, queued(store, table, toy_plan(table)).id, no_report)
    assert run.state is State.DONE and run.error is None
    assert "ZeroDivisionError" in run.message and toy.SECRET not in run.message
    assert toy.SECRET in capfd.readouterr().err
    assert store.has_result(run.id) and not store.artefacts(run.id).exists("report.json")


def test_a_cancelled_report_leaves_a_finished_run(store: RunStore, table: TableRecord) -> None:
    def compare(*_: object, on_progress: Callable[[str, float], None], **__: object) -> Any:
        runs.cancel(store, store.runs()[0].id)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            on_progress("columns", 0.5)
            time.sleep(0.05)
        raise AssertionError("the signal was not followed")

    run = work(store, queued(store, table, toy_plan(table)).id, compare)
    assert run.state is State.DONE and "report was stopped" in run.message
    assert store.has_result(run.id)


def test_a_run_lost_in_its_report_is_finished_without_a_new_fit(
    store: RunStore, launcher: HereLauncher, table: TableRecord
) -> None:
    run = work(store, queued(store, table, toy_plan(table)).id, no_report)
    assert store.set_state(run.id, State.LOST) and store.run(run.id).resumable
    before = store.artefacts(run.id).path("synthetic.parquet").read_bytes()
    launcher.resume(run.id)
    assert store.run(run.id).state is State.DONE
    assert store.artefacts(run.id).path("synthetic.parquet").read_bytes() == before
    assert reviews.report(store, run.id) == {"rows": 5} and releases(store, table) == 1


def test_a_worker_that_lost_its_run_writes_nothing_more(
    store: RunStore, table: TableRecord
) -> None:
    def compare(*_: object, on_progress: Callable[[str, float], None], **__: object) -> Any:
        run = store.runs()[0]
        assert store.set_state(run.id, State.LOST, "taken away")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:  # until the heartbeat notices
            on_progress("columns", 0.5)
            time.sleep(0.05)
        raise AssertionError("the worker did not notice")

    run = work(store, queued(store, table, toy_plan(table)).id, compare)
    assert (run.state, run.message) == (State.LOST, "taken away")


def test_a_run_that_another_process_holds_is_left_alone(
    store: RunStore, table: TableRecord
) -> None:
    run = queued(store, table, toy_plan(table))
    home = str(store.workspace.home)
    assert worker.main([run.id, "--home", home], find=toy.find) == worker.NOT_MINE
    assert store.run(run.id).state is State.QUEUED  # never claimed, so not this process's either


def test_a_run_stopped_before_its_first_release_pays_once(
    store: RunStore, launcher: HereLauncher, table: TableRecord
) -> None:
    """It was debited, the meter counted nothing: the same entry pays for going on."""

    class Impatient(toy.Toy):
        def fit(self, *_: Any, **__: Any) -> toy.ToyFitted:
            raise FitPaused

    run = queued(store, table, toy_plan(table))
    home = str(store.workspace.home)
    assert store.claim(run.id, slots=1)
    worker.main([run.id, "--home", home], find=lambda _id: Impatient())
    paused = store.run(run.id)
    assert paused.state is State.PAUSED and paused.debit is not None and paused.resumable
    launcher.resume(run.id)
    done = store.run(run.id)
    assert done.state is State.DONE and done.debit == paused.debit
    assert releases(store, table) == 1


class Stops(toy.Toy):
    """Pauses with its first checkpoint."""

    def fit(self, table: Any, plan: Any, context: Any) -> toy.ToyFitted:
        table.meter.charge("sum")
        (context.folder / "step.json").write_text('{"step": 0}')
        table.meter.settle()
        raise FitPaused


def test_a_run_does_not_go_on_with_other_rows(store: RunStore, table: TableRecord) -> None:
    """Whoever changes the file between a pause and the rest has other people in one claim."""
    run = queued(store, table, toy_plan(table, steps=4))
    work(store, run.id, find=lambda _: Stops())
    paused = store.run(run.id)
    assert paused.state is State.PAUSED and paused.resumable
    rows = store.table_artefacts(table.id).path("rows.parquet")
    kept = rows.read_bytes()
    frame = store.load_frame(table.id)
    frame.assign(age=frame["age"].to_numpy()[::-1]).to_parquet(rows)
    assert store.set_state(run.id, State.QUEUED)
    refused = work(store, run.id)
    assert refused.state is State.FAILED and "no longer those" in (refused.error or "")
    assert not store.has_result(run.id) and releases(store, table) == 1
    rows.write_bytes(kept)
    assert store.set_state(run.id, State.QUEUED)
    done = work(store, run.id)
    assert done.state is State.DONE and releases(store, table) == 1
