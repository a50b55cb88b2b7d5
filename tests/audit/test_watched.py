"""A watched table releases what a private table releases: charged, noised, and repeated in step."""

import numpy as np
import pytest
import torch

from core.audit.watched_table import FixedReleases, WatchedTable, altered, each_alone, together
from core.privacy.meter import UnplannedReleaseError
from tests.privacy import toys

N = 30
ROWS = toys.random_table(N, 4)


def watched(watch, *, repeats=1, noise=1.0, present=None, fixed=None, rows=ROWS):
    plan = altered(toys.plan(N, [toys.phase()]), repeats=repeats, noise=noise)
    present = np.ones(N, dtype=bool) if present is None else present
    return WatchedTable(
        rows, toys.domain(), plan, present=present, watch=watch, repeats=repeats, fixed=fixed
    )


def test_every_repetition_is_charged_and_seen():
    seen = []
    table = watched(seen.append, repeats=5)
    table.release("sum", toys.ClippedSum())
    assert [observed.repetition for observed in seen] == list(range(5))
    assert table.meter.runs("sum") == 5
    assert len({float(observed.released[0]) for observed in seen}) == 5  # fresh noise each time
    with pytest.raises(UnplannedReleaseError):
        table.release("sum", toys.ClippedSum())


def test_parts_are_compared_at_the_first_of_its_repetitions():
    class Counted(toys.ClippedSum):
        calls = 0

        def statistic(self, rows, mask):
            Counted.calls += 1
            return super().statistic(rows, mask)

    calls = []
    for repeats in (1, 5):
        table, Counted.calls = watched(lambda _: None, repeats=repeats), 0
        table.release("sum", Counted())
        calls.append(Counted.calls)
    once, five_times = calls
    assert once == 1 + 3 and five_times == once + 4  # one chunk; three looks at its parts


def test_after_a_stop_parts_are_compared_again():
    def stop(observed):
        if observed.repetition == 2:
            raise KeyboardInterrupt

    table = watched(stop, repeats=5)
    with pytest.raises(KeyboardInterrupt):
        table.release("sum", toys.ClippedSum())
    assert not table._is_repeated


def test_the_noise_is_the_planned_share():
    seen = []
    watched(seen.append, repeats=3000, noise=0.1).release("sum", toys.ClippedSum())
    draws = torch.stack([observed.released for observed in seen])
    assert draws.std(dim=0).numpy() == pytest.approx(0.1, rel=0.1)


def test_without_noise_the_worlds_differ_by_the_one_record():
    there = np.ones(N, dtype=bool)
    gone = there.copy()
    gone[0] = False
    sums = []
    for present in (there, gone):
        watched(sums.append, noise=0.0, present=present).release("sum", toys.ClippedSum())
    own = each_alone(sums[0], ROWS.slice(0, 1))[0]
    assert torch.allclose((sums[0].released - sums[1].released).float(), own, atol=1e-6)
    everybody = each_alone(sums[0], ROWS).sum(dim=0)
    assert torch.allclose(everybody, together(sums[0], ROWS), atol=1e-5)
    assert torch.allclose(everybody, sums[0].released.float(), atol=1e-5)


def test_a_model_is_handed_what_was_laid_down():
    fixed = FixedReleases()
    first = watched(lambda _: None, noise=0.0, fixed=fixed).release("sum", toys.ClippedSum())
    again = watched(lambda _: None, fixed=fixed).release("sum", toys.ClippedSum())
    assert torch.equal(first, again)
    again += 1.0  # what a model does to its copy stays with it
    third = watched(lambda _: None, fixed=fixed).release("sum", toys.ClippedSum())
    assert torch.equal(first, third)
