"""My analysis: pinned questions from real and synthetic rows, inside only."""

from __future__ import annotations

import pytest

from core.export.page_html import page
from core.inference.measured import Measured
from core.inference.questions import Question, Statistic
from core.runs.execution.paid_release import MeasureQuestion
from core.runs.storage.artefacts import SYNTHETIC_TABLE, save_json
from core.services import discussion
from core.services.inference import agreement, asking, paid_figures
from tests.pages.asking.conftest import visits
from tests.pages.asking.questions import GAP, SHARE
from tests.pages.screen import finish, in_tab, small_report, whole, words

pytestmark = pytest.mark.slow


def test_pinned_questions_are_compared_inside_only(store, replicated, show):
    agreement.pin(store, replicated.table_id, [SHARE, GAP], author="ann")
    at = in_tab(show("review", run=replicated.id, view="outside"), "My analysis")
    assert "conclusions agree" not in words(at)
    assert agreement.compared(store, replicated) is None  # nothing real was opened
    at = in_tab(show("review", run=replicated.id), "My analysis")
    assert "of 2 conclusions agree" in words(at)
    assert [len(frame.value) for frame in at.dataframe] == [2]
    assert discussion.looks(store, replicated)
    assert "of 2 conclusions agree" in words(show("review", run=replicated.id))  # the verdict


def test_questions_can_be_pinned_before_training(store, table, show):
    at = show("plan", table=table.id)
    at.session_state[f"plan_{table.id}_pins"] = True
    at.run()
    assert not at.exception
    (button,) = [one for one in at.button if "Pin this question" in one.label]
    button.click().run()
    assert agreement.pinned(store, table.id) == (SHARE,)


def test_conclusions_differ_in_sign_size_or_significance(store, replicated):
    real = store.table(replicated.table_id)
    wrong = visits(1).assign(bmi=lambda rows: 60.0 - rows["bmi"])
    with store.artefacts(replicated.id).replacing(SYNTHETIC_TABLE) as file:
        wrong.to_parquet(file)
    asked = Question(statistic=Statistic.LINEAR, column="bmi", by=("age",))
    agreement.pin(store, real.id, [SHARE, asked], author="ann")
    rows = agreement.compare(store, replicated)
    assert rows[0]["differs"] == [] and "size" in rows[1]["differs"]
    assert "1 of 2 conclusions agree" in str(agreement.summary(rows))


PAID = "share readmitted=yes"
MEASURED = "Share of readmitted = yes: 25.0% ± 1.0% measured on the real rows with noise; synthetic"


@pytest.fixture
def paid(store, start):
    """A finished run that paid for the share, which synthetic rows miss."""
    run = start(model="scan_focus", pay=(PAID,))
    finish(store, run, report=small_report(filled=True), outside=small_report() | OUTSIDE)
    with store.artefacts(run.id).replacing(SYNTHETIC_TABLE) as file:
        visits(1).assign(readmitted="yes").to_parquet(file)
    (step,) = MeasureQuestion.bought(run.plan)
    noise, sums = 10 / 1.96 / 0.790569, (250.0, 750.0)  # √(.25² + .75²)
    found = Measured(question=SHARE, low=0, high=1, noise_std=noise, sums=sums)
    save_json(store.artefacts(run.id), step.file, found)
    return store.run(run.id)


OUTSIDE = {"view": "outside"}


def test_outside_shows_only_what_the_run_paid_for(store, paid, show):
    agreement.pin(store, paid.table_id, [SHARE, GAP], author="ann")
    at = in_tab(show("review", run=paid.id, view="outside"), "My analysis")
    assert f"{MEASURED} 100.0%: differs in size." in words(at) and "sex" not in words(at)
    assert agreement.compared(store, paid) is None  # nothing real was opened
    assert not discussion.looks(store, paid)
    (row,) = paid_figures.measured(store, paid)
    told = page(small_report() | OUTSIDE, "t", conclusions=[row])
    assert f"{MEASURED} 100.0%: differs in size." in told


def test_ask_shows_the_measured_figure_of_just_this_question(store, paid, show):
    assert asking.ask(store, paid, SHARE).measured.startswith(MEASURED)
    at = show("ask", run=paid.id)
    assert MEASURED in words(at)
    (field,) = [one for one in at.selectbox if one.label.startswith("What do you")]
    field.select_index(2).run()
    assert "measured on the real rows" not in words(at)


def test_a_lost_or_unknown_answer_is_said(store, paid):
    (step,) = MeasureQuestion.bought(paid.plan)
    store.artefacts(paid.id).delete(step.file)
    (row,) = paid_figures.measured(store, paid)
    assert row["differs"] is None and row["note"].startswith("Not measured")


def test_plan_offers_pinned_questions_and_shows_their_cost(store, table, show):
    quantile = Question(statistic=Statistic.QUANTILE, column="age")
    agreement.pin(store, table.id, [SHARE, quantile], author="ann")
    at = show("plan", table=table.id)
    (field,) = [one for one in at.multiselect if "measure questions" in one.label]
    assert field.options == ["Share of readmitted = yes"]
    at = whole(field.select(field.options[0]).run())
    assert "Question: Share of readmitted = yes" in words(at)
    assert any(f"'--pay={PAID}'" in one.value for one in at.code)
