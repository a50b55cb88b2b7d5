"""A step of DP-SGD: bounded, additive, counted, noised as planned, divided by a public number."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

import core.privacy.dpsgd.gradient as engine
from core.privacy.accounting.accountant import epsilon
from core.privacy.dpsgd.clipping import CANCELLING
from core.privacy.dpsgd.gradient import ClippedGradient, SampledRelease
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.noise import SecureNoise
from core.privacy.meter import AHEAD, Meter, UnplannedReleaseError
from core.privacy.plan import Guarantee
from tests.privacy import nets, toys
from tests.privacy.functional_gradient import FunctionalGradient
from tests.privacy.harness import (
    Caught,
    check_distinguishing,
    check_gaussian,
    check_promises,
    check_sensitivity,
    check_tight,
)

pytestmark = pytest.mark.slow

ROWS, OTHER = toys.random_table(6, 1), toys.random_table(6, 2)
FAR = toys.table(np.full((6, toys.WIDTH), 50.0))
N = 60
UNASKED = Guarantee(epsilon=1.0, epsilon_replace=2.0, delta=1e-6)  # what tables never look at


def functional(shape=nets.SHAPES["deep"], clip_norm=0.5):
    return FunctionalGradient(
        module=nets.module(nets.dense(shape)),
        loss=lambda call, row: nets.loss(call(row)),
        clip_norm=clip_norm,
    )


@pytest.mark.parametrize("make", [nets.gradient, functional])
@pytest.mark.parametrize("shape", nets.SHAPES.values())
@pytest.mark.parametrize("clip_norm", [0.05, 3.0])
def test_gradients_keep_their_promises(make, shape, clip_norm):
    mechanism = nets.OnCodes(make(shape, clip_norm))
    check_promises(mechanism, ROWS, OTHER, tolerance=nets.FLOAT32)
    check_sensitivity(mechanism, FAR, tolerance=nets.FLOAT32)
    if clip_norm == 0.05:  # everything is clipped: Δ is reached
        check_tight(mechanism, FAR)


def test_both_routes_have_one_statistic():
    rows, mask = nets.view(ROWS), torch.tensor([1.0, 1, 0, 1, 1, 1])
    a, b = nets.gradient().statistic(rows, mask), functional().statistic(rows, mask)
    torch.testing.assert_close(a, b)
    assert not torch.equal(a, nets.gradient().statistic(rows, torch.ones(6)))


def private_table(n=N, *, rate=0.2, count=10, noise=1.0, private=True, rows=None, meter=None):
    plan = toys.plan(
        n,
        [toys.phase("sgd", noise, count=count, sampling_rate=rate), toys.phase("sum", 5.0)],
        private=private,
        claim=UNASKED,
    )
    codes = toys.random_table(n, 3) if rows is None else rows
    return PrivateTable(codes, toys.domain(), plan, meter=None if meter is None else meter(plan))


def test_each_step_is_charged_and_none_beyond_the_plan():
    table, mechanism = private_table(count=3), nets.gradient()
    release = table.sampled("sgd", view=nets.view)
    assert table.meter.executed == ()
    for done in (1, 2, 3):
        release.step(mechanism)
        assert table.meter.runs("sgd") == done
    with pytest.raises(UnplannedReleaseError, match="planned 3"):
        release.step(mechanism)
    assert table.meter.executed[0].count == 3


@pytest.mark.parametrize("name", ["sum", "nothing"])
def test_only_sampled_phases_of_the_plan_can_be_sampled(name):
    with pytest.raises(UnplannedReleaseError, match=f"no phase '{name}'"):
        private_table().sampled(name, view=nets.view)


def test_rows_are_not_viewed_before_a_charge():
    seen = []
    release = private_table().sampled(
        "sgd", view=lambda rows: seen.append(len(rows)) or nets.view(rows)
    )
    assert not seen
    release.step(nets.gradient())
    assert seen


def steps(release, mechanism, times):
    return torch.stack([release.step(mechanism).mean.clone() for _ in range(times)]).double()


def silent(networks):
    """Gradients that are zero."""
    net = networks["net"]
    return lambda x: net.backward(net.forward(x), torch.zeros(len(x), net.layers[-1].outputs))[0]


def test_noise_is_what_the_plan_says():
    """All-zero gradients leave pure noise: σΔ / (qn) in every coordinate, whatever the batch."""
    networks = nets.dense(nets.SHAPES["deep"])
    mechanism = ClippedGradient(
        networks=networks,
        grad_factors=silent(networks),
        clip_norm=0.7,
    )
    release = private_table(count=500, noise=1.3).sampled("sgd", view=nets.view)
    due = 1.3 * 0.7 * nets.JOINT / (0.2 * N)
    found = steps(release, mechanism, 500).numpy()
    check_gaussian(found, due)
    assert release.step.__self__.expected_batch == pytest.approx(0.2 * N)


def test_noise_covers_more_rounding_where_passes_may_cancel():
    """A pass may weigh 1/√CANCELLING, some 32 clip norms, and float32 rounds in that measure."""
    std = {}
    for several in (False, True):
        mechanism = replace(nets.gradient(), several_passes=several)
        release = private_table(count=1, noise=1.3).sampled("sgd", view=nets.view)
        std[several] = release.step(mechanism).std * 0.2 * N / (1.3 * mechanism.sensitivity) - 1.0
    assert std[False] > 1e-5
    assert std[True] == pytest.approx(std[False] / math.sqrt(CANCELLING))


def test_noise_covers_what_float32_sums_add_to_a_record():
    """A record left out of a batch of 2,000 moves its float32 sum by more than Δ."""
    rows, mechanism = toys.random_table(2000, 3), nets.gradient(nets.SHAPES["one"], 0.05)
    x = nets.view(rows)
    whole = mechanism.statistic(x, torch.ones(2000)).double()
    rests = (torch.cat([x[:i], x[i + 1 :]]) for i in range(60))
    moved = max(
        float((whole - mechanism.statistic(rest, torch.ones(1999)).double()).norm())
        for rest in rests
    )
    table = private_table(2000, rate=0.999999, count=1, noise=1.3, rows=rows)
    std = table.sampled("sgd", view=nets.view).step(mechanism).std * 0.999999 * 2000
    assert mechanism.sensitivity * (1.0 + 1.5e-5) < moved <= std / 1.3


def test_the_divisor_is_the_expected_batch():
    """Without noise the mean over steps is q·Σ/(qn); single steps differ as their batches do."""
    mechanism, rows = nets.gradient(clip_norm=0.05), toys.random_table(N, 3)
    table = private_table(private=False, noise=0.0, count=3000, rows=rows)
    release = table.sampled("sgd", view=nets.view)
    found = steps(release, mechanism, 3000)
    due = mechanism.statistic(nets.view(rows), torch.ones(N))[:-1] / N
    spread = found.std(0) / math.sqrt(3000)
    assert ((found.mean(0) - due).abs() < 6 * spread + 1e-6).all()
    assert found.norm(dim=1).std() > 0.05 * found.norm(dim=1).mean()


def test_empty_batches_are_noise_and_nothing_else():
    release = private_table(rate=1e-9, count=50).sampled("sgd", view=nets.view)
    found = steps(release, nets.gradient(clip_norm=1.0), 50)
    assert torch.isfinite(found).all()
    assert float(found.std()) == pytest.approx(nets.JOINT / (1e-9 * N), rel=0.1)


def test_the_share_of_clipped_records_is_released_with_the_rest():
    release = private_table(count=100, noise=0.3, rate=0.5).sampled("sgd", view=nets.view)
    mechanism = nets.gradient(clip_norm=0.5)
    norms = nets.per_record(mechanism.networks, nets.view(toys.random_table(N, 3))).norm(dim=1)
    share = float((norms > 0.5).float().mean())
    found = [float(release.step(mechanism).clipped) for _ in range(100)]
    assert 0.1 < share < 0.9
    assert np.mean(found) == pytest.approx(share, abs=6 * np.std(found) / 10)


def test_large_batches_are_summed_in_parts(monkeypatch):
    rows = toys.random_table(N, 3)

    def whole():
        table = private_table(private=False, noise=0.0, rate=1.0, rows=rows)
        return steps(table.sampled("sgd", view=nets.view), nets.gradient(), 1)

    once = whole()
    monkeypatch.setattr(engine, "ROWS_AT_ONCE", 7)
    torch.testing.assert_close(once, whole(), rtol=1e-4, atol=1e-7)


def test_tables_too_large_to_lay_out_are_viewed_batch_by_batch(monkeypatch):
    import core.privacy.guarded as guarded

    monkeypatch.setattr(guarded, "EXPAND_AT_ONCE", 0)
    seen = []
    table = private_table(rate=0.1, count=20)
    release = table.sampled("sgd", view=lambda rows: seen.append(len(rows)) or nets.view(rows))
    steps(release, nets.gradient(), 20)
    assert len(seen) == 20 and max(seen) < N


def test_a_private_step_needs_a_bound():
    with pytest.raises(ValueError, match="finite clip norm"):
        private_table().sampled("sgd", view=nets.view).step(nets.gradient(clip_norm=math.inf))


@dataclass(frozen=True, kw_only=True)
class Remembered(ClippedGradient):
    """A gradient of equal rows, worked out once for each size of a batch."""

    by_size: dict[int, torch.Tensor] = field(default_factory=dict)

    def statistic(self, rows, mask, *, out=None):
        if len(rows) not in self.by_size:
            self.by_size[len(rows)] = super().statistic(rows, mask)
        total = self.by_size[len(rows)]
        return total.clone() if out is None else out.copy_(total)


def one_step(canary: bool, *, noise: float, times: int) -> np.ndarray:
    """How far single steps on q = 1/2 point where the one record there is pulls them."""
    networks = nets.dense((3, 1))
    pulled = Remembered(networks=networks, grad_factors=nets.grad_factors(networks), clip_norm=1.0)
    row = torch.full((1, 3), 9.0)
    due = pulled.statistic(row, torch.ones(1))
    direction = due / due.norm()
    mechanism = (
        pulled
        if canary
        else Remembered(networks=networks, grad_factors=silent(networks), clip_norm=1.0)
    )
    release = SampledRelease(
        n=1,
        rate=0.5,
        noise_multiplier=noise,
        read_rows=lambda chosen: row[chosen],
        charge=lambda: None,
        source=SecureNoise(),
        device="cpu",
    )
    out = np.empty(times)
    for i in range(times):
        step = release.step(mechanism)
        whole = torch.cat([step.mean * 0.5, step.clipped.view(1) * 0.05])
        out[i] = float(whole @ direction)
    return out


def test_one_step_cannot_be_told_apart_beyond_the_claim():
    delta = 0.02
    released = toys.phase("sgd", 0.7, sampling_rate=0.5)
    claim, _ = epsilon([released], delta)
    outside = one_step(False, noise=0.7, times=8_000)
    check_distinguishing(
        one_step(True, noise=0.7, times=8_000), outside, epsilon=claim, delta=delta
    )
    with pytest.raises(Caught):  # and the test has the power to see a claim a third too small
        check_distinguishing(
            one_step(True, noise=0.35, times=8_000),
            one_step(False, noise=0.35, times=8_000),
            epsilon=claim,
            delta=delta,
        )


def test_what_is_written_down_is_never_less_than_what_ran():
    written = []

    def meter(plan):
        return Meter(plan, on_charge=lambda m: written.append(Meter.from_json(m.to_json(), plan)))

    table = private_table(count=3 * AHEAD, meter=meter)
    release, mechanism = table.sampled("sgd", view=nets.view), nets.gradient()
    for done in range(1, 2 * AHEAD + 5):
        release.step(mechanism)
        assert done <= written[-1].runs("sgd") <= done + AHEAD
    assert len(written) < 10
    table.meter.settle()
    assert written[-1].runs("sgd") == table.meter.runs("sgd") == 2 * AHEAD + 4
    release.step(mechanism)
    assert written[-1].runs("sgd") > 2 * AHEAD + 4


def test_statistics_do_not_share_memory():
    mechanism = nets.gradient()
    first = mechanism.statistic(nets.view(ROWS), torch.ones(6))
    kept = first.clone()
    mechanism.statistic(nets.view(OTHER), torch.ones(6))
    assert torch.equal(first, kept)


def test_sizes_of_batches_do_not_leave():
    """Nothing a caller can reach on a release tells how large a batch was."""
    release = private_table().sampled("sgd", view=nets.view)
    found = release.step(nets.gradient())
    assert set(found.__dataclass_fields__) == {"mean", "clipped", "std"}
    public = {name for name in dir(release) if not name.startswith("_")}
    assert public == {"expected_batch", "step"}
