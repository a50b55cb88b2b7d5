"""Negative controls for DP-SGD: each broken step fails a check that the honest one passes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from core.privacy.dpsgd.clipping import clipped_sum
from core.privacy.dpsgd.dense import Dense
from core.privacy.dpsgd.gradient import ClippedGradient, SampledRelease
from core.privacy.mechanisms.noise import SecureNoise
from tests.mutants import broken_dpsgd as broken
from tests.privacy import nets, toys
from tests.privacy.harness import (
    Caught,
    check_additive,
    check_gaussian,
    check_isolation,
    check_sensitivity,
    check_tight,
)

ROWS, OTHER = toys.random_table(6, 1), toys.random_table(6, 2)
FAR = toys.table(np.full((6, toys.WIDTH), 50.0))
DULL = toys.table(np.full((6, toys.WIDTH), 1e-3))  # gradients that are nearly all bias


def thrice(networks):
    """f(x) used three times with gradients that add up: the norm is 3, not √3, of one."""

    def found(x):
        tape = networks["net"].forward(x)
        return 3 * networks["net"].backward(tape, torch.tanh(tape.out))[0]

    return found


def sensitivity(mechanism):
    for rows in (ROWS, FAR, DULL):
        check_sensitivity(nets.OnCodes(mechanism), rows, tolerance=nets.FLOAT32)


def tightness(mechanism):
    check_tight(nets.OnCodes(mechanism), FAR)


def isolation(mechanism):
    check_isolation(nets.OnCodes(mechanism), ROWS, OTHER)
    check_additive(nets.OnCodes(mechanism), ROWS, OTHER, tolerance=nets.FLOAT32)


def make(kind, grad_factors=nets.grad_factors):
    networks = nets.dense(nets.SHAPES["deep"])
    return kind(networks=networks, grad_factors=grad_factors(networks), clip_norm=0.05)


@pytest.mark.parametrize(
    ("mutant", "grad_factors", "check"),
    [
        (broken.ForgetsToClip, nets.grad_factors, sensitivity),
        (broken.ClipsLayerByLayer, nets.grad_factors, sensitivity),
        (broken.ClipsTheBatch, nets.grad_factors, isolation),
        (broken.CentresOnTheBatch, nets.grad_factors, isolation),
        (broken.ForgetsTheBias, nets.grad_factors, sensitivity),
        (broken.TakesFactorsForLayers, thrice, sensitivity),
    ],
)
def test_a_broken_gradient_is_caught(mutant, grad_factors, check):
    with pytest.raises(Caught):
        check(make(mutant, grad_factors))


@pytest.mark.parametrize("check", [sensitivity, tightness, isolation])
@pytest.mark.parametrize("grad_factors", [nets.grad_factors, thrice])
def test_the_honest_gradient_passes(grad_factors, check):
    check(replace(make(ClippedGradient, grad_factors), several_passes=True))


def release(kind, rows, rate, noise):
    return kind(
        n=len(rows),
        rate=rate,
        noise_multiplier=noise,
        read_rows=lambda chosen: rows[chosen],
        charge=lambda: None,
        source=SecureNoise(),
        device="cpu",
    )


def pure_noise(kind):
    """200 steps on gradients that are zero, [200, size]."""
    networks = nets.dense((3, 4))

    def silent(x):
        return networks["net"].backward(networks["net"].forward(x), torch.zeros(len(x), 4))[0]

    mechanism = ClippedGradient(networks=networks, grad_factors=silent, clip_norm=0.7)
    steps = release(kind, torch.zeros(40, 3), 0.25, 1.3)
    return np.stack([steps.step(mechanism).mean.clone().numpy() for _ in range(1000)])


DUE = 1.3 * 0.7 * nets.JOINT / 10


@pytest.mark.parametrize("mutant", [broken.QuietStep, broken.RealisedDivisor])
def test_broken_noise_is_caught(mutant):
    with pytest.raises(Caught):
        check_gaussian(pure_noise(mutant), DUE)


def test_honest_noise_passes():
    check_gaussian(pure_noise(SampledRelease), DUE)


def auto_encoder():
    return Dense(
        {"encoder": (3, 4, 2), "decoder": (2, 4, 3)}, generator=torch.Generator().manual_seed(5)
    )


SWAPPED = torch.cat([torch.full((1, 3), 9.0), nets.view(ROWS)[1:]])


def others_moved(take_step, parts):
    """How far the others' contributions move when record 0 is swapped before one step."""
    found = []
    for rows in (nets.view(ROWS), SWAPPED):
        state = take_step(rows)
        found.append(parts(state, nets.view(ROWS))[1:])
    return float((found[0] - found[1]).norm(dim=1).sum())


def test_the_printed_auto_encoder_leaks_through_its_encoder():
    """With all noise that is ever drawn held fixed, one record moves all others."""
    clip_norm = 0.012  # the paper's

    def step(rows):
        printed = broken.PrintedAutoEncoder(auto_encoder(), clip_norm)
        printed.step_encoder(rows)
        return printed

    moved = others_moved(step, lambda printed, rows: printed.decoder_parts(rows))
    assert moved > 1.0 * clip_norm  # more than the whole claimed sensitivity, by others alone


def test_the_joint_clip_moves_no_other_record():
    """The honest step: the released state is the same noisy value, so others cannot move."""
    clip_norm = 0.5
    noisy = torch.randn(auto_encoder().size, generator=torch.Generator().manual_seed(1))

    def step(rows):
        networks = auto_encoder()
        with torch.no_grad():  # what was released (the noise made up for the swapped record)
            networks.flat.sub_(noisy, alpha=0.1)
        return networks

    def parts(networks, rows):
        found = []
        for i in range(len(rows)):
            mask = torch.zeros(len(rows))
            mask[i] = 1.0
            total = torch.zeros(networks.size)
            clipped_sum(
                broken.reconstruction(networks, rows),
                clip_norm=clip_norm,
                mask=mask,
                views=networks.views(total),
            )
            found.append(total)
        return torch.stack(found)

    assert others_moved(step, parts) == 0.0
    networks = auto_encoder()
    mechanism = ClippedGradient(
        networks=networks,
        grad_factors=lambda rows: broken.reconstruction(networks, rows),
        clip_norm=clip_norm,
    )
    sensitivity(mechanism)
    isolation(mechanism)
    assert math.isclose(mechanism.sensitivity, clip_norm * nets.JOINT)
