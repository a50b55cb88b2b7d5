"""My analysis: pinned questions from real and synthetic rows, inside only."""

from __future__ import annotations

import pytest

from core.inference.questions import Question, Statistic
from core.runs.storage.artefacts import SYNTHETIC_TABLE
from core.services import discussion
from core.services.inference import agreement
from tests.pages.asking.conftest import visits
from tests.pages.asking.questions import GAP, SHARE
from tests.pages.screen import in_tab, words

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
