"""Two tables of the same people, linked on Tables, planned, and taken along as two files."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pandas as pd
import pytest

from core.encoding.layout.layout import Layout
from core.privacy.discovery.open_domain import open_domain, stand_in
from core.runs.events import State
from core.runs.request import RunRequest
from core.schema.column import Kind
from core.services import export, imports, planning, runs
from core.services.estimates import forecast
from core.services.linking import stored
from core.services.linking.unlinking import unlink
from pages.download import page as download
from tests.histories import three_levels, two_files, visits
from tests.pages.conftest import IdleLauncher
from tests.pages.screen import button, buttons, press, whole, words

pytestmark = pytest.mark.slow
LINK = "Link these tables"


@pytest.fixture
def pair(store):
    """80 people by `id`, and their stays by `person_id`; uploaded one after the other."""
    frame = visits(80)
    people = frame.drop_duplicates("who")[["who", "sex"]].rename(columns={"who": "id"})
    stays = frame[frame["key"].notna()][["who", "day", "kind"]].rename(columns={"who": "person_id"})
    dated = stays.assign(
        day=pd.Timestamp("2024-01-01") + pd.to_timedelta(stays["day"].astype(int), "D")
    )
    tables = (("people.csv", people), ("stays.csv", dated))
    return tuple(imports.import_frame(store, f, name=n, source="test") for n, f in tables)


@pytest.fixture
def linked(store, pair):
    link = stored.proposed_link(store, pair[1], [pair[0]])
    return stored.link_tables(store, *pair, link, most=4)


def test_two_uploads_are_linked_with_one_press(store, pair, show):
    at = whole(show("tables", table=pair[1].id))
    assert "The rows of stays.csv belong to the people in people.csv" in words(at)
    assert "Rows of people without rows of stays, learned as such: 16. Only you see" in words(at)
    most = next(one for one in at.number_input if "Maximum rows" in one.label)
    assert most.value == 10
    assert "are beyond the first 4 of their person" in words(whole(most.set_value(4).run()))
    whole(press(at, LINK))
    (table,) = (one for one in store.tables() if one.name == "people + stays")
    person = table.schema.person
    assert (person.columns, person.rows, person.constant) == (("id",), 4, ("sex",))
    assert person.order == "day" and person.walked and table.training_n == 80
    assert at.query_params["table"] == table.id
    assert "ε holds per person, with one row of people and at most 4 rows of stays" in words(at)
    assert "Must decide" not in words(at)


def test_a_link_is_proposed_on_either_table(pair, show):
    assert LINK in buttons(show("tables", table=pair[0].id))


def test_a_link_that_nothing_suggests_is_chosen(store, pair, show):
    frame = pd.DataFrame({"nr": [f"p{i}" for i in range(9)] * 2, "ward": ["a", "b", "b"] * 6})
    other = imports.import_frame(store, frame, name="wards", source="test")
    at = show("tables", table=other.id)
    assert LINK not in buttons(at)
    radio = next(one for one in at.radio if "Can a person have several rows" in one.label)
    at = whole(radio.set_value("linked").run())
    assert "No value of 'nr' in wards is in" in " ".join(one.value for one in at.error)
    assert LINK not in buttons(at)
    assert button(at, "Plan a synthetic table").disabled  # the answer is not complete


def test_what_a_linked_person_is_can_be_changed(store, linked, show):
    at = whole(show("tables", table=linked.id))
    assert not [one for one in at.radio if "Can a person have several rows" in one.label]
    most = next(one for one in at.number_input if "Maximum rows" in one.label)
    whole(most.set_value(3).run())
    learn = next(one for one in at.toggle if "depend on each other" in one.label)
    whole(learn.set_value(False).run())
    person = store.table(linked.id).schema.person
    assert person.rows == 3 and not person.walked
    assert person.history.own_names == linked.schema.person.history.own_names


def test_one_more_table_is_linked(store, linked, show, monkeypatch):
    frame = visits(80, seed=5)
    frame = frame[frame["key"].notna()].astype({"day": "int64"})
    tests = frame.rename(columns={"who": "person_id", "day": "taken", "kind": "test"})
    tests = tests[["person_id", "taken", "test"]]
    imports.import_frame(store, tests, name="tests.csv", source="test")
    at = whole(show("tables", table=linked.id))
    order = [one for one in at.selectbox if "In which order" in one.label][-1]
    at = whole(order.select("taken").run())
    whole(press(at, LINK))
    (table,) = (one for one in store.tables() if one.name == "people + stays + tests")
    person = table.schema.person
    assert person.child_names == ("stays", "tests") and person.columns == ("id",)
    assert [file.order for file in person.files] == ["day", "taken"]
    assert table.training_n == 80 and table.account_id == linked.account_id
    at = whole(show("tables", table=table.id))
    assert "with their rows of stays, tests" in words(at) and "Must decide" not in words(at)
    store.attest(table.id)
    at = whole(show("plan", table=table.id))
    assert "at most 4 rows of stays, tests" in words(at)
    with pytest.raises(ValueError, match="Several linked tables need a model"):
        run_of(store, table, model="p3gm")
    run = run_of(store, table)
    made = two_files(30).rows
    columns = dict(zip(made.columns, table.columns, strict=True))
    drawn = made.rename(columns=columns)[list(table.columns)]
    parts = unlink(drawn, run.schema)
    assert list(parts) == ["people", "stays", "tests"]
    assert parts["tests"][0]["person_id"].isin(parts["people"][0]["id"]).all()


def test_a_column_that_counts_rows_is_chosen_and_not_learned(store, linked, show):
    at = whole(show("tables", table=linked.id))
    box = next(one for one in at.selectbox if "counts the rows of a person" in one.label)
    assert box.value is None and "kind" not in box.options
    stays = linked.schema.replace(linked.schema["kind"].model_copy(update={"kind": Kind.ORDERED}))
    table = store.save_schema(linked.id, stays)
    at = whole(show("tables", table=table.id))
    box = next(one for one in at.selectbox if "counts the rows of a person" in one.label)
    whole(box.select("kind").run())
    schema = store.table(linked.id).schema
    assert schema.person.counter == "kind" and schema["kind"].kind is Kind.IDENTIFIER


def test_plan_counts_the_columns_of_windows(linked):
    schema = linked.schema
    assert forecast.modelled_columns(schema) == len(
        Layout(stand_in(schema).domain()).domain.columns
    )
    assert forecast.modelled_columns(planning.as_learnable(schema, "p3gm")) == 3
    plan = planning.make_plan(schema, 80, RunRequest(model="scan_focus", epsilon=1.0))
    few, more, most = (
        forecast.expected_seconds(plan, columns=20, speed=1.0, table_rows=rows)
        for rows in (100, 240, 9000)  # 80 people of at most three windows
    )
    assert few < more == most


def run_of(store, table, *, model="scan_focus"):
    store.attest(table.id)
    request = RunRequest(model=model, epsilon=1.0)
    plan = planning.make_plan(table.schema, table.training_n, request)
    return runs.start(store, IdleLauncher(), table.id, plan, request)


def test_plan_names_the_unit_and_the_model_that_learns_order(store, linked, show):
    store.attest(linked.id)
    at = whole(show("plan", table=linked.id))
    assert "per person, with one row of people and at most 4 rows of stays" in words(at)
    assert "Scan and focus**, recommended" in words(at)
    at = whole(at.button_group[0].set_value("p3gm").run())
    assert "Take Scan and focus, which is recommended" in buttons(at)
    assert "P3GM does not learn how the rows of a person depend on each other" in words(at)
    run = run_of(store, linked, model="p3gm")
    assert not run.schema.walked and run.plan.unit == run.schema.person


def test_both_files_come_out_of_download(store, linked, show, monkeypatch):
    run = run_of(store, linked)
    rows = store.load_frame(linked.id, linked.schema.as_proposed())
    store.record(run.id, learned=stand_in(run.schema), guarantee=run.plan.guarantee)
    assert open_domain(run.schema).names
    folder = store.artefacts(run.id).path("synthetic.parquet").parent
    rows.to_parquet(folder / "synthetic.parquet")
    (folder / "certificate.json").write_text('{"relation": "zero-out", "private": true}')
    (folder / "model").mkdir()
    assert store.set_state(run.id, State.DONE, "Done.")
    monkeypatch.setattr(download.exposure, "seen", lambda run: True)
    at = whole(show("download", run=run.id))
    assert "One ZIP with people.csv, stays.csv, whose keys match" in words(at)
    assert any(one.label == "People" for one in at.number_input)
    path = export.reviewed_file(store, store.run(run.id), format="csv")
    with zipfile.ZipFile(path) as archive:
        names = ["people.csv", "stays.csv", "dictionary.csv", "certificate.json"]
        assert archive.namelist()[:4] == names
        people, stays = (pd.read_csv(io.BytesIO(archive.read(name))) for name in names[:2])
        columns = pd.read_csv(io.BytesIO(archive.read("dictionary.csv")))
    assert list(people) == ["id", "sex"] and list(stays) == ["person_id", "day", "kind"]
    assert len(people) == 80 and np.isin(stays["person_id"], people["id"]).all()
    assert columns["file"].tolist() == ["people.csv"] * 2 + ["stays.csv"] * 3


def test_rows_of_linked_rows_are_linked(store, show):
    """Homes and members are one table; whose the visits are, their keys say."""
    rows, declared, _ = three_levels(40)
    homes, members, visited = (
        imports.import_frame(store, frame, name=f"{name}.csv", source="test")
        for name, (frame, _) in unlink(rows, declared).items()
    )
    link = stored.Link(homes.id, members.id, "who", "who")
    linked = stored.link_tables(store, homes, members, link, most=4)
    at = whole(show("tables", table=linked.id))
    order = [one for one in at.selectbox if "In which order" in one.label][-1]
    at = whole(order.select("date").run())
    assert "Rows of members without rows of visits" in words(at)
    whole(press(at, LINK))
    (table,) = (one for one in store.tables() if one.name == "homes + members + visits")
    assert [file.owner for file in table.schema.person.files] == [None, "member"]
    at = whole(show("tables", table=table.id))
    assert "with their rows of members**, linked by who" in words(at)
    assert "Rows of visits belong to rows of members, linked by member." in words(at)
    store.attest(table.id)
    at = whole(show("plan", table=table.id))
    assert "and at most 4 rows of visits for each row that they belong to" in words(at)
