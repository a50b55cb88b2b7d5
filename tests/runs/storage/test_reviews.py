"""Comments, verdicts, rules and picks: nothing is lost, nothing is changed afterwards."""

import pytest

from core.runs.errors import RunStoreError
from core.runs.storage.reviews import notes
from core.runs.storage.reviews.notes import Decision, Rule
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from tests.requests_for import request_for


@pytest.fixture
def run(store, table, plan, schema):
    made = store.create_run(
        table.id, plan, request_for(plan, rows=5, seed=1, device="cpu"), schema=schema
    )
    return {"table_id": table.id, "run_id": made.id}


def test_a_comment_stays_with_its_figure_and_can_be_settled(store, run):
    notes.comment(store, **run, about="column:age", author="  Ada  L ", text=" too old ")
    notes.comment(store, **run, about="pca", author="Bob", text="fine")
    first, second = notes.comments(store, run["run_id"])
    assert (first.author, first.about, first.text) == ("Ada L", "column:age", "too old")
    assert first.time <= second.time and not first.settled_by
    notes.settle(store, **run, comment_id=first.id, author="Cy")
    assert [c.settled_by for c in notes.comments(store, run["run_id"])] == ["Cy", ""]


@pytest.mark.parametrize(("author", "text"), [("", "x"), ("  ", "x"), ("Ada", " ")])
def test_a_comment_needs_a_name_and_words(store, run, author, text):
    with pytest.raises(RunStoreError):
        notes.comment(store, **run, about="", author=author, text=text)
    assert notes.comments(store, run["run_id"]) == []


def test_the_last_verdict_of_a_person_counts(store, run):
    def decide(author, decision, text=""):
        notes.decide(store, **run, author=author, decision=decision, text=text)

    decide("Ada", Decision.CHANGES, "too few old people")
    decide("Bob", Decision.APPROVE)
    decide("ada ", Decision.APPROVE)
    found = notes.review_verdicts(store, run["run_id"])
    assert [(v.author, v.decision) for v in found] == [
        ("Bob", Decision.APPROVE),
        ("ada", Decision.APPROVE),
    ]
    with pytest.raises(RunStoreError, match="what should change"):
        decide("Cy", Decision.CHANGES)


def test_a_rule_blocks_until_enough_people_approve(store, run):
    def waits():
        return notes.missing(store, **run)

    assert waits() == ""
    notes.set_rule(store, table_id=run["table_id"], author="S", rule=Rule(2, inside=True))
    assert notes.rule(store, run["table_id"]) == Rule(2, inside=True)
    assert waits().startswith("2 more people")
    notes.decide(store, **run, author="Ada", decision=Decision.APPROVE)
    assert waits().startswith("1 more person")
    notes.decide(store, **run, author="ADA", decision=Decision.APPROVE)  # the same person
    assert waits().startswith("1 more person")
    notes.decide(store, **run, author="Bob", decision=Decision.APPROVE)
    assert waits() == ""
    notes.decide(store, **run, author="Cy", decision=Decision.CHANGES, text="no")
    assert waits() == "Changes were asked for by Cy."
    with pytest.raises(RunStoreError):
        notes.set_rule(store, table_id=run["table_id"], author="S", rule=Rule(-1))


def test_an_alarm_needs_one_approval_by_default(store, run):
    def waits():
        return notes.missing(store, **run, alarm=True)

    assert notes.missing(store, **run) == "" and waits().startswith("1 more person")
    notes.set_rule(store, table_id=run["table_id"], author="S", rule=Rule(0, inside=True))
    assert waits().startswith("1 more person")  # a rule about something else waives nothing
    notes.set_rule(store, table_id=run["table_id"], author="S", rule=Rule(alarm_approvals=0))
    assert waits() == ""
    notes.set_rule(store, table_id=run["table_id"], author="S", rule=Rule(2))
    assert waits().startswith("2 more people")
    with pytest.raises(RunStoreError):
        rule = Rule(alarm_approvals=-1)
        notes.set_rule(store, table_id=run["table_id"], author="S", rule=rule)


def test_an_unset_rule_needs_an_approval_during_an_alarm(store, run):
    old = '{"approvals": 0, "inside": true}'
    notes._add(store, "rule", run["table_id"], None, "S", "", old)
    assert notes.rule(store, run["table_id"]) == Rule(inside=True, alarm_approvals=1)


def test_the_last_pick_holds_and_goes_with_its_run(store, run, plan, schema):
    other = store.create_run(
        run["table_id"], plan, request_for(plan, rows=5, seed=2, device="cpu"), schema=schema
    )
    assert notes.picked(store, run["table_id"]) is None
    notes.pick(store, table_id=run["table_id"], run_id=other.id, author="Ada")
    notes.pick(store, **run, author="Bob")
    assert notes.picked(store, run["table_id"]) == (run["run_id"], "Bob")
    notes.comment(store, **run, about="", author="Bob", text="x")
    store.delete_run(run["run_id"])
    assert notes.picked(store, run["table_id"]) == (other.id, "Ada")
    assert notes.comments(store, run["run_id"]) == []


def test_what_was_written_inside_is_not_shown_outside(store, run):
    notes.comment(store, **run, about="pca", author="Ada", text="Mr X earns 9 million")
    notes.comment(store, **run, about="pca", author="Rita", text="fine", view="outside")
    notes.decide(store, **run, author="Ada", decision=Decision.CHANGES, text="Mr X is in it")
    assert [c.author for c in notes.comments(store, run["run_id"], "outside")] == ["Rita"]
    assert [c.author for c in notes.comments(store, run["run_id"])] == ["Ada", "Rita"]
    (verdict,) = notes.review_verdicts(store, run["run_id"], "outside")
    assert verdict.decision is Decision.CHANGES and verdict.text == ""
    assert notes.review_verdicts(store, run["run_id"])[0].text == "Mr X is in it"


def test_another_process_sees_what_was_said(store, run):
    notes.decide(store, **run, author="Ada", decision=Decision.APPROVE)
    with RunStore(Workspace(store.workspace.home)) as again:
        assert len(notes.review_verdicts(again, run["run_id"])) == 1
