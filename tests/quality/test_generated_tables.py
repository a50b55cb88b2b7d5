"""Generated tables are what they say: the same for a seed, inside their bounds, true to rules."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.generated_tables import REPORTED, TUNING, make
from core.encoding.layout.violations import count_violations
from core.proposing.misfits import misfits
from core.reading.tally import Tally
from core.schema.schema import Schema

ROWS = 400
NARROW = [name for name in (*TUNING, *REPORTED) if name != "wide1000"]
PARITIES = [name for name in NARROW if "parity" in name]
RULED = ["dependencies", "tuning_codes"]
BLOCKS = ["blocks200", "tuning_blocks"]


def test_families_are_apart():
    assert len(TUNING) >= 12
    assert not set(TUNING) & set(REPORTED)
    with pytest.raises(KeyError, match="parity3"):
        make("parity9")


@pytest.mark.parametrize("name", NARROW)
def test_shapes_and_declarations_hold(name):
    table = make(name, rows=ROWS)
    assert (len(table.train), len(table.test)) == (ROWS, 1_000)
    assert tuple(table.train.columns) == table.schema.names == tuple(table.test.columns)
    assert table.schema.rules == ()  # truths are for tests; no model is told
    assert table.schema.target == table.target
    for column in table.schema.columns:
        cells = pd.concat([table.train[column.name], table.test[column.name]], ignore_index=True)
        assert str(cells.dtype) == column.dtype
        assert misfits(Tally.of(cells), column) == 0, column.name


@pytest.mark.parametrize("name", NARROW)
def test_a_seed_draws_rows_and_a_name_fixes_the_rest(name):
    first, again, other = make(name, ROWS), make(name, ROWS), make(name, ROWS, seed=1)
    pd.testing.assert_frame_equal(first.train, again.train)
    pd.testing.assert_frame_equal(first.test, again.test)
    assert not first.train.equals(other.train)
    assert (first.schema, first.truth) == (other.schema, other.truth)


@pytest.mark.parametrize("name", NARROW)
def test_the_target_has_two_values(name):
    table = make(name, rows=4_000)
    share = float(table.train[table.target].mean())
    assert (0.0005 < share < 0.005) if name == "tuning_rare" else (0.05 < share < 0.95)


@pytest.mark.parametrize("name", PARITIES)
def test_only_all_columns_of_a_parity_show_the_class(name):
    table = make(name, rows=8_000)
    assert len(table.truth.parity) == int(name[-1])
    above = table.train[list(table.truth.parity)]
    middles = [0.5 if c.startswith("u") else 1.0 if c.startswith("z") else 0.0 for c in above]
    signs = above.to_numpy() > np.array(middles)
    label = table.train["class"].to_numpy() == 1
    agreed = float((np.logical_xor.reduce(signs, axis=1) == label).mean())
    assert agreed > (0.96 if name in REPORTED else 0.88)
    for left_out in range(signs.shape[1]):
        fewer = np.logical_xor.reduce(np.delete(signs, left_out, axis=1), axis=1)
        assert abs(float((fewer == label).mean()) - 0.5) < 0.03  # 5 σ at 8,000 rows


@pytest.mark.parametrize("name", RULED)
def test_rules_hold_in_every_row_and_can_be_broken(name):
    table = make(name, rows=ROWS)
    ruled = Schema.model_validate(
        table.schema.model_dump() | {"rules": [r.model_dump() for r in table.truth.rules]}
    ).domain()
    assert len(ruled.rules) == 3
    assert not any(count_violations(table.train, ruled).values())
    rng = np.random.default_rng(1)
    shuffled = pd.DataFrame({name: rng.permutation(table.train[name]) for name in table.train})
    assert min(count_violations(shuffled, ruled).values()) > ROWS / 5


@pytest.mark.parametrize("name", BLOCKS)
def test_strong_pairs_are_strong_and_all_of_them(name):
    table = make(name, rows=3_000)
    correlation = table.train.corr().abs()
    strong = {frozenset(pair) for pair in table.truth.strong_pairs}
    names = list(correlation)
    for i, a in enumerate(names):
        values = correlation[a].to_numpy()[i + 1 :]
        inside = np.array([frozenset((a, b)) in strong for b in names[i + 1 :]], dtype=bool)
        assert values[inside].min(initial=1.0) > 0.3
        assert values[~inside].max(initial=0.0) < 0.12  # 6.5 σ at 3,000 rows


def test_the_wide_table_is_wide():
    table = make("wide1000", rows=50)
    assert table.train.shape == (50, 1_000)
    assert {column.kind.value for column in table.schema.columns} == {
        "number", "integer", "category",
    }  # fmt: skip
