"""A fit from codes on disk is the fit from codes in memory, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding import stored_codes
from core.encoding.codec import Codes
from core.encoding.key_groups import public_order
from core.encoding.stored_codes import StoredCodes, store_codes
from core.models.pearl.characteristic_function import PairDistance
from core.models.saved_model import Fitted
from core.privacy import guarded, summation
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan
from core.privacy.summation import InThreads
from tests.contract.fits import IDS, fit, planned
from tests.models.tables import coded
from tests.privacy import toys
from tests.privacy.deterministic_noise import DeterministicNoise

pytestmark = pytest.mark.slow


def stored(codes: Codes, plan: Plan, folder: Path) -> StoredCodes:
    codec, _ = coded(1)

    def parts() -> Iterator[Codes]:
        for start in range(0, len(codes), 77):
            yield codes.slice(start, start + 77)

    written = store_codes(parts(), codec, plan.n, folder)
    assert written is not None
    return written


def table(plan: Plan, codes: Any, **more: Any) -> PrivateTable:
    codec, _ = coded(1)
    noise = DeterministicNoise(5)
    return PrivateTable(codes, codec.domain, plan, chunk_rows=64, noise_source=noise, **more)


@pytest.mark.parametrize("model", IDS)
def test_every_model_fits_the_same(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summation, "BLOCK_CHUNKS", 3)
    plan = planned(model)
    _, codes = coded(plan.n)
    on_disk = stored(codes, plan, tmp_path)

    def rows(table: PrivateTable, name: str) -> pd.DataFrame:
        (tmp_path / name).mkdir()
        fitted: Fitted = fit(table, plan, tmp_path / name)
        return fitted.sample(200, seed=2)

    in_memory = rows(table(plan, codes), "memory")
    monkeypatch.setattr(guarded, "EXPAND_AT_ONCE", 0)  # batches by index
    streamed = rows(table(plan, on_disk, summation=InThreads()), "disk")
    pd.testing.assert_frame_equal(in_memory, streamed)


def distances(codes: Any, present: np.ndarray | None = None) -> torch.Tensor:
    """A statistic of pairs, which sees the order."""
    plan = toys.plan(len(codes), [toys.phase(noise_multiplier=1e-9)])
    return table(plan, codes, present=present).release("sum", PairDistance(((1, 1), (2, 2))))


def test_another_order_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: rows on disk in the file's order pair up otherwise."""
    codec, codes = coded(1000)
    plan = toys.plan(1000, [toys.phase()])
    honest = distances(codes)
    assert torch.equal(honest, distances(stored(codes, plan, tmp_path)))
    in_file_order = np.arange(1000, dtype=np.uint32)
    monkeypatch.setattr(stored_codes, "positions_in_order", lambda n: in_file_order[:n])
    assert not torch.allclose(honest, distances(stored(codes, plan, tmp_path)), rtol=1e-3)


@pytest.mark.parametrize("gone", [0, 17, 999])
def test_the_same_record_is_left_out_and_only_its_pair_goes(tmp_path: Path, gone: int) -> None:
    _, codes = coded(1000)
    on_disk = stored(codes, toys.plan(1000, [toys.phase()]), tmp_path)
    present = np.arange(1000) != gone
    without = distances(on_disk, present)
    assert torch.equal(distances(codes, present), without)
    order = public_order(1000)
    place = int(np.flatnonzero(order == gone)[0])
    pair = order[place // 2 * 2 : place // 2 * 2 + 2]
    own = PairDistance(((1, 1), (2, 2))).statistic(codes.take(pair), torch.ones(2))
    assert torch.allclose(distances(on_disk) - without, own, atol=1e-5)


@pytest.mark.parametrize("replaced", [0, 17, 999])
def test_a_replaced_row_keeps_its_place_and_its_pair(tmp_path: Path, replaced: int) -> None:
    codes = Codes(np.zeros_like(coded(1000)[1].states), coded(1000)[1].values)  # no value missing
    other = Codes(codes.states, codes.values.copy())
    other.values[replaced] = 1.0 - codes.values[replaced]
    on_disk = [stored(one, toys.plan(1000, [toys.phase()]), tmp_path) for one in (codes, other)]
    before, after = (distances(one) for one in on_disk)
    assert torch.equal(before, distances(codes)) and torch.equal(after, distances(other))
    moved = float((after - before).norm())
    assert 0.0 < moved <= 2.0 * PairDistance(((1, 1), (2, 2))).sensitivity


def test_rows_of_people_are_not_taken_from_disk(tmp_path: Path) -> None:
    from core.encoding.person_rows import PersonRows

    _, codes = coded(100)
    plan = toys.plan(100, [toys.phase()])
    people = PersonRows(np.arange(101))
    with pytest.raises(ValueError, match="read in memory"):
        table(plan, stored(codes, plan, tmp_path), people=people)
