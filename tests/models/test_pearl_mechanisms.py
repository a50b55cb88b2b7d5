"""PEARL's private accesses keep their promises, and every broken twin is caught."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.encoding.codec import Codes
from core.models.pearl.characteristic_function import (
    Embedding,
    Frequencies,
    PairDistance,
    split_release,
)
from core.models.pearl.design import Design
from core.models.pearl.private_embedding import unconditional_bins
from tests.models.tables import coded
from tests.mutants import broken_pearl
from tests.privacy.harness import (
    Caught,
    check_isolation,
    check_sensitivity,
    check_tight,
    check_zero_out,
)

NUMBERS = ((0, 0), (1, 1), (3, 2))  # age, cost, day: block index, value index


def embedding(target: str | None = "ill", groups: int = 5) -> Embedding:
    codec, _ = coded(4, target=target)
    bins = unconditional_bins(codec)
    frequencies = Frequencies.draw(
        bins,
        groups,
        distances=(0.15,) * len(bins),
        octaves=(0.5, 16.0),
        generator=torch.Generator().manual_seed(3),
    )
    design = dataclasses.replace(Design.of(codec, 100), groups=groups)
    return Embedding(frequencies, design)


def mutant(kind: type[Embedding], honest: Embedding) -> Embedding:
    fields = {f.name: getattr(honest, f.name) for f in dataclasses.fields(Embedding)}
    return kind(**fields)


def extremes() -> Codes:
    """Consecutive rows at opposite ends of every numeric column, none missing."""
    codec, codes = coded(6)
    states = np.zeros_like(codes.states)
    states[:, codec.block("ward").index] = np.arange(6) % 3
    values = np.tile([[0.0], [1.0]], (3, codes.values.shape[1]))
    return Codes(states, values)


@pytest.mark.parametrize("target", ["ill", None])
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000), mask=st.lists(st.sampled_from([0.0, 1.0]), min_size=8, max_size=8)
)
def test_embedding_moves_by_its_sensitivity_and_no_more(target, seed, mask):
    _, codes = coded(8, seed, target)
    _, other = coded(8, seed + 1, target)
    mechanism = embedding(target)
    check_sensitivity(mechanism, codes)
    check_sensitivity(mechanism, codes, torch.tensor(mask))
    check_tight(mechanism, codes, least=0.999)  # every record reaches Δ: all moduli are 1
    check_zero_out(mechanism, codes, other)
    check_isolation(mechanism, codes, other)


@pytest.mark.parametrize("target", ["ill", None])
def test_the_sensitivity_covers_angles_in_float32(target):
    """Moduli are 1 to about 10⁻⁸, so a record moves the sum by a little more than is exact."""
    _, codes = coded(64, 1, target)
    mechanism = embedding(target)
    whole = mechanism.statistic(codes, torch.ones(64))
    moved = []
    for i in range(64):
        rest = Codes(np.delete(codes.states, i, axis=0), np.delete(codes.values, i, axis=0))
        moved.append(float((whole - mechanism.statistic(rest, torch.ones(63))).norm()))
    assert mechanism.design.sensitivity < max(moved) <= mechanism.sensitivity


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000))
def test_pair_distance_moves_no_more_than_its_sensitivity(seed):
    _, codes = coded(8, seed)
    _, other = coded(8, seed + 1)
    mechanism = PairDistance(NUMBERS)
    check_sensitivity(mechanism, codes)
    check_zero_out(mechanism, codes, other)
    check_isolation(mechanism, codes, other)
    check_tight(mechanism, extremes())


def test_sensitivity_by_hand():
    # 4 columns without the class, 5 groups: 6 pairs and 4 single columns a group, and one count
    design = embedding("ill").design
    assert design.columns == 4 and design.classes == 2
    by_hand = 5 * (6 + design.one_way_weight**2 * 4) + design.class_weight**2
    assert embedding("ill").sensitivity == pytest.approx(by_hand**0.5, rel=1e-5)


@pytest.mark.parametrize(
    "kind",
    [
        broken_pearl.RealPartOnly,
        broken_pearl.ForgetsTheClassCount,
        broken_pearl.DividesByTheRealClass,
        broken_pearl.CosineOfZero,
    ],
)
def test_broken_embeddings_are_caught(kind):
    _, codes = coded(8, 1)
    _, other = coded(8, 2)
    broken = mutant(kind, embedding())
    with pytest.raises(Caught):
        check_sensitivity(broken, codes)
        check_zero_out(broken, codes, other)


@pytest.mark.parametrize("kind", [broken_pearl.PrintedDistance, broken_pearl.OverlappingPairs])
def test_broken_distances_are_caught(kind):
    with pytest.raises(Caught):
        check_sensitivity(kind(NUMBERS), extremes())


def test_statistic_is_the_characteristic_function():
    """Against the definition, one record and one frequency at a time, in complex128."""
    _, codes = coded(40, 5)
    mechanism = embedding()
    flat = mechanism.statistic(codes, torch.ones(40))
    target = split_release(flat, mechanism.design, 40)
    phi = mechanism.frequencies.of_rows(codes.to("cpu")).numpy().astype(complex)  # [40, G, m]
    assert np.abs(np.abs(phi) - 1).max() < 1e-6
    y = codes.states[:, mechanism.design.condition]
    columns = phi.shape[2]
    pairs = [(a, b) for a in range(columns) for b in range(a + 1, columns)]
    for label in range(2):
        for g in range(phi.shape[1]):
            for k, (a, b) in enumerate(pairs):
                mean = sum(phi[i, g, a] * phi[i, g, b] for i in range(40) if y[i] == label) / 40
                assert abs(mean - target.pairs[label, g, k].item()) < 1e-5
    np.testing.assert_allclose(target.shares, [(y == 0).mean(), (y == 1).mean()], atol=1e-6)


def test_bin_features_are_the_mean_over_the_bin():
    """sin(tw/2)/(tw/2) at the centre equals the average of exp(itu) across the cell."""
    mechanism = embedding()
    frequencies = mechanism.frequencies
    tables = frequencies.of_bins()
    for c, column in enumerate(frequencies.bins):
        if column.width == 0 or not column.cells:
            continue
        inside = np.linspace(-0.5, 0.5, 20_001) * column.width
        for cell in (0, column.cells // 2, column.cells - 1):
            u = column.centres[cell] + inside
            angle = u[:, None] * frequencies.lines[c].numpy()
            brute = np.exp(1j * angle).mean(axis=0)
            ours = tables[c][cell, 0].numpy() + 1j * tables[c][cell, 1].numpy()
            np.testing.assert_allclose(ours, brute, atol=2e-4)


def test_chunks_add_up():
    _, codes = coded(2100, 3)
    mechanism = embedding()
    whole = mechanism.statistic(codes, torch.ones(2100))
    cut = sum(mechanism.statistic(codes.slice(a, a + 700), torch.ones(700)) for a in (0, 700, 1400))
    torch.testing.assert_close(whole, cut, rtol=1e-10, atol=1e-7)
