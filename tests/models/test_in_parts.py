"""Synthetic rows some at a time: the same for a seed, whole people, keys that nobody shares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding.layout.layout import Layout
from core.models import in_parts
from core.models.in_parts import sample_parts, sampled
from core.models.layout_rows import laid_out
from core.models.saved_model import SavedModel
from core.models.shaped_output import Shape, draw_shaped
from core.schema.column import Column, Kind
from core.schema.person import Person
from core.schema.schema import Schema
from core.writing.tables import write_csv_parts, write_parquet_parts
from tests.contract.fits import IDS, quick_fit
from tests.runs.toy import ToyFitted

pytestmark = pytest.mark.slow

ROWS = 100


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_parts, "PART_ROWS", 30)


def schema(person: Person | None = None) -> Schema:
    return Schema(
        person=person,
        columns=(
            Column(name="who", kind=Kind.IDENTIFIER, pattern="P#####"),
            Column(name="number", kind=Kind.IDENTIFIER, dtype="int64"),
            Column(name="name", kind=Kind.IDENTIFIER),
            Column(name="age", kind=Kind.INTEGER, low=0, high=99, step=1, dtype="int64"),
            Column(name="sex", kind=Kind.CATEGORY, categories=("f", "m"), dtype="str"),
        ),
    )


def model(person: Person | None = None) -> SavedModel:
    layout = Layout(schema(person).domain())
    return laid_out(SavedModel(ToyFitted(layout.domain)), layout)


def test_few_rows_are_the_models_own() -> None:
    pd.testing.assert_frame_equal(sampled(model(), 30, 7), model().sample(30, 7))
    (only,) = sample_parts(model(), 30, 7)
    pd.testing.assert_frame_equal(only, model().sample(30, 7))


def test_many_rows_are_parts_of_their_own_that_come_again() -> None:
    parts = list(sample_parts(model(), ROWS, 7))
    assert [len(part) for part in parts] == [30, 30, 30, 10]
    together = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(together, sampled(model(), ROWS, 7))
    pd.testing.assert_frame_equal(together, draw_shaped(model(), ROWS, Shape(), 7).table)
    ages = [tuple(part["age"][:10]) for part in parts]
    assert len(set(ages)) == 4  # no part repeats another
    assert not sampled(model(), ROWS, 8)["age"].equals(together["age"])
    assert not sampled(model(), ROWS)["age"].equals(sampled(model(), ROWS)["age"])


def test_keys_go_on_from_part_to_part() -> None:
    table = sampled(model(), ROWS, 7)
    whole = model().sample(ROWS, 7)
    for name in ("who", "number", "name"):
        assert table[name].is_unique
        pd.testing.assert_series_equal(table[name], whole[name])  # as if made at once


def test_people_lie_in_one_part_each() -> None:
    person = Person(columns=("who",), rows=5)
    parts = list(sample_parts(model(person), ROWS, 7))
    people = [set(part["who"]) for part in parts]
    assert [len(part) for part in parts] == [30, 30, 30, 10]
    assert sum(map(len, people)) == len(set().union(*people)) > 20
    counts = pd.concat(parts)["who"].value_counts()
    assert counts.max() <= 5 and counts.mean() > 1.5


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", IDS)
def test_threads_draw_the_same_rows(
    kind: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = quick_fit(kind).fitted
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    rows = sampled(fitted, 200, 3)
    alone = [fitted.sample(30, _seed(3, part)) for part in range(6)]
    expected = pd.concat([*alone, fitted.sample(20, _seed(3, 6))], ignore_index=True)
    own = [c.name for c in fitted.domain.columns if c.modelled]
    pd.testing.assert_frame_equal(rows[own], expected[own])


def _seed(root: int, part: int) -> int:
    state = np.random.SeedSequence((root, part)).generate_state(1, np.uint64)[0]
    return int(state >> np.uint64(1))


@pytest.mark.parametrize("escaped", [False, True])
def test_files_written_in_parts_are_those_written_at_once(tmp_path: Path, escaped: bool) -> None:
    parts, whole = list(sample_parts(model(), ROWS, 7)), sampled(model(), ROWS, 7)
    one, other = tmp_path / "one", tmp_path / "other"
    for given in (None, schema()):
        write_csv_parts([whole], one, schema=given, escape_formulas=escaped)
        write_csv_parts(parts, other, schema=given, escape_formulas=escaped)
        assert one.read_bytes() == other.read_bytes()
        write_parquet_parts([whole], one, schema=given)
        write_parquet_parts(parts, other, schema=given)
        pd.testing.assert_frame_equal(pd.read_parquet(one), pd.read_parquet(other))
