"""The attack that undoes a shift: what is released does not feed it, true shares do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding.codec import Codec
from core.lmdp.recovery import (
    HiddenCells,
    column_shares,
    distance,
    measure,
    recovered_shares,
)
from core.lmdp.shift import Shift
from core.models.saved_model import SavedModel
from core.privacy.mechanisms.histograms import Histograms
from core.schema.column import Column, Kind
from core.schema.schema import Domain

pytestmark = pytest.mark.slow

LABELS = 8
SPREAD = np.array([0.34, 0.22, 0.15, 0.11, 0.08, 0.05, 0.03, 0.02])
OTHERS = ("rent", "area", "sex")
N = 20_000
NOISE = 40.0  # of each count, as ε 0.6 or so buys


def listed(name: str, count: int = LABELS) -> Column:
    labels = tuple(f"{name[0]}{i}" for i in range(count))
    return Column(name=name, kind=Kind.CATEGORY, categories=labels, dtype="str")


DOMAIN = Domain(columns=(listed("income"), listed("rent"), listed("area"), listed("sex", 2)))
CODEC = Codec(DOMAIN)


class Renters:
    """A sampler in which rent and area depend on income."""

    domain = DOMAIN

    def __init__(self) -> None:
        self.calls = 0

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        self.calls += 1
        rng = np.random.default_rng(self.calls if seed is None else seed % 2**32)
        income = rng.choice(LABELS, rows, p=SPREAD)

        def following(values, keep):
            return np.where(rng.random(rows) < keep, values, rng.integers(0, LABELS, rows))

        codes = {
            "income": income,
            "rent": following(income, 0.75),
            "area": following((income + 3) % LABELS, 0.6),
            "sex": rng.integers(0, 2, rows),
        }
        labels = {name: np.array(CODEC.block(name).column.categories) for name in codes}
        return pd.DataFrame({name: labels[name][index] for name, index in codes.items()})

    def save(self, folder) -> None: ...


@pytest.fixture(scope="module", params=[b"one", b"two", b"three"])
def attacked(request):
    """A shifted model, its released records, and the real ones."""
    key = request.param
    shift = Shift.find(Renters(), {"g": ("income",)}, power=0.95, key=key)
    model = SavedModel(Renters(), (shift,))
    released, real = CODEC.encode(model.sample(60_000, seed=5)), Renters().sample(N, seed=77)
    return model, released, CODEC.encode(real)


def found_with(attacked, shares) -> tuple[float, float]:
    """Distance of the released and of the recovered shares to the real ones."""
    _, released, real = attacked
    cells = HiddenCells.of(CODEC, ("income",), released)
    true = cells.shares(real)
    back = recovered_shares(cells, released, shares)
    return distance(true, cells.shares(released)), distance(true, back)


def outside(attacked, *, shifted: bool) -> dict[str, list[float]]:
    """Counts of the other columns as a review budget buys them."""
    model, _, real = attacked
    weight = model.transforms[0].kept_share if shifted else None
    mechanism = Histograms.of(CODEC, OTHERS, weight)
    exact = mechanism.statistic(real, torch.ones(N)).numpy()
    return mechanism.split(exact + np.random.default_rng(3).normal(0.0, NOISE, len(exact)))


def test_table_and_outside_report_do_not_reveal_hidden_shares(attacked):
    released, back = found_with(attacked, outside(attacked, shifted=True))
    assert released > 0.08
    assert back > 0.85 * released


def test_a_report_of_unweighted_counts_is_caught(attacked):
    """As it was before: the same attack finds the real shares."""
    released, back = found_with(attacked, outside(attacked, shifted=False))
    assert back < 0.25 * released


def test_another_shifted_release_does_not_reveal_hidden_shares(attacked):
    """Both are shifted by one function, so the second one says what the first one says."""
    model, *_ = attacked
    second = CODEC.encode(model.sample(60_000, seed=6))
    released, back = found_with(attacked, column_shares(CODEC, OTHERS, second))
    assert back > 0.85 * released


def test_true_shares_reveal_them_and_the_certificate_says_so(attacked):
    model, _, real = attacked
    released, back = found_with(attacked, column_shares(CODEC, OTHERS, real))
    assert back < 0.15 * released
    told = measure(model.base, model.transforms[0], {"g": ("income",)})["g"]
    assert told.columns == ("income",) and told.undone > 0.8
    # what is measured on the model alone is near what happens with real rows
    assert told.undone == pytest.approx(1.0 - back / released, abs=0.15)


def test_columns_that_tell_nothing_undo_nothing(attacked):
    _, _, real = attacked
    released, back = found_with(attacked, column_shares(CODEC, ("sex",), real))
    assert back == pytest.approx(released, rel=0.2)


def test_without_other_columns_there_is_nothing_to_attack_with():
    tags = {"g": ("income", *OTHERS)}
    shift = Shift.find(Renters(), {"g": ("income",)}, power=0.5, key=b"k")
    assert measure(Renters(), shift, tags, records=500) == {}
