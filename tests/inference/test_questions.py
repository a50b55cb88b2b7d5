"""Questions: kept as JSON, refused with a reason, and what has to be known for them."""

from __future__ import annotations

import pytest

from core.inference.questions import Question, QuestionError, Statistic, beyond, check, words
from core.schema.conditions import ConditionError
from tests.inference.people import domain

DOMAIN = domain()


def question(statistic: str, **asked) -> Question:
    return Question(statistic=Statistic(statistic), **asked)


def test_a_question_survives_json():
    asked = question("share", column="ill", value="yes", where=("age=60..",))
    assert Question.model_validate_json(asked.model_dump_json()) == asked
    assert words(asked) == "Share of ill = yes where age=60.."


@pytest.mark.parametrize(
    "asked",
    [
        question("share", column="nobody", value="yes"),
        question("share", column="ill"),
        question("mean", column="ward"),
        question("quantile", column="age", level=1.0),
        question("table", column="ill", by=("age",)),
        question("table", column="ill", by=("ill",)),
        question("difference", column="age", by=("ward",), groups=("a", "a")),
        question("difference", column="age", by=("ward",), groups=("a", "z")),
        question("linear", column="age"),
        question("linear", column="ward", by=("age",)),
        question("survival", column="days", by=("ill",)),
    ],
)
def test_what_makes_no_sense_is_refused(asked):
    with pytest.raises(QuestionError):
        check(asked, DOMAIN)


def test_values_that_nobody_declared_are_refused():
    with pytest.raises(ConditionError):
        check(question("share", column="ill", value="maybe"), DOMAIN)


def test_hidden_columns_answer_nothing():
    asked = question("mean", column="age", where=("ill=yes",))
    check(asked, DOMAIN)
    with pytest.raises(QuestionError, match="hidden on purpose"):
        check(asked, DOMAIN, hidden=["ill"])


def test_pairs_are_known_and_more_only_if_measured():
    share = question("share", column="ill", value="yes", where=("ward=a",))
    assert beyond(share, DOMAIN) == 0
    more = share.model_copy(update={"where": ("ward=a", "age=60..", "days=3..")})
    assert beyond(more, DOMAIN) == 2
    assert beyond(more, DOMAIN, [frozenset({"ill", "ward", "age"})]) == 1
    assert beyond(question("linear", column="age", by=("ill", "ward", "days")), DOMAIN) == 0
