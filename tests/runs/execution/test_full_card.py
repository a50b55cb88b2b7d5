"""A graphics card that runs out of memory in mid-run: a word, the processor, one debit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from core.language.catalogue import language
from core.models.pearl.matching import EmbeddingMatcher
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.steps.training.phases import CRITIC
from core.privacy.dpsgd.gradient import SampledRelease
from core.privacy.plan import Budget
from core.runs.events import State
from core.runs.execution import worker
from core.runs.records import RunRecord, TableRecord
from core.runs.storage.store import RunStore
from tests.contract.fits import QUICK
from tests.models.card import Card
from tests.runs.workers import queued, releases, work

pytestmark = [pytest.mark.usefixtures("here"), pytest.mark.slow]
WORD = "too little free memory for this run. It goes on with the processor"


@pytest.fixture(autouse=True)
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker finds a card."""
    monkeypatch.setattr(worker, "choose_device", lambda asked: "cuda")


def start(store: RunStore, table: TableRecord, model: str) -> RunRecord:
    settings, budget = dict(QUICK[model]), Budget(epsilon=1.0, delta=1e-6)
    plan = plan_fit(
        synthesizer(model), table.schema.as_proposed().domain(), table.n, budget, settings
    )
    run = queued(store, table, plan)
    with Card():
        return work(store, run.id, find=synthesizer)


def notes(store: RunStore, run: RunRecord) -> list[str]:
    return [event.data["text"] for event in store.journal.events(run.id, kind="note")]


def falls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, at: int) -> list[int]:
    """Let memory run out once, at a call of a method; gives the numbers of all calls."""
    real, calls = getattr(owner, name), list[int]()

    def crowded(self: Any, *arguments: Any) -> Any:
        calls.append(len(calls) + 1)
        if len(calls) == at:
            raise torch.OutOfMemoryError("CUDA out of memory (simulated)")
        return real(self, *arguments)

    monkeypatch.setattr(owner, name, crowded)
    return calls


def test_free_training_goes_on_from_its_checkpoint(
    store: RunStore, table: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = falls(monkeypatch, EmbeddingMatcher, "step", at=20)
    run = start(store, table, "pearl")
    assert run.state is State.DONE, run.error
    (note,) = notes(store, run)
    assert WORD in note and "Nothing is spent twice" in note
    assert "Grafikkarte" in language("de").render(note)
    assert releases(store, table) == 1 and run.attempt == 1
    assert len(calls) >= 40
    phases = [event.data["name"] for event in store.journal.events(run.id, kind="phase")]
    assert phases.count("embedding") == 1 and phases.count("training") == 2


def test_lost_private_steps_stay_counted_and_are_not_repeated(
    store: RunStore, table: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = falls(monkeypatch, SampledRelease, "_sum", at=15)
    run = start(store, table, "dp_gan")
    assert run.state is State.DONE, run.error
    assert len(notes(store, run)) == 1 and releases(store, table) == 1
    planned = run.plan.phase(CRITIC).count
    assert len(calls) == planned, "the step that failed was charged, and is not made again"
    assert run.guarantee is not None
    assert run.guarantee.epsilon == pytest.approx(run.plan.guarantee.epsilon, rel=1e-6)


def test_a_processor_that_runs_out_fails_as_before(
    store: RunStore, table: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "choose_device", lambda asked: "cpu")
    falls(monkeypatch, EmbeddingMatcher, "step", at=20)
    with pytest.raises(torch.OutOfMemoryError):
        start(store, table, "pearl")
    (run,) = store.runs()
    assert run.state is State.FAILED and "OutOfMemoryError" in (run.error or "")
    assert notes(store, run) == [] and run.resumable
