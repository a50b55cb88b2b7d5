"""Gradients with a batch-level penalty: how far one record moves them, and that it is reached."""

import math

import numpy as np
import pytest
import torch

from core.privacy.dpsgd import gradient as dpsgd
from core.privacy.dpsgd.gradient import ClippedGradient, SampledRelease
from core.privacy.dpsgd.penalty import PenalisedGradient
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import NotAdditiveError
from tests.privacy import nets, toys
from tests.privacy.deterministic_noise import DeterministicNoise
from tests.privacy.harness import check_additive, check_sensitivity, check_tight

ROWS = toys.random_table(6, 1)
EQUAL = toys.table(np.full((6, toys.WIDTH), 2.0))
C, SHARE = 0.05, 0.25


def make(penalty, *, clip=C, penalty_clip=SHARE * C, shape=nets.SHAPES["deep"]):
    networks = nets.dense(shape)
    return PenalisedGradient(
        networks=networks,
        grad_factors=nets.grad_factors(networks),
        penalty=lambda rows: penalty(networks, rows),
        clip_norm=clip,
        penalty_clip=penalty_clip,
    )


def mean_square(networks, rows):
    """The gradient of 50 (Σ output)², which mixes all records."""
    tape = networks["net"].forward(rows)
    return networks["net"].backward(tape, 100.0 * tape.out.sum(0).expand_as(tape.out))[0]


def parity(networks, rows):
    """A gradient that turns round with every record: the worst that a penalty can do."""
    tape = networks["net"].forward(rows[:1])
    sign = 1.0 if len(rows) % 2 == 0 else -1.0
    return networks["net"].backward(tape, sign * 1e3 * torch.tanh(tape.out))[0] if len(rows) else []


def test_sensitivity_is_that_of_sum_and_penalty():
    mechanism = make(mean_square)
    assert mechanism.sensitivity == pytest.approx(math.hypot(C + 2 * SHARE * C, C / 10))
    for rows in (ROWS, EQUAL):
        check_sensitivity(nets.OnCodes(mechanism), rows, tolerance=nets.FLOAT32)


def test_the_worst_penalty_reaches_it_and_goes_no_further():
    mechanism = make(parity)
    check_sensitivity(nets.OnCodes(mechanism), EQUAL, tolerance=nets.FLOAT32)
    check_tight(nets.OnCodes(mechanism), EQUAL)


def test_sum_is_plain_gradient_plus_clipped_penalty():
    mechanism = make(mean_square)
    plain = ClippedGradient(
        networks=mechanism.networks, grad_factors=mechanism.grad_factors, clip_norm=C
    )
    x, mask = nets.view(ROWS), torch.ones(len(ROWS))
    more = nets.whole(mechanism, x, mask) - plain.statistic(x, mask)
    assert float(more[-1]) == 0.0
    assert float(more.norm()) == pytest.approx(SHARE * C, rel=1e-4)


def test_a_small_penalty_is_not_scaled():
    small = lambda n, rows: nets.grad_factors(n)(rows[:1] * 0.0)  # noqa: E731
    mechanism = make(small, penalty_clip=100.0)
    plain = ClippedGradient(
        networks=mechanism.networks, grad_factors=mechanism.grad_factors, clip_norm=C
    )
    x, mask = nets.view(ROWS), torch.ones(len(ROWS))
    more = (nets.whole(mechanism, x, mask) - plain.statistic(x, mask))[:-1]
    want = nets.clipped(nets.per_record(mechanism.networks, x[:1] * 0.0), 1e9)
    assert nets.relative(more, want) < 1e-4


def test_absent_records_do_not_enter_the_penalty():
    mechanism = make(mean_square)
    x, mask = nets.view(ROWS), torch.ones(len(ROWS))
    mask[2] = 0.0
    kept = torch.cat([x[:2], x[3:]])
    assert torch.allclose(
        nets.whole(mechanism, x, mask),
        nets.whole(mechanism, kept, torch.ones(len(kept))),
        atol=1e-7,
    )


@pytest.mark.parametrize("rows", [0, 1])
def test_small_batches_work(rows):
    x = nets.view(ROWS)[:rows]
    assert torch.isfinite(nets.whole(make(parity), x, torch.ones(rows))).all()


def test_a_penalty_that_is_not_finite_counts_for_nothing():
    def broken(networks, rows):
        tape = networks["net"].forward(rows)
        return networks["net"].backward(tape, torch.full_like(tape.out, float("nan")))[0]

    mechanism = make(broken)
    plain = ClippedGradient(
        networks=mechanism.networks, grad_factors=mechanism.grad_factors, clip_norm=C
    )
    x, mask = nets.view(ROWS), torch.ones(len(ROWS))
    assert torch.equal(nets.whole(mechanism, x, mask), plain.statistic(x, mask))


def test_clip_norms_must_be_positive():
    with pytest.raises(ValueError, match="positive"):
        _ = make(parity, penalty_clip=0.0).sensitivity


def test_it_is_additive_only_without_a_penalty():
    check_additive(nets.OnCodes(make(lambda *_: [])), ROWS, EQUAL, tolerance=nets.FLOAT32)


# -- batches that are summed in parts -----------------------------------------------------------

PARTS, PART = 20, 64


def sign_of_the_first(networks, rows):
    """A penalty that turns round with its first record."""
    tape = networks["net"].forward(rows[:1])
    return networks["net"].backward(tape, 1e3 * rows[:1, :1].sign() * torch.ones_like(tape.out))[0]


def everybody(kind, x):
    """A release in which every row takes part."""
    return kind(
        n=len(x),
        rate=1.0,
        noise_multiplier=1.0,
        read_rows=lambda chosen: x[chosen],
        charge=lambda: None,
        source=DeterministicNoise(0),
        device="cpu",
    )


def moved_by_leaving_out(kind, monkeypatch):
    """How far one record's absence moves a batch of 20 parts, as a share of Δ."""
    monkeypatch.setattr(dpsgd, "ROWS_AT_ONCE", PART)
    x = torch.full((PART * PARTS, 3), 0.5)
    x[:, 0] = -1.0  # every part begins with another sign than the record behind it has
    x[::PART, 0] = 1.0
    mechanism = make(sign_of_the_first, shape=nets.SHAPES["one"])
    release = everybody(kind, x)
    full = release._sum(mechanism, np.arange(len(x))).clone()
    moves = []
    for i in (0, 5, PART, len(x) - 1):
        less = release._sum(mechanism, np.delete(np.arange(len(x)), i)).clone()
        moves.append(float((full - less).norm()) / mechanism.sensitivity)
    return max(moves)


class PenaltyInParts(SampledRelease):
    """Clips the penalty once for each part of a large batch, as it was."""

    def _sum(self, mechanism, chosen):
        total = torch.zeros(mechanism.size + 1)
        for start in range(0, len(chosen), PART):
            total += nets.whole(mechanism, *self._batch(mechanism, chosen[start : start + PART]))
        return total


def test_a_penalty_is_clipped_once_however_large_the_batch(monkeypatch):
    moved = moved_by_leaving_out(SampledRelease, monkeypatch)
    assert 0.2 < moved <= 1.0 + 1e-4  # the penalty does turn round


def test_a_penalty_clipped_once_a_part_is_caught(monkeypatch):
    assert moved_by_leaving_out(PenaltyInParts, monkeypatch) > 3.0


def test_sums_in_parts_are_those_of_the_whole(monkeypatch):
    x = nets.view(toys.random_table(200, 3))
    mechanism, totals = make(mean_square), []
    for at_once in (16_384, 32):
        monkeypatch.setattr(dpsgd, "ROWS_AT_ONCE", at_once)
        release = everybody(SampledRelease, x)
        total = release._sum(mechanism, np.arange(len(x))).clone()
        total[:-1] -= mechanism.batch_term(x[:at_once])
        totals.append(total)
    assert nets.relative(totals[1], totals[0]) < 1e-5


# -- statistics that are no sums ------------------------------------------------------------------


class DrawsForItself(ClippedGradient):
    """Draws by place in the batch from a stream of its own."""

    def statistic(self, rows, mask, *, out=None):
        random = torch.Generator().manual_seed(7)
        noisy = rows + torch.randn(rows.shape, generator=random)
        return super().statistic(noisy, mask, out=out)


class PenaltyInside(PenalisedGradient):
    """Adds the batch's term where records are summed."""

    def statistic(self, rows, mask, *, out=None):
        total = super().statistic(rows, mask, out=out)
        total[:-1] += super().batch_term(rows)
        return total


@pytest.mark.parametrize("kind", [DrawsForItself, PenaltyInside])
def test_a_statistic_that_is_no_sum_is_refused(kind):
    honest = make(mean_square)
    more = {"penalty": honest.penalty, "penalty_clip": C} if kind is PenaltyInside else {}
    mechanism = kind(
        networks=honest.networks, grad_factors=honest.grad_factors, clip_norm=C, **more
    )
    plan = toys.plan(6, [toys.phase("sgd", sampling_rate=1.0)])
    table = PrivateTable(ROWS, toys.domain(), plan)
    with pytest.raises(NotAdditiveError, match=kind.__name__):
        table.sampled("sgd", view=nets.view).step(mechanism)
    assert table.meter.runs("sgd") == 1  # it was looked at, so it stays charged
