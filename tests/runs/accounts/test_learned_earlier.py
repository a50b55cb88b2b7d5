"""What a later run takes of an earlier one about the same people, and what that costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from core.privacy.discovery.open_domain import as_learned, open_domain
from core.runs.accounts.learned_earlier import (
    learned_columns,
    learned_earlier,
    noted_earlier,
    taken_columns,
    with_learned,
)
from core.runs.accounts.spending import promised_claim
from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.records import RunRecord, TableRecord
from core.runs.storage.store import RunStore
from core.schema.column import DomainColumn, DomainSource, Kind, Provenance
from core.schema.person import Person
from core.schema.rules.rules import AtMost
from core.schema.schema import Schema
from core.services import imports, runs, tables
from core.services.public_domains import learn_anew, learned_before, use_learned
from core.services.sample_tables import sample_table
from core.services.schema_grid import grid_of
from tests.runs.workers import HereLauncher, queued, toy_plan, work

pytestmark = pytest.mark.slow

ROWS = 1500
Change = Callable[[Schema], Schema]


@pytest.fixture
def table(store: RunStore) -> TableRecord:
    frame = sample_table(ROWS)
    frame.loc[frame.index % 3 == 0, "visit_id"] = None  # of made-up values a third is missing
    return imports.import_frame(store, frame, name="t", source="test")


@pytest.fixture
def run(store: RunStore, table: TableRecord) -> RunRecord:
    done = work(store, queued(store, table, toy_plan(table, epsilon=8.0)).id)
    assert done.state is State.DONE, done.error
    return done


def known(run: RunRecord) -> tuple[DomainColumn, ...]:
    return learned_columns(run.schema, run.debit)


def set_to(name: str, **fields: object) -> Change:
    return lambda schema: schema.replace(schema[name].model_copy(update=fields))


def tag(schema: Schema) -> Schema:
    return schema.model_copy(update={"sensitive": {"g": ("ward",)}})


def key(schema: Schema) -> Schema:
    return schema.model_copy(update={"person": Person(columns=("ward",), rows=2)})


def without(name: str) -> Change:
    return lambda schema: schema.model_copy(
        update={"columns": tuple(c for c in schema.columns if c.name != name), "target": None}
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ward", without("ward")),
        ("ward", set_to("ward", kind=Kind.TEXT)),
        ("ward", set_to("ward", kind=Kind.ORDERED, dtype="int64")),
        ("visit_date", set_to("visit_date", date_format="%d.%m.%y")),
        ("ward", tag),
        ("ward", key),
        ("age", set_to("age", source=DomainSource.DECLARED)),
        ("age", set_to("age", source=DomainSource.DROP)),
        ("ward", set_to("ward", categories=("a ward that the steward knows",))),
    ],
)
def test_what_changed_since_is_left_as_it_is(table, run, name: str, change: Change) -> None:
    changed = change(table.schema)
    schema = with_learned(changed, known(run))
    names = {column.name for column in taken_columns(schema)}
    assert name not in names and len(names) > 5
    if name in changed.names:
        assert schema[name] == changed[name]


def test_all_that_is_open_is_taken_once(table: TableRecord, run: RunRecord) -> None:
    schema = with_learned(table.schema, known(run))
    assert open_domain(schema).names == () and len(noted_earlier(schema)) == 1
    assert with_learned(schema, known(run)) == schema
    for column in taken_columns(schema):
        before = run.schema[column.name]
        assert column.kind.surrogate or column.domain_digest == before.domain_digest
        assert column.form == (
            before.form if column.kind.surrogate else table.schema[column.name].form
        )
    assert with_learned(table.schema, ()) == table.schema


def test_a_made_up_column_alone_costs_what_the_run_learned(table, run, store) -> None:
    """Which share of its values is missing was released too."""
    declared = table.schema.as_proposed()
    own = table.schema["visit_id"]
    assert own.kind.surrogate and own.source is DomainSource.LEARNED
    schema = with_learned(declared.replace(own), known(run))
    assert schema["visit_id"].absent == pytest.approx(1 / 3, abs=0.1)
    (cost,) = learned_earlier(store, table.account_id, schema)
    assert cost.epsilon > 0.0 and cost.entry == run.debit
    plan = toy_plan(table)
    assert promised_claim(plan, schema).epsilon == plan.guarantee.epsilon + cost.epsilon
    other = schema["visit_id"].model_copy(update={"absent": 0.9})
    with pytest.raises(RunStoreError, match="no run about these people learned it"):
        learned_earlier(store, table.account_id, schema.replace(other))


def test_a_later_run_keeps_orders_that_an_earlier_one_found(store: RunStore) -> None:
    begin = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(4000) * 7919 % 1000, unit="D")
    end = begin + pd.to_timedelta(np.arange(4000) % 20, unit="D")
    frame = pd.DataFrame({"admitted": begin, "discharged": end})
    stays = imports.import_frame(store, frame, name="stays", source="test")
    first = work(store, queued(store, stays, toy_plan(stays, epsilon=8.0)).id)
    assert first.state is State.DONE, first.error
    order = AtMost(low="admitted", high="discharged", learned=True)
    assert first.schema.rules == (order,)

    taken = tables.confirm_schema(store, stays.id, with_learned(stays.schema, known(first)))
    assert open_domain(taken.schema).names == () and taken.schema.rules == ()
    second = work(store, queued(store, taken, toy_plan(taken)).id)
    assert second.state is State.DONE, second.error
    assert second.schema.rules == (order,)
    forged = taken.schema["discharged"].learned.model_copy(update={"after": ""})
    changed = taken.schema["discharged"].model_copy(update={"learned": forged})
    with pytest.raises(RunStoreError, match="'discharged' is marked"):
        learned_earlier(store, stays.account_id, taken.schema.replace(changed))


def test_a_cheaper_mark_is_no_runs(store, table, run) -> None:
    schema = with_learned(table.schema, known(run))
    learned = schema["age"].learned.model_copy(update={"epsilon": 0.0})
    forged = schema.replace(schema["age"].model_copy(update={"learned": learned}))
    assert forged["age"].provenance is Provenance.LEARNED
    with pytest.raises(RunStoreError, match="'age' is marked"):
        learned_earlier(store, table.account_id, forged)


def test_another_unit_of_privacy_does_not_add_up(store, table, run) -> None:
    """ε of a row says too little of a person with several rows."""
    person = Person(columns=("visit_id",), rows=3)
    alone = table.schema.model_copy(update={"person": person})
    schema = with_learned(alone, known(run))
    with pytest.raises(RunStoreError, match="with the same protection"):
        learned_earlier(store, table.account_id, schema)
    table = store.save_schema(table.id, alone)
    assert learned_before(table, store.runs()) is None


def test_another_account_is_refused_before_a_run_is_made(store, table, run) -> None:
    frame = sample_table(ROWS).assign(age=50)
    other = imports.import_frame(store, frame, name="o", source="test", account_id="others")
    assert learned_before(other, store.runs()) is None
    schema = with_learned(other.schema, known(run))
    with pytest.raises(RunStoreError, match="no run about these people"):
        use_learned(store, other, schema)
    assert store.table(other.id).schema == other.schema
    other = store.save_schema(other.id, schema)
    store.attest(other.id)
    before = len(store.runs())
    with pytest.raises(RunStoreError, match="Nothing was spent"):
        runs.start(store, HereLauncher(store, slots=1), other.id, toy_plan(other), run.request)
    assert len(store.runs()) == before


def test_a_run_is_offered_where_it_learned_what_is_open(store, table, run) -> None:
    again = imports.import_frame(store, sample_table(ROWS), name="again", source="test")
    assert again.account_id == table.account_id
    found = learned_before(again, store.runs())
    assert found is not None and found[0].id == run.id
    queued(store, again, toy_plan(again))  # which has not ended
    assert learned_before(again, store.runs()) == found
    declared = tables.declare_all(store, again)
    assert learned_before(declared, store.runs()) is None
    used = use_learned(store, again, found[1])
    assert learned_before(used, store.runs()) is None
    more = queued(store, used, toy_plan(used))
    done = work(store, more.id)
    assert done.state is State.DONE, done.error
    assert done.guarantee.epsilon == pytest.approx(
        toy_plan(used).guarantee.epsilon + noted_earlier(used.schema)[0].epsilon, rel=1e-6
    )
    # of a run that learned nothing itself, the next one takes what it took, at the first one's cost
    third = with_learned(table.schema, known(done))
    assert learned_earlier(store, table.account_id, third) == noted_earlier(used.schema)


def test_what_was_taken_is_learned_anew_at_a_word(store, table, run) -> None:
    found = learned_before(table, store.runs())
    used = use_learned(store, table, found[1])
    grid = grid_of(used.schema)
    assert grid.set_index("column").loc["age", "keep"] == "learned earlier"
    assert "earlier run" in grid.set_index("column").loc["age", "origin"]
    grid.loc[grid["column"] == "age", "keep"] = "learn"
    one = tables.change_grid(store, used, grid)
    assert open_domain(one.schema).names == ("age",)
    assert (one.schema["age"].low, one.schema["age"].high) == (
        table.schema["age"].low,
        table.schema["age"].high,
    )
    all_ = learn_anew(store, one)
    assert noted_earlier(all_.schema) == ()
    assert all_.schema == table.schema
    # nothing that the earlier run learned reaches what the next one learns
    assert as_learned(all_.schema) == all_.schema


def test_declaring_what_was_learned_says_whence_it_is(store, table, run) -> None:
    used = use_learned(store, table, learned_before(table, store.runs())[1])
    grid = grid_of(used.schema)
    grid.loc[grid["column"] == "age", "keep"] = "declare"
    kept = tables.change_grid(store, used, grid)
    assert kept.schema["age"].provenance is Provenance.PROPOSED
    assert tables.declared_from_rows(kept) == ("age",)
