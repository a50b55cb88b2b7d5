"""Two stored tables: what links them is proposed, both become one table, and two files again."""

import sqlite3
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.models.shaped_output import ShapeFacts
from core.proposing.propose import infer_schema
from core.runs.errors import RunStoreError
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.schema.column import Kind, SchemaError
from core.schema.rules.rules import parse_rule
from core.services import export, imports
from core.services.linking import stored
from core.services.linking.files import LinkedFile, link_all
from core.services.linking.stored import Link
from core.services.linking.unlinking import file_columns, foreign_keys, unlink
from core.services.shaping import DrawnTable
from core.services.synthesis.options import RefusedError
from core.writing.sql import SqlTarget
from core.writing.tables import write_parquet_parts
from tests.histories import MOST, three_levels

pytestmark = pytest.mark.slow
PEOPLE = 60


def files(folder: Path) -> tuple[Path, Path]:
    """People by `id`; stays by `patient_id`, of nobody in one row, and of some people none."""
    random = np.random.default_rng(0)
    people = pd.DataFrame(
        {"id": range(100, 100 + PEOPLE), "sex": random.choice(["f", "m"], PEOPLE)}
    )
    who = np.repeat(people["id"].to_numpy()[10:], random.integers(1, 8, PEOPLE - 10))
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(random.integers(0, 300, len(who)), "D")
    stays = pd.DataFrame(
        {
            "patient_id": who,
            "admitted": days.strftime("%d.%m.%Y"),
            "age": random.integers(100, 155, len(who)),
            "sex": random.choice(["x", "y"], len(who)),
        }
    )
    stays.loc[len(stays)] = [7, "01.02.2024", 30, "x"]
    paths = folder / "patients.csv", folder / "stays.csv"
    people.to_csv(paths[0], index=False)
    stays.to_csv(paths[1], index=False, sep=";")
    return paths


@pytest.fixture
def pair(store: RunStore, tmp_path: Path) -> tuple[TableRecord, TableRecord]:
    one, two = files(tmp_path)
    return tuple(imports.import_file(store, p, name=p.name, source="test") for p in (one, two))


def test_what_links_two_tables_is_proposed(store, pair) -> None:
    parent, child = pair
    link = Link(parent.id, child.id, "id", "patient_id", "admitted")
    assert stored.proposed_link(store, child, [parent]) == link
    assert stored.proposed_link(store, parent, [child]) == link
    assert stored.proposed_link(store, parent, []) is None


def test_numbers_alone_link_nothing(store, tmp_path) -> None:
    """Ages of a table without a key lie among somebody's running numbers."""
    people = pd.DataFrame({"person": range(200), "sex": ["f", "m"] * 100})
    visits = pd.DataFrame({"age": [20, 30, 40, 41] * 30, "ward": ["a", "b"] * 60})
    one, two = (imports.import_frame(store, f, name=n, source="test")
                for f, n in ((people, "people"), (visits, "visits")))  # fmt: skip
    assert stored.proposed_link(store, two, [one]) is None


def test_codes_link_tables_whatever_they_are_called(store) -> None:
    people = pd.DataFrame({"case": [f"P{i}" for i in range(50)], "sex": ["f", "m"] * 25})
    visits = pd.DataFrame({"subject": [f"P{i // 3}" for i in range(120)], "ward": ["a"] * 120})
    one, two = (imports.import_frame(store, f, name=n, source="test")
                for f, n in ((people, "people"), (visits, "visits")))  # fmt: skip
    found = stored.proposed_link(store, two, [one])
    assert found is not None and (found.key, found.child_key) == ("case", "subject")
    assert found.order is None


@pytest.mark.parametrize(("name", "sorts"), [("Year", True), ("birth_year", False)])
def test_years_sort_rows_that_have_no_date(store, name: str, sorts: bool) -> None:
    people = pd.DataFrame({"case": [f"P{i}" for i in range(50)], "sex": ["f", "m"] * 25})
    who = [f"P{i // 10}" for i in range(480)]
    seasons = pd.DataFrame({"case": who, name: [*range(1961, 2021)] * 8})
    one, two = (imports.import_frame(store, f, name=n, source="test")
                for f, n in ((people, "people"), (seasons, "seasons")))  # fmt: skip
    found = stored.proposed_link(store, two, [one])
    assert found is not None and found.order == (name if sorts else None)


def test_linked_tables_are_one_and_two_again(store, pair) -> None:
    parent, child = pair
    link = stored.proposed_link(store, child, [parent])
    facts = stored.link_facts(store, parent, child, link)
    assert (facts.strangers, facts.childless, facts.keyless) == (1, 10, 0)
    assert facts.rows == child.n - 1
    assert facts.beyond(3) == sum(max(0, n - 3) * k for n, k in facts.people.items()) > 0
    assert facts.beyond(10) == 0 and len(facts.notes(10)) == len(facts.notes(3)) == 3
    seen: list[int] = []
    table = stored.link_tables(store, parent, child, link, most=5, progress=seen.append)
    assert table.name == "patients + stays" and table.n == child.n - 1 + 10 == seen[-1]
    assert table.account_id == parent.account_id == store.table(child.id).account_id
    assert table.training_n == PEOPLE and stored.facts_of(table) == facts
    person = table.schema.person
    assert person.columns == ("id",) and person.constant == ("sex",) and person.rows == 5
    assert person.order == "admitted" and table.schema["admitted"].kind is Kind.DATETIME
    assert table.schema["stays.sex"].missing and not table.schema["sex"].missing
    assert {one["name"] for one in table.profile["columns"]} == set(table.columns)
    assert person.words == "per person, with one row of patients and at most 5 rows of stays"
    origins = file_columns(person, table.columns)
    assert origins["stays.sex"] == ("stays", "sex") and origins["sex"] == ("patients", "sex")
    parts = unlink(store.load_frame(table.id), table.schema)
    people, stays = parts["patients"][0], parts["stays"][0]
    assert list(stays) == list(child.columns) and len(stays) == child.n - 1
    assert people["id"].is_unique and stays["patient_id"].isin(people["id"]).all()
    assert parts["stays"][1].delimiter == ";"


def test_loans_of_few_link_to_accounts_and_to_linked_ones(store) -> None:
    """Each account has one loan at most, so its number stands once in either table."""
    frames = {
        "accounts": pd.DataFrame({"account_id": range(1, 101), "paid": ["m", "w"] * 50}),
        "orders": pd.DataFrame({"account_id": [i // 2 + 1 for i in range(200)], "sum": range(200)}),
        "loans": pd.DataFrame({"loan_id": range(1, 21), "account_id": range(3, 63, 3)}),
    }
    own, orders, loans = (
        imports.import_frame(store, frame, name=name, source="test")
        for name, frame in frames.items()
    )
    link = Link(own.id, loans.id, "account_id", "account_id")
    assert stored.proposed_link(store, loans, [own]) == link
    assert stored.proposed_link(store, own, [loans]) == link
    both = stored.link_tables(store, own, orders, replace(link, child=orders.id), most=5)
    link = replace(link, parent=both.id)
    assert stored.proposed_link(store, loans, [both, own]) == link
    assert stored.link_to_rows(store, both, loans) == link
    every = stored.link_tables(store, both, loans, link, most=5)
    assert set(unlink(store.load_frame(every.id), every.schema)) == set(frames)


@pytest.fixture
def levels(store: RunStore) -> TableRecord:
    """Homes, their members and the members' visits, linked one after the other."""
    rows, declared, _ = three_levels(40)
    tables = [
        imports.import_frame(store, frame, name=name, source="test")
        for name, (frame, _) in unlink(rows, declared).items()
    ]
    link = Link(tables[0].id, tables[1].id, "who", "who")
    table = stored.link_tables(store, tables[0], tables[1], link, most=MOST)
    link = stored.link_to_rows(store, table, tables[2])
    assert stored.proposed_link(store, tables[2], [table, *tables[:2]]) == link
    assert link == Link(table.id, tables[2].id, "member", "member")
    return stored.link_tables(store, table, tables[2], replace(link, order="date"), most=MOST)


def test_rows_of_rows_are_linked_and_keep_their_keys(store, levels) -> None:
    person = levels.schema.person
    assert person.columns == ("who",) and levels.training_n == 40
    assert [file.owner for file in person.files] == [None, "member"]
    assert person.words == (
        "per person, with one row of homes, at most 4 rows of members, and at most 4 rows of "
        "visits for each row that they belong to"
    )
    facts = stored.facts_of(levels)
    assert facts.parent == "members" and facts.keyless == 0
    before = unlink(*three_levels(40)[:2])
    for name, (frame, _) in unlink(store.load_frame(levels.id), levels.schema).items():
        assert sorted(map(str, frame.iloc[:, 0])) == sorted(map(str, before[name][0].iloc[:, 0]))
    links = foreign_keys(person, levels.columns)
    assert links["visits"] == ("member", "members", "member")
    assert links["members"] == ("who", "homes", "who")
    with pytest.raises(SchemaError, match="has the same value in several rows of members"):
        stored.link_facts(store, levels, levels, Link(levels.id, levels.id, "age", "age"))


def test_keys_of_rows_that_are_not_there_are_refused() -> None:
    who = pd.DataFrame({"id": range(9)})
    files = [LinkedFile(who, infer_schema(who), name, "id") for name in ("homes", "members")]
    for key in ("members.nobody", "visits.id"):
        last = LinkedFile(who, infer_schema(who), "visits", key)
        with pytest.raises(RefusedError, match="needs a column 'nobody' in members|'id' in visits"):
            link_all([*files, last])


def test_rows_of_rows_go_to_a_database(store, levels, tmp_path) -> None:
    frame, schema = store.load_frame(levels.id), levels.schema.as_proposed()
    tables = export.sql_tables(frame, schema, {}, "homes")
    SqlTarget(f"sqlite:///{tmp_path / 'out.db'}").write(tables)
    with sqlite3.connect(tmp_path / "out.db") as known:
        assert known.execute("pragma foreign_key_check").fetchall() == []
        assert known.execute("pragma foreign_key_list(visits)").fetchall()[0][2:5] == (
            "members", "member", "member",
        )  # fmt: skip


def test_what_does_not_link_is_refused(store, pair) -> None:
    parent, child = pair
    with pytest.raises(SchemaError, match="has the same value in several rows of stays"):
        stored.link_facts(store, child, parent, Link(child.id, parent.id, "patient_id", "id"))
    with pytest.raises(SchemaError, match="No value of 'sex' in stays"):
        stored.link_tables(store, parent, child, Link(parent.id, child.id, "id", "sex"), most=5)
    frame = store.load_frame(child.id)
    typed = imports.import_frame(store, frame, name="typed", source="test")
    link = Link(parent.id, typed.id, "id", "patient_id")
    with pytest.raises(SchemaError, match="One of the files is a text file"):
        stored.link_tables(store, parent, typed, link, most=5)
    assert len(store.tables()) == 3  # nothing was kept


def test_rules_stay_where_names_do(store, pair) -> None:
    parent, child = pair
    both = parse_rule("if age < 9 then sex = x")
    child = store.save_schema(child.id, child.schema.model_copy(update={"rules": (both,)}))
    link = Link(parent.id, child.id, "id", "patient_id")
    table = stored.link_tables(store, parent, child, link, most=5)
    assert table.schema.rules == ()  # `sex` is the first table's
    own = parse_rule("if age < 120 then admitted is missing")
    child = store.save_schema(child.id, child.schema.model_copy(update={"rules": (own,)}))
    assert stored.link_tables(store, parent, child, link, most=5).schema.rules == (own,)


def test_who_was_paid_for_keeps_the_account(store, pair, monkeypatch) -> None:
    """Rows of a table that was released count among the people of both from now on."""
    parent, child = pair
    moved, real = [], stored.change_account

    def change(store, table_id, account_id):
        moved.append(table_id)
        if table_id == child.id:
            raise RunStoreError("it was paid for")
        return real(store, table_id, account_id)

    monkeypatch.setattr(stored, "change_account", change)
    link = Link(parent.id, child.id, "id", "patient_id")
    assert parent.account_id != child.account_id
    table = stored.link_tables(store, parent, child, link, most=5)
    assert moved == [child.id, parent.id]
    assert table.account_id == child.account_id == store.table(parent.id).account_id


def test_drawn_rows_are_packed_as_two_files(store, pair, tmp_path) -> None:
    """From cells as they were drawn, in the forms of both files."""
    parent, child = pair
    link = stored.proposed_link(store, child, [parent])
    table = stored.link_tables(store, parent, child, link, most=5)
    schema = table.schema.as_proposed()
    frame = store.load_frame(table.id, schema)
    path, out = tmp_path / "drawn.parquet", tmp_path / "out.zip"
    write_parquet_parts([frame], path)
    drawn = [DrawnTable(path, ShapeFacts(rows=PEOPLE, seed=seed, drawn=PEOPLE)) for seed in (1, 2)]
    with out.open("wb") as file:
        export.pack(file, drawn, name="x", domain=schema.domain(), schema=schema, certificate={})
    with zipfile.ZipFile(out) as archive:
        stays = pd.read_csv(archive.open("seed-2/stays.csv"), sep=";")
    assert stays.notna().all().all() and stays["admitted"].str.match(r"\d\d\.\d\d\.2024").all()
