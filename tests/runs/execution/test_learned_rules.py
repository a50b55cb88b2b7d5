"""Rules of columns whose domain a run learns: kept where there is room, else said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from core.models.planning import DiscoverDomain, plan_fit
from core.privacy.discovery import planning
from core.privacy.discovery.open_domain import open_domain, stand_in
from core.privacy.discovery.planning import LISTS, Levels
from core.privacy.discovery.thresholds import label_threshold
from core.privacy.ledger.admission import OverBudgetError
from core.privacy.plan import Budget, Plan
from core.runs.accounts.learned_earlier import learned_columns, with_learned
from core.runs.events import State
from core.runs.execution.job import Job
from core.runs.execution.pipeline import execute
from core.runs.execution.privacy_certificate import conditions
from core.runs.records import TableRecord
from core.runs.request import RunRequest
from core.runs.storage.artefacts import SYNTHETIC_TABLE, LocalArtefacts
from core.runs.storage.store import RunStore
from core.schema.column import DomainSource, SchemaError
from core.schema.person import Person
from core.schema.rules.rules import Combinations, Determines, parse_rule
from core.schema.schema import Schema
from core.services import declarations, imports, reviews, tables
from core.services.planning import make_plan
from core.services.schema_grid import grid_of
from tests.runs import toy
from tests.runs.workers import queued, work

pytestmark = pytest.mark.slow

ROWS, CODES = 1200, 30  # each code has 40 rows, which is too few to be found at this ε
REQUEST = RunRequest(model="pearl", epsilon=0.2)


def visits() -> pd.DataFrame:
    """Visits with a list of codes, none of which is held by enough people to be found."""
    i = np.arange(ROWS)
    return pd.DataFrame(
        {
            "code": [f"C{k % CODES:02d}" if k % 50 else None for k in i],
            "name": [f"ward {k % CODES}" for k in i],
            "age": 20 + i % 50,
            "sex": [("f", "m")[k % 2] if k % 50 else None for k in i],
        }
    )


@pytest.fixture
def table(store: RunStore) -> TableRecord:
    imported = imports.import_frame(store, visits(), name="visits", source="test")
    rules = [parse_rule("name <- code"), parse_rule("missing together code, sex")]
    return declarations.change_rules(store, imported, rules)


def learning_plan(table: TableRecord, epsilon: float) -> Plan:
    wanted, budget = open_domain(table.schema), Budget(epsilon=epsilon, delta=1e-6)
    discover = DiscoverDomain.of(wanted, budget)
    domain = stand_in(table.schema).domain()
    n, unit = table.training_n, table.schema.person
    return plan_fit(toy.Toy(), domain, n, budget, discover=discover, unit=unit)


def test_a_run_goes_on_without_a_rule_that_it_could_not_learn(store, table, monkeypatch) -> None:
    monkeypatch.setattr(planning, "MISSING_DOUBT", 1e-9)  # so that noise hides all missing cells
    run = work(store, queued(store, table, learning_plan(table, 0.2)).id)
    assert run.state is State.DONE, run.error
    assert run.schema["code"].categories == ("OTHER",) and len(run.schema.rules) == 2
    certificate = reviews.privacy_certificate(store, run.id)
    assert certificate is not None
    told = [one for one in certificate["conditions"] if "is not kept" in one]
    # no missing cell was found, so that none of the other rule's columns is missing alone
    assert [next(r.text for r in run.schema.rules if r.text in one) for one in told] == [
        "name <- code"
    ]


def test_a_mapping_is_learned_where_enough_records_hold_it(store, table) -> None:
    run = work(store, queued(store, table, learning_plan(table, 8.0)).id)
    assert run.state is State.DONE, run.error
    (rule,) = [one for one in run.schema.rules if isinstance(one, Determines)]
    assert rule.learned and rule.mapping == {f"C{k:02d}": f"ward {k}" for k in range(CODES)}
    assert run.schema.fallen == {}


def test_a_number_of_a_code_is_learned_like_a_label(store) -> None:
    beds = np.array([7.5, 12.0, 31.25])[np.arange(ROWS) % CODES % 3]
    frame = visits().assign(beds=beds + np.arange(ROWS) % CODES)
    imported = imports.import_frame(store, frame, name="visits", source="test")
    grid = grid_of(imported.schema)
    grid.loc[grid["column"] == "beds", "kind"] = "number"
    numeric = tables.change_grid(store, imported, grid)
    rules = [parse_rule("beds <- code"), parse_rule("if beds > 40 then sex = f")]
    table = declarations.change_rules(store, numeric, rules)
    run = work(store, queued(store, table, learning_plan(table, 8.0)).id)
    assert run.state is State.DONE, run.error
    rule = run.schema.rules[0]
    assert isinstance(rule, Determines) and rule.learned and rule.mapping["C02"] == "33.25"
    path = store.artefacts(run.id).path(SYNTHETIC_TABLE)
    made = pd.read_parquet(path)
    followed = made["code"].map(rule.mapping).astype(float)
    assert made["beds"].equals(followed) and (made["sex"][made["beds"] > 40] == "f").all()


def test_what_no_learning_could_mend_is_refused_before(store, table) -> None:
    rule = Determines(source="sex", result="code")  # the target is not computed
    schema = table.schema.model_copy(update={"rules": (rule,), "target": "code"})
    with pytest.raises(SchemaError, match="the target is not computed"):
        make_plan(schema, ROWS, REQUEST)
    other = Combinations(names=("sex", "name"))
    tagged = table.schema.replace(table.schema.as_proposed()["sex"]).model_copy(
        update={"rules": (other,), "sensitive": {"g": ("sex",)}}
    )
    with pytest.raises(SchemaError, match="tagged as hidden"):
        make_plan(tagged, ROWS, REQUEST)


def test_only_the_rules_that_learning_spoils_fall_away(table) -> None:
    """Bounds that were learned leave a rule no room; those that were declared are to be mended."""
    schema = stand_in(table.schema).model_copy(update={"rules": ()})
    by_hand = schema["age"].model_copy(
        update={"learned": None, "source": DomainSource.DECLARED, "high": 1.0}
    )
    old = by_hand.model_copy(update={"name": "old", "low": 5000.0, "high": 6000.0})
    most = old.model_copy(update={"name": "most"})
    rules = (parse_rule("old <= age"), parse_rule("age <= most"))  # age is made up, up to 1000
    schema = schema.model_copy(update={"columns": (*schema.columns, old, most), "rules": rules})
    assert list(schema.fallen) == ["old <= age"] and schema.domain().rules == rules[1:]
    with pytest.raises(SchemaError, match="cannot hold within the bounds"):
        schema.replace(by_hand).domain()


def test_each_of_many_rules_without_room_falls_away(table) -> None:
    schema = stand_in(table.schema)
    high = schema["age"].model_copy(
        update={"learned": None, "source": DomainSource.DECLARED, "low": 5e3, "high": 6e3}
    )
    others = [high.model_copy(update={"name": name}) for name in "abcde"]
    texts = ("age <= a", "b <= age", "age <= c", "age <= d", "e <= age")
    rules = tuple(map(parse_rule, texts))
    schema = schema.model_copy(update={"columns": (*schema.columns, *others), "rules": rules})
    assert set(schema.fallen) == {"b <= age", "e <= age"}
    assert schema.domain().rules == (rules[0], rules[2], rules[3])


def test_columns_that_say_whose_a_row_is_are_not_learned(store) -> None:
    frame = visits().assign(patient=np.arange(ROWS) // 2)
    imported = imports.import_frame(store, frame, name="visits", source="test")
    person = Person(columns=("patient",), rows=2, constant=("sex",), order="age")
    kept = declarations.change_person(store, imported, person)
    assert "patient" not in open_domain(kept.schema).names
    run = work(store, queued(store, kept, learning_plan(kept, 8.0)).id)
    assert run.state is State.DONE, run.error
    assert run.schema.as_proposed().domain().person == person
    told = " ".join(conditions(run.schema, n=kept.training_n))
    assert "patient: integer" not in told and str(ROWS // 2 - 1) not in told


def test_delta_of_both_runs_stays_below_one_over_n(store, table, tmp_path: Path) -> None:
    run = work(store, queued(store, table, learning_plan(table, 8.0)).id)
    schema = with_learned(table.schema, learned_columns(run.schema, run.debit))
    request = RunRequest(model="pearl", epsilon=1.0, delta=0.9999 / table.training_n)
    job = Job(
        table="t",
        plan=make_plan(schema, table.training_n, request),
        request=request,
        schema=schema,
        device="cpu",
        artefacts=LocalArtefacts(tmp_path),
        account_id=table.account_id,
        debit_key="k",
    )
    with pytest.raises(SchemaError, match=r"too large together .*Nothing was spent"):
        execute(job, None, store=store, on_event=lambda _: 0)


def test_failures_use_delta_reserved_at_the_first_release(store, table) -> None:
    def plan(schema: Schema, epsilon: float = 1.0) -> Plan:
        delta = 1.1e-5  # lists fail with 2.75e-6, of which one fits in a quarter of δ_g
        request = RunRequest(model="pearl", epsilon=epsilon, delta=delta)
        return make_plan(schema, ROWS, request)

    ledger, declared = store.ledger, table.schema.as_proposed()
    ledger.register("first declared", 10.0, 2e-5, n=ROWS)
    ledger.debit("first declared", plan(declared), "run")
    with pytest.raises(OverBudgetError, match="set aside before their first release"):
        ledger.debit("first declared", plan(table.schema), "late")
    ledger.register("first learned", 10.0, 2e-5, n=ROWS)
    whole = ledger.left("first learned").capacity
    ledger.debit("first learned", plan(table.schema), "one")
    assert ledger.left("first learned").capacity < whole
    with pytest.raises(OverBudgetError, match="used up"):
        ledger.debit("first learned", plan(table.schema), "two")
    alone = Schema(columns=(table.schema["age"],))
    ledger.debit("first declared", plan(alone), "bounds never fail")
    assert ledger.verify()


@pytest.mark.parametrize("columns", [("name",), ()])
def test_more_rows_make_no_persons_label_easier_to_show(table, columns) -> None:
    """Where nobody can tell whose rows are whose, a person counts as often as they have rows."""
    person = Person(columns=columns, rows=3)
    schema = table.schema.model_copy(update={"person": person, "rules": ()})
    plan, wanted = make_plan(schema, ROWS, REQUEST), open_domain(schema)
    levels, lists = Levels.of(plan, wanted), len(wanted.listed)
    failure, std = plan.phase(LISTS).failure, levels.std[LISTS]
    most = 1.0 if columns else 3.0
    for labels in (1, 3):  # one label in all rows, or another in each
        shown = labels * stats.norm.sf((levels.label - most / labels) / std)
        assert lists * shown <= 1.01 * failure
    alone = label_threshold(std, failure, lists, 1)  # a twin that forgets the other rows
    assert columns or lists * stats.norm.sf((alone - most) / std) > failure


def test_a_grid_that_is_edited_declares_what_was_changed(store, table) -> None:
    grid = grid_of(table.schema)
    assert set(grid["keep"]) == {"learn"} and set(grid["origin"]) == {"learned with noise"}
    grid.loc[grid["column"] == "age", "to"] = "130"
    edited = tables.change_grid(store, table, grid)
    assert edited.schema["age"].source is DomainSource.DECLARED
    assert "age" not in open_domain(edited.schema).names
