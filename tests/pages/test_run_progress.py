"""How far a whole run is: never back, and by what its stages took before."""

from __future__ import annotations

import dataclasses

import pytest

from core.models.events import PhaseStarted
from core.runs.events import State
from core.services.estimates.run_progress import whole_progress
from core.services.runs import Progress

TOOK = {"read": 10.0, "training": 70.0, "report": 20.0}


@pytest.fixture
def watched(store, start):
    """A run of a table of which one was done, reading or training as far as is said."""
    before = start()
    store.record(before.id, seconds=TOOK)
    store.set_state(before.id, State.DONE)
    run = start()

    def at(phase: str, fraction: float, elapsed: float):
        for name in TOOK:
            store.journal.append(run.id, PhaseStarted(name=name, title=name, private=False))
            if name == phase:
                break
        bare = dataclasses.replace(run, plan=run.plan.model_copy(update={"phases": ()}))
        now = Progress(phase, phase, 1, 2, fraction, None, None, elapsed)
        return whole_progress(store, bare, now)

    return at


@pytest.mark.parametrize(
    ("phase", "fraction", "whole"), [("read", 0.5, 0.05), ("training", 0.5, 0.45), ("report", 1, 1)]
)
def test_stages_count_by_what_they_took(watched, phase, fraction, whole):
    assert watched(phase, fraction, 60.0)[0] == pytest.approx(whole)


def test_time_left_follows_the_pace_of_this_very_run(watched):
    _, left = watched("training", 0.5, 90.0)
    assert left == pytest.approx(90.0 * 55 / 45)  # twice as slow as the run before


def test_too_early_no_time_is_told(watched):
    assert watched("read", 0.1, 1.0)[1] is None


def test_a_stage_of_many_steps_counts_like_training(store, start):
    run = start()
    decoder = run.plan.phases[0].model_copy(update={"name": "decoder", "count": 4_000})
    plan = run.plan.model_copy(update={"phases": (*run.plan.phases, decoder)})
    for name in ("read", *(phase.name for phase in plan.phases)):
        store.journal.append(run.id, PhaseStarted(name=name, title=name, private=False))
    now = Progress("decoder", "decoder", 1, 2, 0.85, None, None, 100.0)
    assert whole_progress(store, dataclasses.replace(run, plan=plan), now)[0] > 0.5
