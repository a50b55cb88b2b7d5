"""Every model keeps rules and makes people; saved and loaded it makes the same."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pandas as pd
import pytest

from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records
from core.lmdp.shift import Shift
from core.models.events import Preview
from core.models.layout_rows import LayoutRows, laid_out, previewed
from core.models.registry import load_fitted
from core.models.saved_model import LAYOUT, SavedModel
from core.privacy.guarded import PrivateTable
from core.runs.request import RunRequest
from core.services.planning import make_plan
from tests.contract.fits import IDS, QUICK, fit, quick_fit
from tests.encoding.layouts import (
    LOOKED_UP,
    ORDERED,
    PERSON,
    STAY,
    TOTAL,
    faults,
    made,
    schema,
)
from tests.histories import three_levels
from tests.models.scan_focus.fitted_windows import PEOPLE, trained
from tests.models.tables import Watcher

pytestmark = pytest.mark.slow

SCHEMA = schema((LOOKED_UP, ORDERED, STAY, TOTAL), PERSON)
N = 240


@functools.cache
def fitted(model: str) -> tuple[SavedModel, Watcher]:
    """A quick fit of rows that keep the rules, as a run makes it."""
    domain = SCHEMA.domain()
    layout, table = Layout(domain), made(domain, N)
    codes, people = encoded_records(table, layout, SCHEMA.person)
    assert people is not None
    plan = make_plan(SCHEMA, people.n, RunRequest(model=model, epsilon=1.0, settings=QUICK[model]))
    watcher = Watcher()
    with tempfile.TemporaryDirectory() as folder:
        door = PrivateTable(codes, layout.domain, plan, people=people)
        inner = fit(door, plan, Path(folder), previewed(watcher, layout))
    outer = laid_out(SavedModel.of(inner), layout)
    assert outer.transform(LAYOUT)
    return outer, watcher


@pytest.mark.parametrize("model", IDS)
def test_rows_of_every_model_keep_the_rules_and_belong_to_people(
    model: str, tmp_path: Path
) -> None:
    outer, watcher = fitted(model)
    domain = SCHEMA.domain()
    table = outer.sample(150, seed=3)
    assert len(table) == 150 and faults(table, domain) == []
    if outer.baseline is not None:
        assert faults(outer.baseline.sample(50, seed=3), domain) == []
    for event in watcher.events:
        if isinstance(event, Preview) and event.rows:
            assert list(event.rows[0]) == [column.name for column in domain.columns]
    outer.save(tmp_path)
    again = load_fitted(model, tmp_path)
    assert again.domain == domain
    pd.testing.assert_frame_equal(again.sample(150, seed=3), table)


def test_the_layout_comes_after_the_marginal_shift(tmp_path: Path) -> None:
    outer, _ = fitted("pearl")
    inner = outer.without(LAYOUT)
    shift = Shift.find(inner, {"g": ("pulse", "pressure")}, power=0.2, key=b"k" * 32)
    table = inner.then(shift).then(LayoutRows(Layout(SCHEMA.domain())))
    assert table.baseline is None  # what the model would make without a shift is hidden
    table.save(tmp_path)
    loaded = load_fitted("pearl", tmp_path)
    assert [one.kind for one in loaded.transforms] == ["shift", "layout"]
    pd.testing.assert_frame_equal(loaded.sample(20, seed=1), table.sample(20, seed=1))


def test_a_table_that_models_see_as_it_is_needs_no_layout() -> None:
    plain = SavedModel.of(quick_fit("pearl").fitted)
    assert laid_out(plain, Layout(plain.domain)) is plain
    watcher = Watcher()
    assert previewed(watcher, Layout(plain.domain)) is watcher


def test_previews_of_histories_are_people_with_their_first_event(tmp_path: Path) -> None:
    rows, declared, _ = three_levels(PEOPLE)
    windows, watcher = SavedModel.of(trained(rows, declared, tmp_path)).base, Watcher()
    previewed(watcher, Layout(declared.domain()))(Preview(rows=windows.preview()))
    [event] = watcher.events
    assert isinstance(event, Preview)
    drawn = pd.DataFrame(event.rows)
    assert drawn.columns.tolist() == ["who", "sex", "members.who", "member", "age", "kind"]
    assert drawn["who"].is_unique and drawn["sex"].notna().all()
    there = drawn["members.who"].notna()
    assert there.any() and (drawn["members.who"] == drawn["who"])[there].all()
    assert drawn.loc[there, "kind"].isin(rows["kind"].dropna()).all()
    assert drawn.loc[~there, "kind"].isna().all()
