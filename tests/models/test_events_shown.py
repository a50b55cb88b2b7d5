"""How many events somebody has at most, and which cells events never miss, by released counts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from core.encoding.codec import Codec
from core.encoding.windows import FIRST, NUMBER
from core.models.scan_focus.events_shown import never_missing, without_far_numbers
from core.schema.column import Column, Kind
from core.schema.schema import Domain, Schema

PEOPLE, STD = 4500, 40.0


def known(numbers: list[float], gone: float) -> SimpleNamespace:
    """What was counted of people's loans: how many each has, and first ones that are missing."""
    columns = (
        Column(name="n", kind=Kind.ORDERED, categories=tuple(map(str, range(len(numbers))))),
        Column(name="sum", kind=Kind.CATEGORY, categories=("low", "high"), missing=True),
    )
    domain = Schema(columns=columns).domain()
    roles = {"n": (NUMBER, "", 0), "sum": (FIRST, "sum", 0)}
    codec = Codec(Domain(columns=domain.columns, roles=roles))
    counts = [np.array(numbers), np.array([PEOPLE - gone, 0.0, gone])]
    return SimpleNamespace(
        codec=codec,
        scales=[
            SimpleNamespace(size=len(numbers), missing_cell=None),
            SimpleNamespace(size=3, missing_cell=2),
        ],
        column_counts=counts,
        column_noise=[np.full(len(one), STD) for one in counts],
        table=SimpleNamespace(n=PEOPLE),
    )


def test_nobody_has_more_events_than_counts_show():
    numbers = [3818.0, 682.0, -20.0, 31.0, 12.0, -35.0, 50.0]
    shares = torch.rand((8, 10), generator=torch.Generator().manual_seed(0))
    shares[0, :2] = 0.0
    shares[0, 6] = 1.0
    before = shares.clone()
    kept = without_far_numbers(known(numbers, 3818.0), shares)
    assert (kept[:, 2:7] == 0.0).all() and torch.equal(kept[:, 7:], before[:, 7:])
    assert kept[:, :7].sum(dim=1).numpy() == pytest.approx(1.0)
    assert kept[0, 1] == 1.0, "who had more has the most that is shown"
    assert torch.equal(shares, before)


def test_a_tail_that_stands_above_noise_stays():
    numbers = [3000.0, 900.0, 300.0, 120.0, 80.0, 60.0, 130.0]
    kept = without_far_numbers(known(numbers, 3000.0), torch.full((2, 10), 0.1))
    assert (kept[:, :7] > 0.0).all()


def test_noise_behind_a_few_who_have_many_takes_none_of_them():
    """Of accounts, 229 with four orders; seven labels behind them hold noise alone."""
    numbers = [742.0, 2103.0, 949.0, 416.0, 229.0, 62.0, -90.0, -70.0, 24.0, 16.0, -50.0]
    assert sum(numbers[4:]) < STD * (2 * len(numbers[4:])) ** 0.5
    kept = without_far_numbers(known(numbers, 742.0), torch.full((2, 14), 0.1))
    assert (kept[:, :6] > 0.0).all() and (kept[:, 6:11] == 0.0).all()


@pytest.mark.parametrize(
    ("gone", "never"), [(3818.0, True), (3900.0, True), (3700.0, True), (4100.0, False)]
)
def test_events_never_miss_what_only_lacks_where_there_is_none(gone, never):
    found = never_missing(known([3818.0, 682.0], gone))
    assert found == (["sum"] if never else [])
