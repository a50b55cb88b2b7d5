"""Gradients with a batch-level penalty: how far one record moves them, and that it is reached."""

import math

import numpy as np
import pytest
import torch

from core.privacy.dpsgd import ClippedGradient
from core.privacy.penalty import PenalisedGradient
from tests.privacy import nets, toys
from tests.privacy.harness import check_additive, check_sensitivity, check_tight

ROWS = toys.random_table(6, 1)
EQUAL = toys.table(np.full((6, toys.WIDTH), 2.0))
C, SHARE = 0.05, 0.25


def make(penalty, *, clip=C, penalty_clip=SHARE * C, shape=nets.SHAPES["deep"]):
    networks = nets.dense(shape)
    return PenalisedGradient(
        networks=networks,
        uses=nets.uses(networks),
        penalty=lambda rows: penalty(networks, rows),
        clip_norm=clip,
        penalty_clip=penalty_clip,
    )


def mean_square(networks, rows):
    """The gradient of 50 (Σ output)², which mixes all records."""
    tape = networks["net"].run(rows)
    return networks["net"].back(tape, 100.0 * tape.out.sum(0).expand_as(tape.out))[0]


def parity(networks, rows):
    """A gradient that turns round with every record: the worst that a penalty can do."""
    tape = networks["net"].run(rows[:1])
    sign = 1.0 if len(rows) % 2 == 0 else -1.0
    return networks["net"].back(tape, sign * 1e3 * torch.tanh(tape.out))[0] if len(rows) else []


def test_sensitivity_is_that_of_sum_and_penalty():
    mechanism = make(mean_square)
    assert mechanism.sensitivity == pytest.approx(math.hypot(C + 2 * SHARE * C, C / 10))
    for rows in (ROWS, EQUAL):
        check_sensitivity(nets.OnCodes(mechanism), rows, tolerance=nets.FLOAT32)


def test_the_worst_penalty_reaches_it_and_goes_no_further():
    mechanism = make(parity)
    check_sensitivity(nets.OnCodes(mechanism), EQUAL, tolerance=nets.FLOAT32)
    check_tight(nets.OnCodes(mechanism), EQUAL)


def test_the_sum_is_that_of_the_plain_gradient_plus_a_clipped_penalty():
    mechanism = make(mean_square)
    plain = ClippedGradient(networks=mechanism.networks, uses=mechanism.uses, clip_norm=C)
    x, mask = nets.view(ROWS), torch.ones(len(ROWS))
    more = mechanism.statistic(x, mask) - plain.statistic(x, mask)
    assert float(more[-1]) == 0.0
    assert float(more.norm()) == pytest.approx(SHARE * C, rel=1e-4)


def test_a_small_penalty_is_not_scaled():
    small = lambda n, rows: nets.uses(n)(rows[:1] * 0.0)  # noqa: E731
    mechanism = make(small, penalty_clip=100.0)
    plain = ClippedGradient(networks=mechanism.networks, uses=mechanism.uses, clip_norm=C)
    x, mask = nets.view(ROWS), torch.ones(len(ROWS))
    more = (mechanism.statistic(x, mask) - plain.statistic(x, mask))[:-1]
    want = nets.clipped(nets.per_record(mechanism.networks, x[:1] * 0.0), 1e9)
    assert nets.relative(more, want) < 1e-4


def test_absent_records_do_not_enter_the_penalty():
    mechanism = make(mean_square)
    x, mask = nets.view(ROWS), torch.ones(len(ROWS))
    mask[2] = 0.0
    kept = torch.cat([x[:2], x[3:]])
    assert torch.allclose(
        mechanism.statistic(x, mask), mechanism.statistic(kept, torch.ones(len(kept))), atol=1e-7
    )


@pytest.mark.parametrize("rows", [0, 1])
def test_small_batches_work(rows):
    x = nets.view(ROWS)[:rows]
    assert torch.isfinite(make(parity).statistic(x, torch.ones(rows))).all()


def test_a_penalty_that_is_not_finite_counts_for_nothing():
    def broken(networks, rows):
        tape = networks["net"].run(rows)
        return networks["net"].back(tape, torch.full_like(tape.out, float("nan")))[0]

    mechanism = make(broken)
    plain = ClippedGradient(networks=mechanism.networks, uses=mechanism.uses, clip_norm=C)
    x, mask = nets.view(ROWS), torch.ones(len(ROWS))
    assert torch.equal(mechanism.statistic(x, mask), plain.statistic(x, mask))


def test_clip_norms_must_be_positive():
    with pytest.raises(ValueError, match="positive"):
        _ = make(parity, penalty_clip=0.0).sensitivity


def test_it_is_additive_only_without_a_penalty():
    check_additive(nets.OnCodes(make(lambda *_: [])), ROWS, EQUAL, tolerance=nets.FLOAT32)
