"""Views, comments, verdicts, comparison and the download they guard."""

from __future__ import annotations

import math
import time

import pytest
from streamlit.testing.v1 import AppTest

from core.models.events import Preview
from core.quality.report import types
from core.runs.storage.reviews import notes
from core.runs.storage.reviews.notes import Decision, Rule
from core.schema.column import DomainSource, Kind, Learned, SchemaColumn
from core.schema.schema import Schema
from core.services import tables
from pages.server import guard
from tests.pages.screen import (
    button,
    buttons,
    each_tab,
    finish,
    in_tab,
    press,
    small_report,
    whole,
    words,
)

pytestmark = pytest.mark.slow


def outside_report():
    """As small as can be: one column, nothing real."""
    picture = types.ColumnPicture(
        kind="integer", edges=[0, 50, 100], real=[], synthetic=[0.5, 0.5],
        missing_real=None, missing_synthetic=0, tvd=None,
    )  # fmt: skip
    return types.Report(
        view="outside", complete=True, rows_real=0, rows_synthetic=300,
        columns={"c0": picture}, notes=["Nothing on this page was computed from real rows."],
    ).model_dump(mode="json")  # fmt: skip


@pytest.fixture
def done(store, start):
    run = start()
    finish(store, run, report=small_report(filled=True), outside=outside_report())
    return run


@pytest.fixture
def reviewer(monkeypatch):
    """A signed-in person who is no steward."""
    monkeypatch.setattr(guard, "steward", lambda: False)
    monkeypatch.setattr(guard, "person", lambda: "Rita")


def text_of(at, label):
    return next(box for box in at.text_input if box.label == label)


# -- views --------------------------------------------------------------------------------------


def test_a_steward_sees_inside_and_may_look_from_outside(show, done):
    at = whole(show("review", run=done.id))
    assert "400 real and" in words(at) and "Outside view" not in words(at)
    at = whole(show("review", run=done.id, view="outside"))
    said = "".join(words(tab) for tab in each_tab(at))
    assert "Outside view" in said and "real and" not in said
    assert "Measured on a sample." not in said


def test_rules_that_are_broken_are_declared_by_a_press(store, table, show, start):
    report = small_report(filled=True)
    report["broken_rules"] = [
        {"text": "age <= cost", "columns": ["age", "cost"], "rows": 70},
        {"text": "ward <- age", "columns": ["age", "ward"], "rows": 7},
    ]
    report["scores"][0] |= {"key": "impossible_rows", "value": 0.25}
    run = start()
    finish(store, run, report=report, outside=outside_report())
    at = in_tab(show("review", run=run.id), "Findings and scores")
    assert "25% of the synthetic rows break rules that every real row keeps: age <= cost" in words(
        at
    )
    at = whole(at.button(key=f"declare_{run.id}_age <= cost").click().run())
    assert [rule.text for rule in store.table(table.id).schema.rules] == ["age <= cost"]
    assert "Declared since" in words(at) and not store.attested(table.id)
    at = whole(at.button(key=f"declare_{run.id}_ward <- age").click().run())
    assert "'age' has no list of values" in at.error[0].value  # as it is it cannot be kept
    assert len(store.table(table.id).schema.rules) == 1
    outside = whole(show("review", run=run.id, view="outside"))
    assert "contradict" not in words(outside)
    assert f"declare_{run.id}_ward <- age" not in [one.key for one in outside.button]


def test_the_score_of_the_whole_table_is_shown(store, show, start):
    report = small_report(filled=True)
    shared = {"real": 950.0, "as_close_as": 0.21}
    report["yardsticks"] = [
        {"group": None, "score": 812.0, "groups": [], **shared},
        {"group": "ward", "score": 734.0, "groups": [["north", 301.0, 640.0]], **shared},
    ]
    report["scores"][0] |= {"key": "inconsistent_rows", "value": 0.25, "note": "Men in labour."}
    run = start()
    finish(store, run, report=report, outside=outside_report())
    at = in_tab(show("review", run=run.id), "The whole table")
    assert "812 of 1000 points: as close as a random 21.0%" in words(at)
    assert "25.00%. Men in labour." in words(at)


def test_groups_of_one_and_of_two_columns_are_shown(store, show, start):
    report = small_report(filled=True)
    run = start()
    finish(store, run, report=report, outside=outside_report())
    at = in_tab(show("review", run=run.id), "Groups")
    assert "Worst of ward." in words(at) and "Groups not shown" not in words(at)
    first, second = (one for one in at.selectbox if one.label in ("Groups of", "and of"))
    assert list(at.dataframe[-1].value["ill = yes"]) == ["20.0% → 30.0%"]
    at = second.set_value("age").run()
    assert "Worst of ward and age." in words(at) and "beyond the largest: 3." in words(at)
    outside = in_tab(show("review", run=run.id, view="outside"), "Groups")
    assert "Shown in the inside view only." in words(outside)


def test_a_reviewer_inside_is_offered_no_declaration(store, show, start, reviewer):
    report = small_report()
    report["broken_rules"] = [{"text": "age <= cost", "columns": ["age", "cost"], "rows": 70}]
    run = start()
    finish(store, run, report=report, outside=outside_report())
    notes.set_rule(store, table_id=run.table_id, author="o", rule=Rule(inside=True))
    at = whole(show("review", run=run.id, view="inside"))
    assert "Declare" not in buttons(at)


def test_a_reviewer_inside_sees_figures_and_no_real_rows(store, show, done, reviewer):
    store.journal.append(done.id, Preview(rows=[{"age": 30, "ward": "x"}]))
    notes.set_rule(store, table_id=done.table_id, author="S", rule=Rule(inside=True))
    at = in_tab(show("review", run=done.id), "The whole table")
    assert "400 real and" in words(at) and at.get("plotly_chart")
    assert not any(box.label.startswith("Rows side by side") for box in at.multiselect)


def test_a_reviewer_sees_only_outside_by_default(store, show, done, reviewer):
    at = whole(show("review", run=done.id))
    assert "Outside view" in words(at) and "400 real and" not in words(at)
    at = whole(show("review", run=done.id, view="inside"))
    assert "Outside view" in words(at) and "400 real and" not in words(at)
    at = whole(show("review", run=done.id, runs=done.id))
    assert "Outside view" in words(at)
    rule = Rule(approvals=0, inside=True)
    notes.set_rule(store, table_id=done.table_id, author="S", rule=rule)
    assert "400 real and" in words(whole(show("review", run=done.id)))


def test_an_inside_file_goes_with_the_right_to_look_inside(
    store, show, done, reviewer, downloads, monkeypatch
):
    monkeypatch.setattr(guard, "roles_of", lambda address: {"reviewer"})
    where = {"table_id": done.table_id, "run_id": done.id}
    notes.comment(store, **where, about="pca", author="Bob", text="two clouds are one")
    notes.set_rule(store, table_id=done.table_id, author="S", rule=Rule(inside=True))
    whole(show("review", run=done.id))
    (name,) = downloads
    assert name.endswith("review-inside.html") and b"stamp inside" in downloads[name]()
    assert b"<td>two principal axes</td>" in downloads[name]()  # as the page calls it, not "pca"
    notes.set_rule(store, table_id=done.table_id, author="S", rule=Rule(inside=False))
    with pytest.raises(PermissionError):  # the page was left open
        downloads[name]()
    whole(show("review", run=done.id))
    assert downloads["clinic-visits-synthetic-epsilon-1.review-outside.html"]()


def test_a_run_without_privacy_has_no_outside(show, store, start, monkeypatch):
    run = start(epsilon=math.inf)
    finish(store, run, report=small_report(filled=True), outside=outside_report())
    assert "400 real and" in words(whole(show("review", run=run.id, view="outside")))
    monkeypatch.setattr(guard, "steward", lambda: False)
    at = whole(show("review", run=run.id))
    assert "it has no outside view" in words(at)
    assert "synthetic rows" not in words(at) and not at.get("plotly_chart")
    at = whole(show("review", run=run.id, runs=run.id))
    assert "it has no outside view" in words(at) and not at.get("plotly_chart")


def test_only_a_steward_is_offered_the_rule_and_the_pick(show, done, reviewer):
    at = in_tab(show("review", run=done.id), "Discussion")
    assert "Review rules for this table" not in [box.label for box in at.expander]
    at = whole(show("review", run=done.id, runs=done.id))
    assert "Pick this run" not in buttons(at)


# -- what people say ----------------------------------------------------------------------------


def choice_of(at):
    return next(r for r in at.radio if r.label == "May this table be released?")


def test_a_verdict_is_given_and_shown(store, show, done):
    at = in_tab(show("review", run=done.id), "Discussion")
    text_of(at, "Your name").set_value("Ada")
    choice_of(at).set_value(Decision.APPROVE)
    whole(press(at, "Submit verdict"))
    (given,) = notes.review_verdicts(store, done.id)
    assert given.author == "Ada" and given.decision is Decision.APPROVE
    assert "Approved" in words(at) and "**Ada**" in words(at)
    assert choice_of(at).value is None  # the next person chooses too


def test_a_verdict_without_a_choice_is_refused(store, show, done):
    at = in_tab(show("review", run=done.id), "Discussion")
    assert choice_of(at).value is None
    text_of(at, "Your name").set_value("Ada")
    whole(press(at, "Submit verdict"))
    assert "Choose whether you approve or request changes. Nothing was kept." in words(at)
    assert notes.review_verdicts(store, done.id) == []


def test_a_verdict_needs_an_address_where_people_sign_in(store, show, done, monkeypatch):
    claims = {"is_logged_in": True, "name": "Ada", "iat": time.time()}
    monkeypatch.setattr(guard, "require", lambda *_: None)
    monkeypatch.setattr(guard, "configured", lambda: True)
    monkeypatch.setattr(guard, "_claims", lambda: claims)
    monkeypatch.setattr(guard, "roles_of", lambda _: {"steward"})
    at = in_tab(show("review", run=done.id), "Discussion")
    assert "Submit verdict" not in buttons(at) and "does not provide a verified one" in words(at)
    claims |= {"email": "ada@x.org", "email_verified": True}
    at = in_tab(show("review", run=done.id), "Discussion")
    choice_of(at).set_value(Decision.APPROVE)
    whole(press(at, "Submit verdict"))
    (given,) = notes.review_verdicts(store, done.id)
    assert given.author == "ada@x.org (Ada)"


def test_a_verdict_without_a_name_or_a_reason_is_refused(store, show, done):
    at = in_tab(show("review", run=done.id), "Discussion")
    choice_of(at).set_value(Decision.APPROVE)
    whole(press(at, "Submit verdict"))
    assert "Write your name first" in words(at)
    choice_of(at).set_value(Decision.CHANGES)
    text_of(at, "Your name").set_value("Ada")
    whole(press(at, "Submit verdict"))
    assert "Say what should change" in words(at)
    assert notes.review_verdicts(store, done.id) == []


def test_comments_stand_beside_their_figure_until_settled(store, show, done):
    where = {"table_id": done.table_id, "run_id": done.id}
    notes.comment(store, **where, about="pca", author="Bob", text="two clouds are one")
    at = in_tab(show("review", run=done.id), "The whole table")
    assert "**Bob**: two clouds are one" in words(at) and "Comment (1)" in buttons(at)
    at = in_tab(at, "Discussion")
    assert f"on **[two principal axes](review?run={done.id}&figure=pca)**" in words(at)
    whole(press(at, "Resolve"))
    assert "Resolved by" in words(at)
    assert "**Bob**: two clouds are one" not in words(in_tab(at, "The whole table"))


def test_a_rule_holds_the_download_back(store, show, done):
    at = in_tab(show("review", run=done.id), "Discussion")
    number = next(n for n in at.number_input if n.label == "Approvals needed before download")
    number.set_value(1)
    at.text_input(key="name_rule").set_value("Steward")
    whole(press(at, "Save rules"))
    at = whole(show("download", run=done.id))
    assert "is waiting for review" in words(at) and "Go to the review" in buttons(at)
    assert not at.get("download_button")
    where = {"table_id": done.table_id, "run_id": done.id}
    notes.decide(store, **where, author="Ada", decision=Decision.APPROVE)
    assert whole(show("download", run=done.id)).get("download_button")


# -- several runs -------------------------------------------------------------------------------


def test_runs_stand_side_by_side_and_one_is_picked(store, start, show, done):
    other = start(epsilon=0.5)
    report = small_report(filled=True)
    report["scores"][0]["value"] = 0.01
    finish(store, other, report=report)
    at = whole(show("review", run=done.id, runs=f"{done.id},{other.id}"))
    (table,) = [frame.value for frame in at.dataframe if "Model" in frame.value]
    assert sorted(table["ε"]) == [0.5, 1.0] and len(table) == 2
    assert "↓ Single columns: distance" in table
    assert "The best is" in words(at) and "at ε 0.5: 0.01" in words(at)
    assert len(at.get("plotly_chart")) == 3  # the curve and a picture a run
    text_of(at, "Your name").set_value("Cy")
    next(r for r in at.radio if r.label == "Pick a run").set_value(other.id)
    whole(press(at, "Pick this run"))
    assert notes.picked(store, done.table_id) == (other.id, "Cy")
    assert "picked by Cy" in words(at)
    assert "picked another run of this table" in words(whole(show("download", run=done.id)))


def test_one_run_alone_is_compared_with_nothing(show, done):
    at = whole(show("review", run=done.id, runs=done.id))
    assert "Choose at least two finished runs" in words(at)


def test_an_address_with_strange_runs_is_no_fault(show, done):
    whole(show("review", run=done.id, runs="nonsense,../../x"))


# -- the plan -----------------------------------------------------------------------------------


def test_the_review_budget_is_a_phase_of_the_plan(store, show, table):
    at = whole(show("plan", table=table.id))
    slider = next(s for s in at.select_slider if s.key == "review_share")
    whole(slider.set_value(0.05).run())
    assert "Pictures for people outside" in words(at)
    whole(button(at, "Train: spends ε = 1 of this table's budget").click().run())
    (run,) = store.runs()
    assert run.plan.phase("review").share == pytest.approx(0.05)


def test_rows_are_kept_out_by_the_steward_and_the_plan_says_so(store, show, table):
    at = whole(show("tables", table=table.id))
    control = next(c for c in at.get("button_group") if "kept out" in str(c.proto.label))
    assert control is not None
    tables.change_holdout(store, store.table(table.id), 0.25)
    store.attest(table.id)
    assert "300 rows for training, 100 kept out" in words(whole(show("plan", table=table.id)))


def test_a_link_to_one_figure_opens_it(store, start, show):
    run = start()
    report = small_report(columns=12, filled=True)
    report["columns"]["sex"] = report["columns"].pop("c3")
    finish(store, run, report=report)
    about = f"column:{run.schema.names.index('sex')}"
    at = whole(show("review", run=run.id, figure=about))
    names = [m.value for m in at.markdown if ":gray[distance" in m.value]
    assert names[0].startswith("**sex**")
    where = {"table_id": run.table_id, "run_id": run.id}
    notes.comment(store, **where, about="column:sex", author="Bob", text="odd")
    at = in_tab(at, "Discussion")
    assert f"figure={about.replace(':', '%3A')}" in words(at)
    at = whole(show("review", run=run.id, figure="pca"))
    assert "pca" in [chart.key for chart in at.get("plotly_chart")]


def test_the_verdict_comes_first(store, start, show):
    run = start()
    finish(store, run, report=small_report(filled=True))
    text = words(whole(show("review", run=run.id)))
    assert "Fit for] shares of single columns" in text
    assert "Not measured yet] cross tables" in text
    assert "Not for] statements about single people" in text
    assert "People] protected within what ε allows" in text


def test_rows_of_both_tables_stand_side_by_side(store, table, show, done):
    store.journal.append(
        done.id, Preview(rows=[{"age": 30, "ward": "x"}, {"age": 40, "ward": "y"}])
    )
    at = in_tab(show("review", run=done.id), "The whole table")
    real, synthetic = [one.value for one in at.dataframe[:2]]
    assert synthetic["age"].tolist() == [30, 40] and list(real.columns) == ["age", "ward"]
    assert len(real) == 2 and real["age"].tolist() == [
        row["age"] for row in table.profile["preview"][:2]
    ]
    at = whole(at.multiselect[0].set_value(["ward"]).run())
    assert list(at.dataframe[0].value.columns) == ["ward"]
    outside = in_tab(show("review", run=done.id, view="outside"), "The whole table")
    assert not outside.multiselect


def test_what_became_of_columns_is_one_table_to_sort():
    learned = Learned(domain="", outside=0.2, error=0.01)
    declared = Schema(
        columns=(
            SchemaColumn(name="note", kind=Kind.TEXT, source=DomainSource.DROP),
            SchemaColumn(
                name="ward", kind=Kind.CATEGORY, categories=("x", "OTHER"), other="OTHER",
                source=DomainSource.LEARNED, learned=learned,
            ),
            SchemaColumn(name="site", kind=Kind.CATEGORY, categories=("a",)),
            SchemaColumn(name="age", kind=Kind.NUMBER, low=0.0, high=9.0),
        )
    )  # fmt: skip

    def script(declared):
        from pages.review import report_scores

        report_scores.fates(declared)

    at = AppTest.from_function(script, args=(declared,)).run()
    fates = at.dataframe[0].value.set_index("Column")
    assert fates["What became of it"].to_dict() == {
        "note": "left out", "site": "always the same value", "ward": "rare values replaced",
    }  # fmt: skip
    assert fates.at["ward", "Share of rows"] == 0.2
