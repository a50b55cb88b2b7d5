"""Batches are Poisson samples; normals are normal, to the tails."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from core.privacy.dpsgd.stream import SecretStream
from core.privacy.mechanisms.noise import SecureNoise
from tests.privacy.deterministic_noise import DeterministicNoise
from tests.privacy.harness import FALSE_POSITIVE_RATE, Caught, check_gaussian


def stream():
    return SecretStream(SecureNoise())


def check_poisson(draw, n, rate, times=4000):
    """Sizes are Binomial(n, rate), every record is as likely as any other, neighbours apart."""
    included = np.zeros((times, n), dtype=bool)
    for i in range(times):
        chosen = draw()
        assert (np.diff(chosen) > 0).all() and (
            len(chosen) == 0 or 0 <= chosen[0] <= chosen[-1] < n
        )
        included[i, chosen] = True
    spread = n * times * rate * (1 - rate)
    gap = (included.sum() - n * times * rate) / np.sqrt(spread)
    each = (included.sum(0) - times * rate) ** 2 / (times * rate * (1 - rate))
    sizes = ((included.sum(1) - n * rate) ** 2).sum() / (n * rate * (1 - rate))
    together = (included[:, 1:] & included[:, :-1]).sum()
    due = (n - 1) * times * rate**2
    for name, chance in {
        "the mean": 2 * stats.norm.sf(abs(gap)),
        "a record's chance": 2 * min(stats.chi2.cdf(each.sum(), n), stats.chi2.sf(each.sum(), n)),
        "batch sizes": 2 * min(stats.chi2.cdf(sizes, times), stats.chi2.sf(sizes, times)),
        "neighbours": 2 * stats.norm.sf(abs(together - due) / np.sqrt(due)),
    }.items():
        if chance < FALSE_POSITIVE_RATE:
            raise Caught(f"not a Poisson sample: {name}")


@pytest.mark.parametrize(("n", "rate"), [(50, 0.3), (200, 0.05), (30, 0.9), (400, 0.004)])
def test_batches_are_poisson(n, rate):
    made = stream()
    check_poisson(lambda: made.batch(n, rate), n, rate)


def test_fixed_size_batches_are_caught():
    rng = np.random.default_rng(0)
    with pytest.raises(Caught, match="batch sizes"):
        check_poisson(lambda: np.sort(rng.choice(200, 10, replace=False)), 200, 0.05)


def test_a_fixed_start_is_caught():
    made = stream()
    with pytest.raises(Caught):
        check_poisson(lambda: np.unique(np.append(made.batch(200, 0.05), 0)), 200, 0.05)


def test_short_draws_go_on(monkeypatch):
    made = stream()
    gaps = made._gaps
    monkeypatch.setattr(made, "_gaps", lambda rate, count: gaps(rate, 3))
    check_poisson(lambda: made.batch(100, 0.2), 100, 0.2)


def test_ends_of_the_range():
    made = stream()
    assert list(made.batch(5, 1.0)) == [0, 1, 2, 3, 4]
    assert sum(len(made.batch(10, 1e-9)) for _ in range(100)) == 0


def normals(count, std=1.0):
    return stream().add_normals(torch.zeros(count), std).double().numpy()


def test_normals_pass_and_a_tenth_too_little_is_caught():
    draws = normals(80_000, std=2.5).reshape(10_000, 8)
    check_gaussian(draws, 2.5)
    with pytest.raises(Caught):
        check_gaussian(draws, 2.5 / 0.9)


def test_tails_are_there():
    x = np.abs(normals(4_000_000))
    for edge in (3.0, 4.0, 4.8):
        p, k = 2 * stats.norm.sf(edge), int((x > edge).sum())
        chance = min(stats.binom.cdf(k, len(x), p), stats.binom.sf(k - 1, len(x), p))
        assert chance > FALSE_POSITIVE_RATE, (edge, k, p * len(x))


def test_rare_radii_are_refined(monkeypatch):
    """With every word taken for a rare one the law is the same."""
    import core.privacy.dpsgd.stream as module

    monkeypatch.setattr(module, "_RARE", 2**32)
    draws = normals(80_000).reshape(10_000, 8)
    check_gaussian(draws, 1.0)
    made = stream()
    radius, words = np.zeros(4, dtype=np.float32), np.zeros(4, dtype=np.uint32)
    made._refine(radius, words)  # the rarest word of all
    assert (radius > math.sqrt(2 * 32 * math.log(2))).all() and np.isfinite(radius).all()


def test_both_halves_of_a_pair_are_independent():
    x = normals(400_001)
    half = 200_001
    assert abs(np.corrcoef(x[: half - 1], x[half:])[0, 1]) < 6 / np.sqrt(half)
    assert abs(np.corrcoef(x[: half - 1] ** 2, x[half:] ** 2)[0, 1]) < 6 / np.sqrt(half)


def test_streams_differ_unless_they_are_told_to_repeat():
    assert not np.array_equal(normals(10), normals(10))
    twice = [SecretStream(DeterministicNoise(3)).add_normals(torch.zeros(9), 1.0) for _ in range(2)]
    assert torch.equal(*twice)


def test_no_noise_changes_nothing():
    x = torch.arange(5.0)
    assert torch.equal(stream().add_normals(x.clone(), 0.0), x)
