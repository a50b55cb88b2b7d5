"""The marginal shift: strong enough, bounded, leaves the rest alone, and keeps its secret."""

import hashlib
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from core.lmdp import shift
from core.lmdp.discrepancy import KernelPoints
from core.lmdp.inside import inside_check
from core.lmdp.level import ShiftError
from core.lmdp.shift import LARGEST, Tilt, find_tilts
from core.models.saved_model import SavedModel
from tests.lmdp.worlds import CODEC, People, coded, shifted_people

pytestmark = pytest.mark.slow

GROUPS = {"one": ("age",), "two": ("ward", "debt")}
KEY = b"a secret of the tests"


@pytest.fixture(scope="module")
def shifted():
    return shifted_people(GROUPS, power=0.75, key=KEY)


def test_every_group_is_told_apart_as_often_as_asked(shifted):
    released = CODEC.encode(shifted.sample(8000, seed=1))
    for tilt in shifted.transforms[0].tilts:
        assert tilt.power >= 0.75
        names, real = tilt.points.names, coded(4000, 3)
        check = inside_check(CODEC, names, real=real, released=released, permutations=199)
        assert check.rejects(0.05)


def test_strength_is_no_more_than_needed():
    weak, strong = (
        find_tilts(CODEC, {"one": ("age",)}, coded(12_000, 1), power=power, key=KEY)[0]
        for power in (0.3, 0.9)
    )
    assert 0.0 < weak.strength < strong.strength
    assert weak.power == pytest.approx(0.3, abs=0.05)


def test_no_record_becomes_much_rarer_or_commoner(shifted):
    codes = coded(5000, 9)
    for tilt in shifted.transforms[0].tilts:
        weights = tilt.weights(codes)
        assert float(weights.max()) <= LARGEST * (1 + 1e-9)
        assert float(weights.min()) >= 1 / LARGEST * (1 - 1e-9)


def test_what_the_rest_does_given_tagged_columns_is_kept(shifted):
    """pay = age + 20·[ward is b] + noise, before and after."""
    before, after = People().sample(20_000, seed=5), shifted.sample(20_000, seed=5)
    for frame in (before, after):
        x = np.column_stack([np.ones(len(frame)), frame["age"], frame["ward"] == "b"])
        slopes = np.linalg.lstsq(x.astype(float), frame["pay"].to_numpy(), rcond=None)[0]
        assert slopes == pytest.approx([0.0, 1.0, 20.0], abs=1.2)
    assert abs(before["age"].mean() - after["age"].mean()) > 0.3 or (
        abs(before["age"].std() - after["age"].std()) > 0.3
    )


def test_values_stay_among_those_the_model_makes(shifted):
    after = shifted.sample(3000, seed=2)
    assert after["age"].between(18, 90).all()
    assert set(after["ward"].dropna()) <= {"a", "b", "c"}
    assert list(after.columns) == ["age", "ward", "pay", "debt"]


def test_one_key_one_shift_another_key_another(monkeypatch):
    monkeypatch.setattr("core.lmdp.shift._TRIALS", 30)  # how strong it is does not matter here
    codes = coded(4000, 1)
    one, again, other = (
        find_tilts(CODEC, {"one": ("age",)}, codes, power=0.5, key=key)[0]
        for key in (KEY, KEY, b"another")
    )
    assert torch.equal(one.frequencies, again.frequencies)
    assert not torch.equal(one.frequencies, other.frequencies)


def function_of(digest: bytes) -> Tilt:
    codes = coded(200, 1)
    points = KernelPoints.of(CODEC, ("age",), codes)
    test = SimpleNamespace(points=points, synthetic=points(codes))
    return shift._draw(test, "one", digest)


def test_every_byte_of_the_digest_decides_the_function():
    """A generator that kept fewer bits would let somebody try all functions."""
    digest = hashlib.sha256(KEY).digest()
    first = function_of(digest)
    for position in range(len(digest)):
        changed = bytearray(digest)
        changed[position] ^= 0x80
        other = function_of(bytes(changed))
        for part in ("frequencies", "phases", "amplitudes"):
            assert not torch.equal(getattr(first, part), getattr(other, part)), (position, part)


def test_two_releases_of_one_table_do_not_average_out():
    """Under one key the shift points the same way, so a second release adds no way back."""
    means = []
    for key in (KEY, KEY):
        model = shifted_people({"one": ("age",)}, power=0.75, key=key)
        means.append(model.sample(20_000, seed=3)["age"].mean())
    plain = People().sample(20_000, seed=3)["age"].mean()
    assert np.sign(means[0] - plain) == np.sign(means[1] - plain)


def test_saved_shift_comes_back_and_keeps_seeds(shifted, tmp_path):
    shifted.save(tmp_path)
    again = SavedModel.load(tmp_path, People())
    pd.testing.assert_frame_equal(again.sample(500, seed=4), shifted.sample(500, seed=4))
    with pytest.raises(FileNotFoundError):  # no model comes back without its shift
        SavedModel.load(tmp_path / "elsewhere", People())


def test_no_real_row_is_ever_asked_for(shifted):
    """It holds a sampler and tilts; nothing it is made from knows the real table."""
    assert set(vars(shifted)) == {"base", "transforms"}
    assert set(vars(shifted.transforms[0])) == {"tilts", "largest"}


def test_what_cannot_be_shifted_is_refused_in_plain_words():
    codes = coded(4000, 1)
    codes.values[:, 0] = 0.5  # one age for all
    with pytest.raises(ShiftError, match="too few values"):
        find_tilts(CODEC, {"one": ("age",)}, codes, power=0.5, key=KEY)


def test_rows_must_be_asked_for(shifted):
    with pytest.raises(ValueError, match="At least one row"):
        shifted.sample(0)
