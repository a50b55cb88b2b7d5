"""The guarded table: what the plan holds, once, charged first; rows in no other way."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch import Tensor

from core.privacy.accounting.accountant import epsilon, guarantee
from core.privacy.accounting.groups import accounted_phases
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import NotAdditiveError, Rows
from core.privacy.meter import Meter, UnplannedReleaseError
from core.privacy.plan import Phase, Plan
from tests.privacy import toys
from tests.privacy.deterministic_noise import DeterministicNoise
from tests.privacy.harness import check_gaussian

N = 101


def private_table(*phases: Phase, private: bool = True, meter: Meter | None = None) -> PrivateTable:
    made = toys.plan(N, phases or (toys.phase(),), private=private)
    return PrivateTable(toys.random_table(N, 1), toys.domain(), made, chunk_rows=10, meter=meter)


PROBES = 3  # calls that compare some rows with their parts, after the charge


@dataclass
class Spy(toys.ClippedSum):
    """Remembers what it was shown."""

    seen: list[Tensor] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        self.seen.append(toys.values_of(rows).clone())
        self.lengths.append(len(rows))
        assert mask.shape == (len(rows),) and bool((mask == 1).all())
        return super().statistic(rows, mask)


def test_a_release_is_the_statistic_plus_the_planned_noise() -> None:
    quiet = toys.phase(noise_multiplier=1e-9)
    truth = toys.ClippedSum().statistic(toys.random_table(N, 1), torch.ones(N))
    released = private_table(quiet).release("sum", toys.ClippedSum())
    assert released.dtype == torch.float64
    assert torch.allclose(released, truth, atol=1e-7, rtol=0)


def test_noise_has_the_standard_deviation_the_plan_says() -> None:
    mechanism = toys.waves(8)  # Δ = √8
    door_ = private_table(toys.phase(noise_multiplier=1.7, count=400))
    truth = mechanism.statistic(toys.random_table(N, 1), torch.ones(N))
    draws = [(door_.release("sum", mechanism) - truth).flatten().numpy() for _ in range(400)]
    check_gaussian(np.array(draws), 1.7 * np.sqrt(8))


def test_rows_are_read_once_in_even_chunks_and_public_order() -> None:
    first, second = Spy(), Spy()
    door_ = private_table(toys.phase(count=2))
    door_.release("sum", first)
    door_.release("sum", second)
    assert first.lengths == [10, 5, 5] + [10] * 10 + [1]  # some are compared with their parts
    seen = torch.cat(first.seen[PROBES:])
    assert torch.equal(seen, torch.cat(second.seen[PROBES:]))  # the order is fixed
    rows = toys.values_of(toys.random_table(N, 1))
    assert not torch.equal(seen, rows)
    assert sorted(map(tuple, seen.tolist())) == sorted(map(tuple, rows.tolist()))
    # and it depends on n alone: another table of this size is read in the same order
    other, spy = toys.random_table(N, 2), Spy()
    PrivateTable(other, toys.domain(), toys.plan(N, [toys.phase()])).release("sum", spy)
    where = [rows.tolist().index(row) for row in seen.tolist()]
    assert torch.equal(torch.cat(spy.seen[PROBES:]), toys.values_of(other)[where])


def test_the_order_can_be_kept() -> None:
    spy = Spy()
    made = toys.plan(N, [toys.phase()])
    rows = toys.random_table(N, 1)
    PrivateTable(rows, toys.domain(), made, shuffle=False).release("sum", spy)
    assert torch.equal(torch.cat(spy.seen[PROBES:]), toys.values_of(rows))


@pytest.mark.parametrize(
    ("name", "mechanism", "why"),
    [
        ("other", toys.ClippedSum(), "no phase 'other'"),
        ("sum", toys.Histogram(), "planned with gaussian noise"),
        ("batches", toys.ClippedSum(), "random batches"),
        ("sum", toys.ClippedSum(radius=float("inf")), "positive and finite"),
    ],
)
def test_what_the_plan_does_not_hold_is_refused_unread(
    name: str, mechanism: toys.ClippedSum, why: str
) -> None:
    door_ = private_table(toys.phase(), toys.phase("batches", sampling_rate=0.1))
    with pytest.raises(UnplannedReleaseError, match=why):
        door_.release(name, mechanism)
    assert door_.meter.executed == ()


def test_a_phase_runs_no_more_often_than_planned() -> None:
    door_ = private_table(toys.phase(count=2))
    spy = Spy()
    for _ in range(2):
        door_.release("sum", spy)
    read = len(spy.seen)
    with pytest.raises(UnplannedReleaseError, match="planned 2 time"):
        door_.release("sum", spy)
    assert len(spy.seen) == read


def test_charged_before_reading_and_kept_after_a_failure() -> None:
    door_ = private_table()

    class Fails(toys.ClippedSum):
        def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
            assert door_.meter.runs("sum") == 1  # already paid
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        door_.release("sum", Fails())
    with pytest.raises(UnplannedReleaseError):
        door_.release("sum", toys.ClippedSum())


def test_a_statistic_that_is_not_finite_is_never_released() -> None:
    class Overflows(toys.ClippedSum):
        def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
            return super().statistic(rows, mask) / 0.0

    with pytest.raises(FloatingPointError, match="Nothing was released"):
        private_table().release("sum", Overflows())


def test_a_caller_may_stop_between_chunks_and_the_charge_stays() -> None:
    class Stopped(Exception):
        pass

    told: list[tuple[int, int]] = []

    def tick(done: int, rows: int) -> None:
        told.append((done, rows))
        if done >= 30:
            raise Stopped

    door_ = private_table()
    with pytest.raises(Stopped):
        door_.release("sum", toys.ClippedSum(), tick=tick)
    assert told == [(10, N), (20, N), (30, N)]
    assert door_.meter.runs("sum") == 1


def test_executed_equals_the_plan_after_a_full_run() -> None:
    phases = (toys.phase(count=3), toys.phase("counts", 2.0, mechanism="laplace"))
    door_ = private_table(*phases)
    door_.release("counts", toys.Histogram())
    for done in range(3):
        door_.release("sum", toys.ClippedSum())
        ran = {p.name: p.count for p in door_.meter.executed}
        assert ran == {"sum": done + 1, "counts": 1}
    assert door_.meter.executed == phases
    assert accounted_phases(door_.meter.executed, 1) == accounted_phases(door_.plan.phases, 1)
    assert guarantee(door_.meter.executed, 1e-6).epsilon == door_.plan.guarantee.epsilon


def test_repeatable_noise_is_repeatable_and_voids_the_claim() -> None:
    made = toys.plan(N, [toys.phase()])
    released = []
    for _ in range(2):
        door_ = PrivateTable(
            toys.random_table(N, 1), toys.domain(), made, noise_source=DeterministicNoise(9)
        )
        released.append(door_.release("sum", toys.ClippedSum()))
    assert torch.equal(*released)
    assert not door_.meter.private
    assert "deterministic noise: not private" in door_.meter.note
    assert epsilon(door_.meter.executed, 1e-6)[0] == float("inf")


def test_without_a_claim_there_is_no_noise() -> None:
    made = toys.phase(noise_multiplier=0.0)
    truth = toys.ClippedSum().statistic(toys.random_table(N, 1), torch.ones(N))
    door_ = private_table(made, private=False)
    assert torch.allclose(door_.release("sum", toys.ClippedSum()), truth, rtol=1e-12)
    assert epsilon(door_.meter.executed, 1e-6)[0] == float("inf")


def test_a_private_plan_without_noise_is_refused() -> None:
    honest = toys.plan(N, [toys.phase()])
    forged = honest.model_copy(update={"phases": (toys.phase(noise_multiplier=0.0),)})
    with pytest.raises(ValueError, match="without noise: sum"):
        PrivateTable(toys.random_table(N, 1), toys.domain(), forged)


@pytest.mark.parametrize("chunk", [0, -2, 7])
def test_chunks_must_keep_pairs_together(chunk: int) -> None:
    with pytest.raises(ValueError, match="even"):
        PrivateTable(
            toys.random_table(N, 1), toys.domain(), toys.plan(N, [toys.phase()]), chunk_rows=chunk
        )


def test_a_plan_for_another_number_of_records_is_refused() -> None:
    with pytest.raises(ValueError, match="plan is for 102 records"):
        PrivateTable(toys.random_table(N, 1), toys.domain(), toys.plan(102, [toys.phase()]))


def test_rows_are_reachable_in_no_public_way() -> None:
    door_ = private_table()
    for attempt in (
        lambda: pickle.dumps(door_),
        lambda: copy.copy(door_),
        lambda: copy.deepcopy(door_),
        lambda: list(door_),  # type: ignore[call-overload]
        lambda: door_[0],  # type: ignore[index]
        lambda: vars(door_),
        lambda: json.dumps(door_),
        lambda: setattr(door_, "rows", 1),
    ):
        with pytest.raises((TypeError, AttributeError)):
            attempt()
    public = {name for name in dir(door_) if not name.startswith("_")}
    assert public == {"domain", "meter", "n", "plan", "release", "sampled", "selection"}
    assert repr(door_) == f"PrivateTable(n={N}, columns=3)"
    assert door_.n == N and door_.domain == toys.domain()


# -- meter ----------------------------------------------------------------------------------------


def three() -> Plan:
    return toys.plan(N, [toys.phase(count=3), toys.phase("late")])


def test_a_meter_survives_a_checkpoint() -> None:
    meter = Meter(three())
    meter.charge("sum", 2)
    again = Meter.from_json(meter.to_json(), three())
    assert again.executed == meter.executed
    assert guarantee(again.executed, 1e-6) == guarantee(meter.executed, 1e-6)
    again.charge("sum")
    with pytest.raises(UnplannedReleaseError):
        again.charge("sum")
    assert meter.runs("sum") == 2  # the one written is untouched


def test_a_resumed_door_goes_on_counting() -> None:
    made = three()
    rows = toys.random_table(N, 1)
    before = PrivateTable(rows, toys.domain(), made)
    before.release("sum", toys.ClippedSum())
    meter = Meter.from_json(before.meter.to_json(), made)
    after = PrivateTable(rows, toys.domain(), made, meter=meter)
    assert after.meter.runs("sum") == 1


def test_a_voided_claim_stays_void_after_a_checkpoint() -> None:
    meter = Meter(three())
    meter.charge("sum")
    meter.forfeit("deterministic noise: not private")
    again = Meter.from_json(meter.to_json(), three())
    assert not again.private
    assert epsilon(again.executed, 1e-6)[0] == float("inf")


@pytest.mark.parametrize(
    "counts", [{"sum": 4, "late": 0}, {"sum": -1, "late": 0}, {"sum": 1}, {"sum": 1, "x": 0}]
)
def test_a_checkpoint_of_something_else_is_refused(counts: dict[str, int]) -> None:
    made = three()
    state = json.loads(Meter(made).to_json())
    with pytest.raises(ValueError, match="does not hold"):
        Meter.from_json(json.dumps({**state, "counts": counts}), made)
    other = toys.plan(N, [toys.phase(count=3), toys.phase("late", 2.0)])
    with pytest.raises(ValueError, match="another plan"):
        Meter.from_json(json.dumps(state), other)


def test_a_charge_is_told_before_the_data_is_read() -> None:
    kept: list[str] = []
    made = three()
    meter = Meter(made, on_charge=lambda m: kept.append(m.to_json()))
    spy = Spy()
    door_ = PrivateTable(toys.random_table(N, 1), toys.domain(), made, meter=meter)

    class Looks(toys.ClippedSum):
        def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
            assert Meter.from_json(kept[-1], made).runs("sum") == 1
            return spy.statistic(rows, mask)

    door_.release("sum", Looks())
    assert len(kept) == 1
    assert sum(spy.lengths[PROBES:]) == N


@pytest.mark.parametrize("times", [0, -1])
def test_a_charge_counts_up(times: int) -> None:
    with pytest.raises(UnplannedReleaseError):
        Meter(three()).charge("sum", times)


@dataclass
class DividesByTheCount(toys.ClippedSum):
    """A mean over the rows of each chunk: Δ of a sum means nothing for it."""

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        return super().statistic(rows, mask) / len(rows)


@dataclass
class PairsUnsaid(toys.ClippedSum):
    """Looks at pairs and does not say so."""

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        x = toys.values_of(rows)
        return super().statistic(rows, mask) + (x[:-1] * x[1:]).sum(dim=0)


@pytest.mark.parametrize("kind", [DividesByTheCount, PairsUnsaid])
def test_statistics_that_are_no_sums_are_refused(kind: type[toys.ClippedSum]) -> None:
    door_ = private_table()
    with pytest.raises(NotAdditiveError, match=kind.__name__):
        door_.release("sum", kind())
    assert door_.meter.runs("sum") == 1  # it was looked at, so it stays charged


def test_parts_are_compared_at_every_release() -> None:
    class Turned(toys.ClippedSum):
        """A sum when it is looked at first."""

        calls = 0

        def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
            Turned.calls += 1
            summed = super().statistic(rows, mask)
            return summed if Turned.calls <= first else summed.abs().sqrt()

    first = -(-N // 10) + PROBES
    door_ = private_table(toys.phase(count=2))
    turned = Turned()
    door_.release("sum", turned)
    assert Turned.calls == first
    with pytest.raises(NotAdditiveError, match="Turned"):
        door_.release("sum", turned)


def test_groups_are_never_torn_apart() -> None:
    @dataclass
    class Groups(toys.ClippedSum):
        group_size: int = 4

    with pytest.raises(UnplannedReleaseError, match="4 rows at a time"):
        private_table().release("sum", Groups())  # this one reads 10 rows at a time


def test_an_absent_record_keeps_its_place_and_adds_nothing() -> None:
    values = toys.values_of(toys.random_table(N, 1)).numpy()
    made = toys.plan(N, [toys.phase(noise_multiplier=1e-9)])
    present = np.ones(N, dtype=bool)
    present[[0, 17]] = False
    table = PrivateTable(toys.table(values), toys.domain(), made, present=present)
    released = table.release("sum", toys.ClippedSum())
    others = toys.table(values[present])
    truth = toys.ClippedSum().statistic(others, torch.ones(N - 2))
    assert torch.allclose(released, truth, atol=1e-7, rtol=0)
    with pytest.raises(ValueError, match="whether it is there"):
        PrivateTable(toys.table(values), toys.domain(), made, present=present[1:])
