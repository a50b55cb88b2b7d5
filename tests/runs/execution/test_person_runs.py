"""People in a workspace: how many there are, what runs are for, what certificates say."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from core.models.planning import plan_fit
from core.privacy.guarded import PrivateTable
from core.privacy.ledger.entries import Entry
from core.privacy.plan import Budget
from core.quality.report.outside import ONE_VOTE, outside_report
from core.runs.errors import RunStoreError
from core.runs.execution.job import Job
from core.runs.execution.noisy_scores import cells_key, count_synthetic
from core.runs.execution.pipeline import execute
from core.runs.execution.privacy_certificate import conditions, make_privacy_certificate
from core.runs.execution.training_rows import FrameRows
from core.runs.storage.artefacts import LocalArtefacts
from core.schema.column import Column, Kind, SchemaError
from core.schema.person import Person
from core.schema.schema import Schema
from core.services import tables
from tests.requests_for import request_for
from tests.runs import toy

PEOPLE = 60
PERSON = Person(columns=("who",), rows=2)


@pytest.fixture
def schema(schema: Schema) -> Schema:
    who = Column(name="who", kind=Kind.IDENTIFIER)
    return Schema(columns=(who, *schema.columns), person=PERSON)


@pytest.fixture
def frame() -> pd.DataFrame:
    who = [i for i in range(PEOPLE) for _ in range(i % 4 + 1)]
    sex = ["f" if i % 2 else "m" for i in who]
    return pd.DataFrame({"who": [f"p{i}" for i in who], "age": who, "sex": sex})


def plan_for(schema, n, epsilon=1.0):
    return plan_fit(toy.Toy(), schema.domain(), n, Budget(epsilon=epsilon, delta=1e-6))


def test_people_are_counted_when_the_schema_is_kept(store, table, schema, monkeypatch):
    assert table.training_n == PEOPLE and table.records == "people" and table.n == 150
    spared = tables.change_holdout(store, table, 0.25)
    assert 30 < spared.training_n < PEOPLE
    trained, kept = store.load_split(table.id, spared.schema, ["sex"])
    assert list(trained) == ["sex"] and len(trained) + len(kept) == 150
    whole, _ = store.load_split(table.id, spared.schema, table.columns)
    assert whole["who"].nunique() == spared.training_n
    monkeypatch.setattr("core.runs.storage.table_store.pd.read_parquet", None)
    assert store.table(table.id).training_n == spared.training_n  # read from nowhere
    targeted = tables.change_target(store, spared, "sex")
    assert targeted.training_n == spared.training_n
    alone = store.save_schema(table.id, schema.model_copy(update={"person": None}))
    assert alone.training_n == 150 and "people" not in alone.profile


def test_a_run_is_for_the_tables_people(store, table, schema):
    def create(plan):
        return store.create_run(table.id, plan, request_for(plan), schema=schema)

    with pytest.raises(RunStoreError, match="60 to train"):
        create(plan_for(schema, 150))
    with pytest.raises(RunStoreError, match="which rows belong to one person"):
        create(plan_for(schema.model_copy(update={"person": None}), PEOPLE))
    assert create(plan_for(schema, PEOPLE)).plan.unit == PERSON


class Summing(toy.Toy):
    """Looks at what it was handed."""

    def fit(self, table: PrivateTable, plan, context):
        self.seen = table._PrivateTable__people
        return super().fit(table, plan, context)


def job_of(store, tmp_path, schema, plan):
    return Job(
        table="visits",
        plan=plan,
        request=request_for(plan, rows=20, seed=1),
        schema=schema,
        device="cpu",
        artefacts=LocalArtefacts(tmp_path / "run"),
        account_id="p1",
        debit_key="k",
    )


def test_a_model_sees_rows_by_person_as_certified(store, table, schema, frame, tmp_path):
    (tmp_path / "run").mkdir()
    model, asked = Summing(), []

    class AskedRows(FrameRows):
        def whole(self, names):
            asked.append(list(names))
            return super().whole(names)

    job = job_of(store, tmp_path, schema, plan_for(schema, PEOPLE))
    outcome = execute(
        job, AskedRows(frame), store=store, on_event=lambda _: 0, find=lambda _: model
    )
    assert asked == [["age", "sex", "who"]]
    assert model.seen.n == PEOPLE and model.seen.counts.max() == 2
    paper = outcome.privacy_certificate
    assert paper["n"] == PEOPLE and paper["unit"] == "per person, at most 2 rows"
    assert "one person, with all their rows," in paper["relation"]
    assert "number of people is public" in paper["relation"]
    assert json.dumps(paper).count("rows that agree in who") == 1


@pytest.mark.parametrize(
    ("person", "words"),
    [
        (None, "(one record swapped for any other at the same position in the file)"),
        (Person(rows=3), "to one person swapped for any others at the same positions in the file)"),
        (
            PERSON,
            "swapped for any other under any key; the number of people trained on stays the same",
        ),
    ],
)
def test_the_relation_says_what_stays(person, words, schema):
    plan = plan_for(schema.model_copy(update={"person": person}), PEOPLE)
    debit = Entry(
        seq=1, time=0.0, kind="release", account_id="p", run="r", model="toy", plan="", epsilon=1.0,
        delta=1e-6, rho=0.0, previous="",
    )  # fmt: skip
    paper = make_privacy_certificate(
        table="t", plan=plan, executed=(), guarantee=plan.guarantee, rows=1, debit=debit
    )
    assert words in paper["relation"]


def test_a_plan_for_other_units_than_the_schema_spends_nothing(store, schema, tmp_path):
    rowwise = plan_for(schema.model_copy(update={"person": None}), PEOPLE)
    job = job_of(store, tmp_path, schema, rowwise)
    with pytest.raises(SchemaError, match="Nothing was spent"):
        execute(job, None, store=store, on_event=lambda _: 0, find=lambda _: toy.Toy())
    assert not (tmp_path / "run").exists()


def test_conditions_say_whose_rows_are_protected(schema):
    said = {
        person: conditions(schema.model_copy(update={"person": person}), n=7)[:2]
        for person in (None, Person(rows=1), Person(rows=3), PERSON)
    }
    assert (
        "every row counts as a separate person" in said[None][1]
        and said[None] == said[Person(rows=1)]
    )
    assert "per person, at most 3 rows" in said[Person(rows=3)][1]
    assert "people, 7" in said[PERSON][0] and "two people" in said[PERSON][1]


def test_synthetic_people_are_counted_like_real_ones(schema, frame):
    domain = schema.domain()
    counted = count_synthetic(frame, domain, PEOPLE)
    assert counted.rows == PEOPLE and sum(counted.counts[:3]) <= PEOPLE + 1e-9
    rowwise = replace_person(schema, None)
    assert cells_key(domain, PEOPLE) != cells_key(rowwise.domain(), PEOPLE)
    assert count_synthetic(frame, rowwise.domain(), PEOPLE).rows == len(frame)
    report = outside_report(frame, schema)
    assert ONE_VOTE in report.notes
    assert report.columns["sex"].synthetic == pytest.approx([0.5, 0.5])  # 30 people each
    assert outside_report(frame, rowwise).columns["sex"].synthetic != pytest.approx([0.5, 0.5])


def replace_person(schema, person):
    return schema.model_copy(update={"person": person})
