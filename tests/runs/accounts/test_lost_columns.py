"""A purchase that finds nothing in a column: rules and roles fall away, said, and runs go on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.cli.main import main
from core.privacy.discovery.unbought import as_bought, at_stake, stand_in, unbought
from core.runs.events import State
from core.runs.execution.privacy_certificate import conditions
from core.runs.request import RunRequest
from core.schema.column import DomainSource, Provenance, Purchase, SchemaError
from core.schema.person import Person
from core.schema.rules.rules import Combinations, Determines, parse_rule
from core.services import declarations, imports, purchases, reviews, tables
from core.services.planning import make_plan
from core.services.schema_grid import grid_of
from tests.runs.workers import queued, toy_plan, work

ROWS, CODES, EPSILON = 1200, 30, 0.2  # a label is found from about 214 rows on; each code has 40
LOST = ("code", "name")


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
def table(store):
    imported = imports.import_frame(store, visits(), name="visits", source="test")
    imported = tables.change_target(store, imported, "code")
    rules = [parse_rule("name <- code"), parse_rule("missing together code, sex")]
    return declarations.change_rules(store, imported, rules)


def bought(store, table):
    schema = purchases.to_buy(store, table)
    plan = purchases.plan_purchase(schema, table.training_n, EPSILON)
    return purchases.buy(store, table, plan, schema)


def test_what_rests_on_a_column_is_said_before_it_is_paid_for(store, table):
    said = purchases.at_stake(purchases.to_buy(store, table))
    rules = {name: sum(f"in '{name}'" in one and "rule" in one for one in said) for name in
             ("code", "name", "sex", "age")}  # fmt: skip
    assert rules == {"code": 2, "name": 1, "sex": 1, "age": 0}
    assert "If nothing is found in 'code', it is left out and is no target." in said
    assert store.ledger.entries(table.account_id) == ()


def test_a_run_goes_on_without_the_rules_of_a_lost_column(store, table):
    made = bought(store, table)
    assert made.schema.lost == LOST and unbought(made.schema).names == ()
    assert len(made.schema.rules) == 2 and made.schema.domain().rules == ()
    assert made.schema.domain().target is None
    store.attest(made.id)
    assert make_plan(made.schema, made.training_n, RunRequest(model="pearl", epsilon=1.0)).phases
    run = work(store, queued(store, made, toy_plan(made)).id)
    assert run.state is State.DONE
    told = reviews.privacy_certificate(store, run.id)["conditions"]
    fallen = [sentence for sentence in told if "is not kept" in sentence]
    assert len(fallen) == 2 and all("found nothing in 'code'" in one for one in fallen)
    assert any("'code' is no target any more" in sentence for sentence in told)
    assert not any("which every synthetic row keeps" in sentence for sentence in told)
    (paid,) = [e for e in store.ledger.entries(table.account_id) if e.purchase]
    assert paid.epsilon == pytest.approx(EPSILON, rel=1e-3)
    assert "age" in made.schema.domain().columns[0].name  # what was found is used


def test_a_grid_that_is_edited_keeps_what_is_said(store, table):
    made = bought(store, table)
    grid = grid_of(made.schema)
    grid.loc[grid["column"] == "age", "to"] = "130"
    edited = tables.change_grid(store, made, grid)
    assert edited.schema.rules == made.schema.rules and len(edited.schema.fallen) == 2


def test_the_command_line_goes_on_too(store, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FACSIMILE_HOME", str(tmp_path / "home"))
    visits().to_csv(tmp_path / "visits.csv", index=False)
    few = ["--settings", "steps=20", "frequencies=100", "batch=64", "hidden=8"]
    command = ["synth", str(tmp_path / "visits.csv"), "--model", "pearl", "--epsilon", "1"]
    command += ["--buy", "all", "--buy-share", str(EPSILON), "--rule", "name <- code", *few]
    command += ["--target", "code", "--out", str(tmp_path / "out.csv"), "--device", "cpu"]
    assert main(command) == 0
    told = capsys.readouterr().err
    assert "note: If nothing is found in 'code'" in told
    assert "note: Rule “name <- code” was declared and is not kept" in told
    assert list(pd.read_csv(tmp_path / "out.csv").columns) == ["age", "sex"]


def test_what_no_purchase_could_mend_is_refused_before(store, table):
    rule = Determines(source="sex", result="code")  # the target is not computed
    schema = purchases.to_buy(store, table).model_copy(update={"rules": (rule,)})
    with pytest.raises(SchemaError, match="the target is not computed"):
        purchases.plan_purchase(schema, ROWS, EPSILON)
    other = Combinations(names=("sex", "name"))
    tagged = schema.model_copy(
        update={"rules": (other,), "target": None, "sensitive": {"g": ("sex",)}}
    )
    with pytest.raises(SchemaError, match="tagged as hidden"):
        purchases.plan_purchase(tagged, ROWS, EPSILON)


def test_only_the_rules_that_a_purchase_spoils_fall_away(store, table):
    """Bounds that were bought leave a rule no room; those that were declared are to be mended."""
    schema = stand_in(as_bought(table.schema)).model_copy(update={"rules": (), "target": None})
    declared = {"purchase": None, "source": DomainSource.DECLARED}
    by_hand = schema["age"].model_copy(update=declared)
    old = by_hand.model_copy(update={"name": "old", "low": 50.0, "high": 60.0})
    most = old.model_copy(update={"name": "most"})
    rules = (parse_rule("old <= age"), parse_rule("age <= most"))  # age is made up, from 0 to 1
    schema = schema.model_copy(update={"columns": (*schema.columns, old, most), "rules": rules})
    assert list(schema.fallen) == ["old <= age"] and schema.domain().rules == rules[1:]
    with pytest.raises(SchemaError, match="cannot hold within the bounds"):
        schema.replace(by_hand).domain()


def test_what_the_steward_leaves_out_is_no_loss(store, table):
    made = bought(store, table)
    age = made.schema["age"]
    assert age.provenance is Provenance.BOUGHT and isinstance(age.purchase, Purchase)
    dropped = made.schema.replace(age.model_copy(update={"source": DomainSource.DROP}))
    assert dropped.lost == LOST


def test_columns_that_say_whose_a_row_is_are_not_bought(store):
    frame = visits().assign(patient=np.arange(ROWS) // 2)
    imported = imports.import_frame(store, frame, name="visits", source="test")
    person = Person(columns=("patient",), rows=2, constant=("sex",), order="age")
    kept = declarations.change_person(store, imported, person)
    schema = purchases.to_buy(store, kept)
    assert "patient" not in unbought(schema).names
    assert [one for one in at_stake(schema) if "'age'" in one and "does not sort" in one]
    assert [one for one in at_stake(schema) if "'sex'" in one and "kept the same" in one]
    made = bought(store, kept)
    assert made.schema.domain().person == person and "patient" not in made.schema.lost
    told = " ".join(_conditions(made))
    assert "patient: integer" not in told and str(ROWS // 2 - 1) not in told


def _conditions(table):
    return conditions(table.schema, n=table.training_n)
