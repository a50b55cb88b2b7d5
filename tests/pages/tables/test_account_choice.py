"""Whose people these are, on Tables; what is hidden or shown already, on Plan; both on Ledger."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from core.privacy.discovery.open_domain import planned_schema
from core.runs.accounts import people
from core.runs.accounts.account import DEFAULT_LIMIT, pay, set_limit
from core.runs.records import TableRecord
from core.runs.request import RunRequest
from core.schema.person import Person
from core.services import imports, planning, tables
from core.services.sample_tables import sample_table
from tests.pages.screen import button, buttons, press, whole, words

pytestmark = pytest.mark.slow

ASKED = "Who are the people in this table?"


def bring(store, frame: pd.DataFrame, name: str) -> TableRecord:
    record = imports.import_frame(store, frame, name=name, source="test")
    store.attest(record.id)
    return record


def question(at):
    return next(box for box in at.selectbox if box.label == ASKED)


def released(store, table: TableRecord, **more) -> None:
    plan = planning.make_plan(table.schema, table.n, RunRequest(model="pearl", epsilon=0.5, **more))
    pay(
        store.ledger, table.account_id, plan, f"{table.id}{len(more)}",
        domain=planned_schema(table.schema, private=True).domain(), allow_non_private=False,
    )  # fmt: skip


def test_without_earlier_tables_there_is_nothing_to_ask(table, show):
    at = whole(show("tables", table=table.id))
    assert "get their own account" in words(at)
    (asked,) = [one for one in at.markdown if "Who are the people" in one.value]
    assert "includes rows kept out of training" in asked.help
    assert not [box for box in at.selectbox if box.label == ASKED]


def test_the_account_of_shared_rows_is_proposed(store, table, show):
    again = bring(store, sample_table(400).drop(columns=["sex"]).iloc[4:], "again.csv")
    at = whole(show("tables", table=again.id))
    assert "Nearly all rows of this table are also in 'clinic visits'" in words(at)
    box = question(at)
    assert box.options[box.index] == "the people in 'clinic visits'"
    assert box.options[-1] == "people who are in no earlier table"


def test_keeping_people_apart_takes_words(store, table, show):
    again = bring(store, sample_table(400), "again.csv")
    at = show("tables", table=again.id)
    at = whole(question(at).set_value(people.NEW).run())
    assert "certificate says that you declared" in words(at)
    assert button(at, "Keep the accounts separate").disabled
    assert store.table(again.id).account_id == table.account_id
    at.text_input(key=f"apart_{again.id}").set_value("another town").run()
    at = whole(press(at, "Keep the accounts separate"))
    assert store.table(again.id).account_id != table.account_id
    assert "Kept separate by the steward: “another town”" in words(at)
    said = words(whole(show("ledger")))
    assert said.count("have no other account: “another town”") == 2  # both accounts' claims


def test_the_first_of_two_tables_is_asked_for_words_too(store, table, show):
    again = bring(store, sample_table(400), "again.csv")
    at = show("tables", table=table.id)
    at = whole(question(at).set_value(people.NEW).run())
    assert button(at, "Keep the accounts separate").disabled
    assert store.table(table.id).account_id == again.account_id


def test_a_table_can_join_an_account_without_shared_rows(store, table, show):
    other = bring(store, sample_table(150), "other.csv")
    at = show("tables", table=other.id)
    assert "No earlier table has enough rows in common" in words(at)
    whole(question(at).set_value(table.account_id).run())
    assert store.table(other.id).account_id == table.account_id


def test_after_a_run_the_answer_stands(store, table, start, show):
    bring(store, sample_table(150), "other.csv")
    start()
    at = show("tables", table=table.id)
    other = next(option for option in question(at).options if "other.csv" in option)
    at = whole(question(at).select(other).run())
    assert "Nothing was changed" in at.error[0].value


@pytest.mark.parametrize("strength", [0.4, 0.95])
def test_another_strength_is_refused_before_the_ledger(store, table, show, strength):
    tagged = tables.change_groups(store, table, {"age": "group 1"})
    store.attest(table.id)
    released(store, tagged, shift=strength)
    at = whole(show("plan", table=table.id))
    assert "strength would undo the shift" in at.error[0].value
    (train,) = [b for b in at.button if b.label.startswith("Not possible: conflicts")]
    assert train.disabled and not any(label.startswith("Train") for label in buttons(at))
    (asked,) = [one for one in at.text_input if one.label.startswith("To continue")]
    at = whole(asked.set_value("it is public").run())
    whole(press(at, next(label for label in buttons(at) if label.startswith("Train"))))
    (run,) = store.runs()
    assert run.request.shift_words == "it is public"


def test_the_same_strength_is_not_asked_about(store, table, show):
    tagged = tables.change_groups(store, table, {"age": "group 1"})
    store.attest(table.id)
    released(store, tagged, shift=0.75)
    at = whole(show("plan", table=table.id))
    assert not at.error and any(label.startswith("Train") for label in buttons(at))


def test_an_untagged_run_after_a_tagged_one_is_refused(store, table, show):
    tagged = tables.change_groups(store, table, {"age": "group 1"})
    released(store, tagged)
    tables.change_groups(store, tagged, {})
    store.attest(table.id)
    at = whole(show("plan", table=table.id))
    assert "would show age without the shift" in at.error[0].value


def test_the_default_limit_is_explained(store, table, show):
    assert f"limit of ε = {DEFAULT_LIMIT:g}" in words(whole(show("plan", table=table.id)))
    said = words(whole(show("ledger")))
    assert f"limit of ε = {DEFAULT_LIMIT:g} for all releases together" in said
    assert "no more releases are made" in said and "cannot be changed after the first" in said
    released(store, table)
    at = whole(show("ledger"))
    assert re.search(r"\d\.\d\d% of the limit of ε 10 is used", words(at))
    numbers = {metric.label: metric.value for metric in at.metric}
    assert numbers["Limit for all releases"] == f"ε {DEFAULT_LIMIT:g}"
    assert "Set this limit" not in buttons(at)


def test_tables_about_the_same_people_share_one_card(store, table, show) -> None:
    frame = store.load_frame(table.id)
    imports.import_frame(store, frame.iloc[1:], name="next month", source="test")
    page = show("ledger")
    heads = [element.value for element in page.markdown if "rows)" in element.value]
    assert len(heads) == 1 and table.name in heads[0] and "next month" in heads[0]


def test_another_unit_takes_words_on_plan_and_ledger_says_so(store, table, show):
    released(store, table)
    schema = table.schema.model_copy(update={"person": Person(rows=3)})
    tables.confirm_schema(store, table.id, schema)
    store.attest(table.id)
    at = whole(show("plan", table=table.id))
    assert "“per row”" in at.error[0].value and "cannot be added" in at.error[0].value
    assert "In this account, ε holds per row" in words(at)
    (train,) = [b for b in at.button if b.label.startswith("Not possible: earlier releases")]
    assert train.disabled
    (asked,) = [one for one in at.text_input if one.label.startswith("To continue")]
    at = whole(asked.set_value("the board agreed").run())
    whole(press(at, next(label for label in buttons(at) if label.startswith("Train"))))
    (run,) = store.runs()
    assert run.request.unit_words == "the board agreed" and run.request.shift_words == ""
    pay(
        store.ledger, table.account_id, run.plan, run.id, domain=run.schema.as_proposed().domain(),
        allow_non_private=False, unit_words=run.request.unit_words,
    )  # fmt: skip
    said = words(whole(show("ledger")))
    assert "protect different units" in said and "more about one person, or one row" in said


def test_a_ledger_changed_from_outside_is_reported(store, table, show):
    set_limit(store, table.id, epsilon=3.0)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE ledger SET body = replace(body, '3.0', '9.0')")
    at = show("ledger")
    assert "changed the ledger outside" in at.error[0].value, "also where nobody presses"
    assert not whole(press(at, "Verify the ledger")).success


def test_a_ledger_without_its_key_cannot_be_checked(store, table, show):
    set_limit(store, table.id, epsilon=3.0)
    assert not whole(show("ledger")).error
    (store.workspace.home / "ledger.key").unlink()
    at = show("ledger")
    assert "cannot be checked" in at.error[0].value and "outside Facsimile" not in at.error[0].value
    assert not whole(press(at, "Verify the ledger")).success
