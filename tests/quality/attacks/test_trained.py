"""Attacks on all released rows at once: by hand, on leaks without copies, and on none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.quality.aligned_tables import Features
from core.quality.metrics.attacks.disclosure import attacks
from core.quality.metrics.attacks.trained import counted, guessed
from core.schema.column import Column, Kind
from core.schema.schema import Schema

NAMES = [f"c{i}" for i in range(6)]
SCHEMA = Schema(columns=tuple(Column(name=n, kind=Kind.CATEGORY) for n in NAMES))


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.integers(0, 8, (n, len(NAMES))).astype(str), columns=NAMES)


def found(train: pd.DataFrame, holdout: pd.DataFrame, made: pd.DataFrame) -> dict[str, float]:
    _, tables = Features.fit(SCHEMA, train, holdout, made)
    return {one.key: one.p for one in attacks(*tables)}


def test_counts_by_hand():
    frame = pd.DataFrame({"a": ["x", "x", "y", "y"]})
    made = pd.DataFrame({"a": ["x", "y", "y", "y"]})
    schema = Schema(columns=(Column(name="a", kind=Kind.CATEGORY),))
    _, (real, released) = Features.fit(schema, frame, made)
    step = 0.25 / np.sqrt(0.5 + 0.25)
    assert counted(real, released) == pytest.approx([-step, -step, step, step])


def test_counts_see_three_columns_published_as_they_are():
    train, holdout, others = people(1_000, 1), people(1_000, 2), people(1_000, 3)
    made = pd.concat([train[NAMES[:3]], others[NAMES[3:]]], axis=1)  # no row is anybody's
    result = found(train, holdout, made)
    assert result["counts"] <= 0.01 < 0.05 < result["copies"]


def test_values_are_guessed_where_rows_were_copied_but_for_one():
    train, holdout = people(1_000, 1), people(1_000, 2)
    made, column = train.copy(), np.random.default_rng(0).integers(len(NAMES), size=1_000)
    for i, name in enumerate(NAMES):
        made.loc[column == i, name] = "0"
    result = found(train, holdout, made)
    assert result["values"] <= 0.001


def test_fresh_rows_raise_no_alarm_with_missing_values():
    train, holdout, made = people(600, 1), people(600, 2), people(600, 3)
    train.loc[:50, "c0"] = None
    result = found(train, holdout, made)
    assert min(result["counts"], result["values"]) > 0.01
    _, (real, released) = Features.fit(SCHEMA, train, made)
    share = guessed(real, released, "c0")
    assert share is not None and 0.05 < share.mean() < 0.25


def test_a_table_without_lists_has_no_values_to_guess():
    schema = Schema(columns=tuple(Column(name=n, kind=Kind.NUMBER) for n in "ab"))
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=list("ab"))
    _, (real, released) = Features.fit(schema, frame, frame)
    assert guessed(real, released, None) is None
