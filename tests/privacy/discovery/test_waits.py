"""Dates that follow soon after one another: what is counted of them, and what follows from that."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.encoding.layout.layout import Layout
from core.privacy.discovery.grids import value_grid, wait_grid
from core.privacy.discovery.open_domain import open_domain, reopened
from core.privacy.discovery.release import first_counts
from core.schema.column import Kind
from core.schema.person import Person
from core.schema.rules.rules import AtMost, parse_rule
from core.schema.schema import Schema
from tests.privacy.discovery.test_domain_release import SLACK, cell_moves, check_delta, units
from tests.privacy.learned_tables import learn, schema_for, to_learn

N = 4000
DAY = pd.Timedelta(days=1)
FOUND = AtMost(low="admitted", high="discharged", learned=True)


def stays(rows: int = N, *, longest: float = 20.0, wrong: float = 0.0, seed: int = 3):
    """Stays of some days within three years, of which a share end before they begin."""
    random = np.random.default_rng(seed)
    begin = pd.Timestamp("2020-01-01") + random.integers(0, 1000, rows) * DAY
    days = random.integers(0, int(longest) + 1, rows)
    days = np.where(random.random(rows) < wrong, -days - 1, days)
    return pd.DataFrame({"admitted": begin, "discharged": begin + days * DAY})


def rules_of(frame: pd.DataFrame, epsilon: float = 1.0, seed: int = 1) -> tuple[AtMost, ...]:
    schema = schema_for(frame)
    found = learn(frame, schema, epsilon, seed).schema(schema).rules
    return tuple(rule for rule in found if isinstance(rule, AtMost))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 4))
def test_no_unit_moves_counts_of_waits_beyond_delta(seed, most):
    owner, weights = units(12, most, seed)
    frame = stays(12, seed=seed).assign(left=stays(12, seed=seed + 1)["discharged"])
    frame.loc[0, "discharged"] = pd.NaT
    wanted = open_domain(schema_for(frame))
    assert len(wanted.waits) == 6
    assert max(cell_moves(first_counts(wanted), frame, wanted, owner, weights)) <= SLACK


def test_waits_are_part_of_delta_and_twins_are_caught():
    check_delta(stays(2), schema_for(stays(2)))


@pytest.mark.parametrize("seed", range(4))
def test_dates_that_follow_soon_make_a_rule(seed):
    assert rules_of(stays(seed=seed), seed=seed) == (FOUND,)
    assert rules_of(stays(wrong=0.2, seed=seed), seed=seed) == ()
    assert rules_of(stays(longest=900.0, seed=seed), seed=seed) == ()
    assert rules_of(stays(60, seed=seed), 0.3, seed=seed) == ()  # noise hides it
    frame = stays(seed=seed)
    shuffled = frame["discharged"].sample(frac=1.0, random_state=seed).to_numpy()
    assert rules_of(frame.assign(discharged=shuffled), seed=seed) == ()


def test_each_date_follows_on_the_nearest_and_on_one():
    frame = stays()
    frame["billed"] = frame["discharged"] + 90 * DAY
    found = {(rule.low, rule.high) for rule in rules_of(frame, 3.0)}
    assert found == {("admitted", "discharged"), ("discharged", "billed")}


def test_the_earlier_date_may_come_last_in_the_file():
    frame = stays()[["discharged", "admitted"]].assign(filed=lambda rows: rows["discharged"])
    found = {(rule.low, rule.high) for rule in rules_of(frame, 3.0)}
    assert ("admitted", "discharged") in found or ("admitted", "filed") in found
    assert len(found) == 2, "of dates that are always equal, one follows on the other"
    schema = schema_for(frame)
    layout = Layout(learn(frame, schema, 3.0).schema(schema).domain())
    back = layout.from_model(layout.to_model(frame), 0)
    assert all((back[low] <= back[high]).all() for low, high in found)


def test_models_see_the_wait_and_rows_keep_it():
    frame, schema = stays(), schema_for(stays())
    schema = learn(frame, schema, 2.0).schema(schema)
    layout = Layout(schema.domain())
    assert [column.name for column in layout.domain.modelled] == [
        "admitted",
        "discharged - admitted",
    ]
    back = layout.from_model(layout.to_model(frame), 0)
    inside = (frame["discharged"] <= back["discharged"].max()) & (back["admitted"].notna())
    wait = (back["discharged"] - back["admitted"])[inside]
    assert ((frame["discharged"] - frame["admitted"])[inside] == wait).mean() > 0.97
    assert reopened(schema).rules == ()  # another run finds it anew


def test_dates_that_follow_keep_their_own_days():
    """Stays begin on Mondays and end on Tuesdays or Fridays, at noon."""
    begin = stays(longest=0.0)["admitted"]
    begin -= begin.dt.day_of_week * DAY
    frame = pd.DataFrame({"admitted": begin, "discharged": begin + 1.5 * DAY})
    frame["discharged"] += np.random.default_rng(0).choice([0, 3, 7], N) * DAY
    schema = schema_for(frame)
    schema = schema.replace(schema["discharged"].model_copy(update={"step": 1.0}))
    layout = Layout(learn(frame, schema, 3.0).schema(schema).domain())
    assert FOUND in layout.output.rules
    seen = layout.to_model(frame)
    seen["discharged - admitted"] += np.random.default_rng(1).integers(0, 5 * 86_400, N)
    back = layout.from_model(seen, 0)
    assert (back["discharged"] >= back["admitted"]).all()
    assert (back["admitted"].dt.day_of_week == 0).mean() > 0.99
    assert back["discharged"].dt.day_of_week.isin([1, 4]).mean() > 0.97
    assert (back["discharged"].dt.hour == 12).mean() > 0.97


def test_what_is_compared_follows_from_the_schema_alone():
    names = ("born", "asked", "admitted", "seen", "discharged", "billed")
    few = Schema(columns=tuple(to_learn(name, Kind.DATETIME) for name in names[2:5]))

    def either_way(*pairs: tuple[str, str]) -> set[tuple[str, str]]:
        return {*pairs, *(pair[::-1] for pair in pairs)}

    assert set(open_domain(few).waits) == either_way(*combinations(names[2:5], 2))
    many = Schema(columns=tuple(to_learn(name, Kind.DATETIME) for name in names))
    assert set(open_domain(many).waits) == either_way(*pairwise(names))
    ruled = few.model_copy(update={"rules": (parse_rule("admitted <= seen"),)})
    assert open_domain(ruled).waits == ()
    follows = few.model_copy(update={"rules": (parse_rule("seen[t+1] >= admitted[t]"),)})
    assert len(open_domain(follows).waits) == 6
    person = Person(columns=("who",), rows=4, constant=("born", "asked"), order="admitted")
    columns = (to_learn("who", Kind.IDENTIFIER), *many.columns[:5])
    of_people = Schema(columns=columns, person=person)
    sorts = {("seen", "admitted")}  # what sorts rows follows on nothing
    near = either_way(("born", "asked"), ("admitted", "seen"), ("seen", "discharged"))
    assert set(open_domain(of_people).waits) == near - sorts


def test_single_values_stay_where_waits_are_counted():
    frame = stays().assign(cost=np.where(np.arange(N) % 3, 755, np.arange(N) % 970))
    schema = schema_for(frame)
    wanted = open_domain(schema)
    assert wanted.waits and wanted.single and value_grid().size > wait_grid().size
    found = learn(frame, schema, 3.0).schema(schema)
    assert found["cost"].spikes == (755.0,)
    assert FOUND in found.rules
