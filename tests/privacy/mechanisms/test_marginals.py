"""Counts that runs are compared by: public cells, no tagged column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding.bins import MOST_PAIRS, PAIR_GROUPS, SINGLE_GROUPS, pairs_of
from core.encoding.codec import Codec
from core.privacy.mechanisms.marginals import Marginals
from core.privacy.plan import Budget
from core.runs.execution.noisy_scores import ScoreCounts, cells_key, count_synthetic
from core.runs.execution.paid_release import shown_columns
from core.schema.column import Column, Kind
from core.schema.schema import Domain
from tests.models.tables import rows, schema

DOMAIN = schema().domain()
CODEC = Codec(DOMAIN)
NAMES = [column.name for column in DOMAIN.modelled]


def codes(n: int, seed: int):
    return CODEC.encode(rows(n, seed))


def everybody(n: int) -> torch.Tensor:
    return torch.ones(n, dtype=torch.float64)


def test_chunks_add_up_to_the_whole():
    mechanism = Marginals.of(CODEC, NAMES)
    whole = codes(301, 5)
    parts = [whole.slice(0, 128), whole.slice(128, 301)]
    added = sum(mechanism.statistic(part, everybody(len(part))) for part in parts)
    assert torch.equal(added, mechanism.statistic(whole, everybody(301)))


def test_cells_are_what_pandas_counts():
    frame = rows(2000, 4)
    mechanism = Marginals.of(CODEC, ["ward", "ill"], "ill")
    single = [4, 2]  # three wards and "missing"; no and yes
    assert mechanism.sizes == (*single, 8)
    found = mechanism.statistic(CODEC.encode(frame), everybody(2000))
    ward = frame["ward"].map({"a": 0, "b": 1, "c": 2}).fillna(3).astype(int)
    ill = frame["ill"].astype(int)
    assert found[:4].tolist() == np.bincount(ward, minlength=4).tolist()
    assert found[6:].tolist() == np.bincount(ward * 2 + ill, minlength=8).tolist()


def test_neighbouring_bins_share_a_group_and_missing_has_its_own():
    mechanism = Marginals.of(CODEC, ["age", "cost"])
    assert mechanism.sizes[0] == SINGLE_GROUPS
    assert mechanism.sizes[1] == SINGLE_GROUPS + 1  # costs may be missing
    assert mechanism.sizes[2] == PAIR_GROUPS * (PAIR_GROUPS + 1)
    ages = pd.DataFrame(rows(100, 1).assign(age=range(100)))
    encoded = CODEC.encode(ages)
    index = [
        int(mechanism.statistic(encoded.slice(i, i + 1), everybody(1))[:SINGLE_GROUPS].argmax())
        for i in range(100)
    ]
    assert index == sorted(index) and set(index) == set(range(SINGLE_GROUPS))


def test_pairs_are_few_and_those_with_the_target_come_first():
    names = [f"c{i}" for i in range(40)]
    found = pairs_of(names, "c20")
    assert len(found) == len(set(found)) == MOST_PAIRS
    assert sum("c20" in pair for pair in found) == 39
    assert all("c20" in pair for pair in found[:39])
    assert pairs_of(["only"]) == ()
    with pytest.raises(ValueError, match="no column"):
        Marginals.of(CODEC, [])


def test_tagged_columns_are_in_no_cell():
    """Shift a tagged column as far as it goes: nothing that is released moves."""
    frame = rows(300, 2)
    names = shown_columns(DOMAIN)
    assert names == ["cost", "ill"]
    mechanism = Marginals.of(CODEC, names, DOMAIN.target)
    moved = frame.assign(age=99, ward="a", day=frame["day"].min())
    before, after = (
        mechanism.statistic(CODEC.encode(one), everybody(300)) for one in (frame, moved)
    )
    assert torch.equal(before, after)
    made = count_synthetic(frame, DOMAIN, 300)
    assert made is not None and made.counts == tuple(before.tolist())
    hidden = DOMAIN.model_copy(update={"sensitive": {"all": tuple(NAMES)}})
    assert count_synthetic(frame, hidden, 300) is None
    with pytest.raises(ValueError, match="Every column is hidden"):
        ScoreCounts(Budget(epsilon=1.0, delta=1e-5), 0.05).phases(hidden, 1, 1.0)[0]


def test_a_key_names_cells_and_nothing_that_was_read_from_rows():
    assert cells_key(DOMAIN, 10) == cells_key(schema().domain(), 10) != cells_key(DOMAIN, 11)
    noted = [c.model_copy(update={"note": "857 of 857 are distinct"}) for c in DOMAIN.columns]
    assert cells_key(DOMAIN.model_copy(update={"columns": tuple(noted)}), 10) == cells_key(
        DOMAIN, 10
    )
    untagged = DOMAIN.model_copy(update={"sensitive": {}})
    assert cells_key(untagged, 10) != cells_key(DOMAIN, 10)
    one = Domain(columns=(Column(name="a", kind=Kind.NUMBER, low=0, high=1, dtype="float64"),))
    wider = Domain(columns=(one.columns[0].model_copy(update={"high": 2.0}),))
    assert cells_key(one, 10) != cells_key(wider, 10)


def test_a_share_out_of_range_is_refused():
    with pytest.raises(ValueError, match="share for comparing"):
        ScoreCounts(Budget(epsilon=1.0, delta=1e-5), 0.6).phases(DOMAIN, 1, 1.0)[0]
