"""Tables: what an earlier run learned is offered, used at its cost, and learned anew at a press."""

from __future__ import annotations

import math

import pytest

from core.privacy.discovery.open_domain import open_domain
from core.runs.accounts.learned_earlier import noted_earlier, taken_columns
from core.runs.events import State
from core.schema.rounding_up import round_up
from core.services import imports, tables
from core.services.sample_tables import sample_table
from tests.pages.screen import button, buttons, press, whole, words
from tests.pages.tables.test_tables_page import edit
from tests.runs.workers import queued, toy_plan, work

pytestmark = pytest.mark.slow

USE = "Use what an earlier run learned"


@pytest.fixture
def learning(store, table):
    """The sample table, of which a finished run learned all."""
    learning = tables.learn_all(store, table)
    run = work(store, queued(store, learning, toy_plan(learning, epsilon=8.0)).id)
    assert run.state is State.DONE, run.error
    return learning


def test_one_press_uses_what_an_earlier_run_learned(store, learning, show):
    at = whole(show("tables", table=learning.id))
    said = words(at)
    assert "Columns that an earlier run already learned: " in said
    (run,) = store.runs()
    epsilon = next(c.learned.epsilon for c in run.schema.columns if c.learned is not None)
    spent = f"the ε = {round_up(epsilon, '.3g'):.3g} that was spent on"
    assert spent in said and "Using this costs nothing more" in said
    at = whole(press(at, USE))
    used = store.table(learning.id)
    assert open_domain(used.schema).names == ()
    age = used.schema["age"]
    assert (age.low, age.high) == (run.schema["age"].low, run.schema["age"].high)
    grid = at.dataframe[0].value.set_index("column")
    assert grid.loc["age", "keep"] == "learned earlier" and grid.loc["age", "to"] == f"{age.high:g}"
    assert f"ledger entry {run.debit}" in grid.loc["ward", "origin"]
    assert USE not in buttons(at) and "Declare all public" not in buttons(at)
    said = words(at)
    assert f"Columns taken from an earlier run: {len(taken_columns(used.schema))}" in said
    assert spent in said and not button(at, "Plan a synthetic table").disabled


def test_the_plan_page_counts_what_was_learned_before(store, learning, show):
    at = whole(press(show("tables", table=learning.id), USE))
    whole(press(at, "Plan a synthetic table"))
    at = whole(show("plan", table=learning.id))
    claimed = next(float(one.value) for one in at.metric if one.label == "ε")
    own = math.fsum(one.epsilon for one in noted_earlier(store.table(learning.id).schema))
    assert claimed > own > 0.0 and "that an earlier run learned (ledger entry" in words(at)
    assert "ε does not protect the following" not in words(at)


def test_columns_are_learned_anew_one_by_one_or_all(store, learning, show):
    at = whole(press(show("tables", table=learning.id), USE))
    edit(at, store.table(learning.id), "age", keep="learn")
    kept = store.table(learning.id)
    assert open_domain(kept.schema).names == ("age",)
    assert (kept.schema["age"].low, kept.schema["age"].high) == (
        learning.schema["age"].low,
        learning.schema["age"].high,
    )
    at = whole(show("tables", table=learning.id))
    assert USE in buttons(at)  # for that column again
    at = whole(press(at, "Learn anew"))
    anew = store.table(learning.id).schema
    assert set(open_domain(anew).names) == set(open_domain(learning.schema).names)
    assert noted_earlier(anew) == () and "Learn anew" not in buttons(at)


def test_a_run_about_other_people_is_not_offered(store, learning, show):
    frame = sample_table(400).assign(age=50)
    other = imports.import_frame(store, frame, name="o", source="test", account_id="others")
    assert USE not in buttons(whole(show("tables", table=other.id)))
    declared = tables.declare_all(store, learning)
    assert USE not in buttons(whole(show("tables", table=declared.id)))
