"""Ask: answers with error bars, before and after there are."""

from __future__ import annotations

import json

import pytest

from core import api
from core.cli.main import main
from core.inference.questions import Question, Statistic
from core.inference.replicas import COUNT
from core.services import export
from core.services.inference.asking import ask
from core.services.recipe import answer_code
from tests.pages.asking.questions import GAP, SHARE
from tests.pages.screen import buttons, words

pytestmark = pytest.mark.slow


def test_without_error_bars_a_steward_can_have_them_made(done, show):
    at = show("ask", run=done.id)
    assert "not known yet" in words(at) and "Work out error bars" in buttons(at)
    assert "of rows have readmitted = yes." in words(at)
    assert "In the real table" not in words(at)


def test_the_answer_is_a_sentence_and_a_picture(replicated, show):
    at = show("ask", run=replicated.id)
    assert "of rows have readmitted = yes. In the real table it lies between" in words(at)
    (chart,) = at.get("plotly_chart")
    assert "readmitted = yes" in chart.proto.alt
    assert "Work out error bars" not in buttons(at)


@pytest.mark.parametrize(
    ("title", "says"),
    [
        ("count", "Number of rows: 400"),
        ("mean", "Mean of"),
        ("quantile", "50% quantile of"),
        ("table", "cells are larger than the noise"),
        ("difference", "Difference in the mean of"),
        ("linear", "Choose at least one column that may explain the outcome."),
        ("survival", "until"),
    ],
)
def test_every_statistic_can_be_chosen(replicated, show, title, says):
    at = show("ask", run=replicated.id)
    at.selectbox[1].set_value(Statistic(title)).run()
    assert not at.exception and says in words(at)


def test_what_was_hidden_is_not_offered(store, replicated, monkeypatch, show):
    monkeypatch.setattr("core.services.limits.hidden_columns", lambda run: ("readmitted",))
    at = show("ask", run=replicated.id)
    assert "readmitted" not in at.selectbox[2].options


def test_the_code_finds_the_same_figure(store, replicated, tmp_path, monkeypatch, capsys):
    path = export.reviewed_file(store, replicated, format="csv")
    where = {"where": ("age=40..", "sex=female")}
    models = {"by": ("age", "triage")}
    for question in (
        SHARE.model_copy(update=where),
        GAP,
        Question(statistic=Statistic.COUNT, **where),
        Question(statistic=Statistic.MEAN, column="bmi"),
        Question(statistic=Statistic.QUANTILE, column="age", level=0.9),
    ):
        code = answer_code(replicated, question).python
        exec(code.replace(export.file_name(replicated, "csv"), str(path)), {})  # noqa: S102
        value = ask(store, replicated, question).figures[-1].value
        assert float(capsys.readouterr().out) == pytest.approx(value), code
    for question in (
        Question(statistic=Statistic.TABLE, column="readmitted", by=("sex",)),
        Question(statistic=Statistic.LOGISTIC, column="readmitted", value="yes", **models),
        Question(statistic=Statistic.LINEAR, column="bmi", **models),
        Question(statistic=Statistic.SURVIVAL, column="age", value="yes", by=("readmitted",)),
    ):
        code = answer_code(replicated, question).python
        exec(code.replace(export.file_name(replicated, "csv"), str(path)), {})  # noqa: S102
        first = ask(store, replicated, question).figures[-1].value
        assert f"{first:.6f}"[:5] in capsys.readouterr().out, code


def test_command_and_function_give_the_answer_of_the_page(store, replicated, capsys):
    asked = ["ask", replicated.id, "difference", "age", "--by", "sex=female|male", "--json"]
    assert main(asked) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    figure = ask(store, replicated, GAP).figures[-1]
    assert told["rows"][-1]["table low"] == figure.table.low and told["replicas"] == COUNT
    found = api.ask(replicated.id, "difference", "age", by=["sex=female|male"])
    assert found.figures[-1] == figure
    with pytest.raises(ValueError, match="no column 'height'"):
        api.ask(replicated.id, "mean", "height")


def test_a_model_whose_intervals_are_too_narrow_says_so(store, replicated):
    assert replicated.plan.model == "pearl"
    assert "too narrow" in ask(store, replicated, GAP).caution
