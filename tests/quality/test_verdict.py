"""The verdict: each limit from both sides, and what either view may tell."""

import pytest

from core.quality.report.outside import outside_report
from core.quality.report.types import AssociationTable, ColumnPicture, Report, Score
from core.quality.verdict import verdict
from core.schema.column import DomainSource, Kind, Learned, SchemaColumn
from core.schema.schema import Schema
from tests.models.tables import rows, schema

NOTHING_LEARNED = Schema(columns=(SchemaColumn(name="a", kind=Kind.CATEGORY),), target="a")


def score(key, value, ceiling):
    return Score(
        key=key, title=key, value=value, unit="", goal="lower", low=0, high=1, meaning="",
        source="", ceiling=ceiling,
    )  # fmt: skip


def report(one=0.02, two=0.04, auroc=0.8, weaker=0, tvd=0.02, **parts):
    """Of a run whose other sample of real rows differs by .02 and reaches an AUROC of .8."""
    real = [[0.5] * 11 for _ in range(11)]
    synthetic = [row.copy() for row in real]
    for i in range(weaker):
        synthetic[10][i] = synthetic[i][10] = 0.1
    names = [f"c{i}" for i in range(11)]
    picture = ColumnPicture(
        kind="category", real=[1.0], synthetic=[1.0], missing_real=0, missing_synthetic=0, tvd=tvd
    )
    scores = [("tvd_1way", one, 0.02), ("tvd_2way", two, 0.02), ("tstr_auroc", auroc, 0.8)]
    luck = [[0.0] * 11 for _ in range(11)]
    return Report(
        rows_real=100, rows_synthetic=100, target="a", scores=[score(*each) for each in scores],
        columns={"a": picture}, complete=True,
        associations=AssociationTable(columns=names, real=real, synthetic=synthetic, luck=luck),
    ).model_copy(update=parts).model_dump()  # fmt: skip


def told(made, declared=NOTHING_LEARNED, *, private=True, hidden=()):
    found = verdict(made, declared, private=private, hidden=hidden)
    return {str(words): use for use, group in found.uses.items() for words in group}


def test_a_close_table_is_fit_and_no_table_is_for_single_people():
    assert told(report()) == {
        "shares of single columns": "fit",
        "cross tables": "fit",
        "models of a": "fit",
        "statements about single people": "unfit",
    }


@pytest.mark.parametrize(("distance", "use"), [(0.07, "fit"), (0.08, "care"), (0.13, "unfit")])
def test_cross_tables_are_judged_beyond_another_real_sample(distance, use):
    assert told(report(two=distance))["cross tables"] == use


@pytest.mark.parametrize(("weaker", "use"), [(5, "fit"), (6, "care"), (10, "care")])
def test_lost_relationships_take_cross_tables_along(weaker, use):
    words = f"cross tables ({weaker} of 55 strong relationships are weaker)"
    assert told(report(weaker=weaker))[words] == use


@pytest.mark.parametrize(("auroc", "use"), [(0.77, "fit"), (0.71, "care"), (0.70, "unfit")])
def test_models_are_judged_by_what_they_learn_above_guessing(auroc, use):
    assert told(report(auroc=auroc))["models of a"] == use


def test_a_column_far_off_is_named_but_no_hidden_one():
    found = told(report(tvd=0.2))
    assert found["shares of a"] == "unfit" and "shares of single columns" not in found
    near = report()["columns"]["a"]
    two = report(tvd=0.2)["columns"] | {"b": near}
    assert told(report() | {"columns": two})["shares of 1 of 2 columns"] == "fit"
    found = told(report(tvd=0.2), hidden=("a",))
    assert "shares of a" not in found and found["shares of a, hidden on purpose"] == "unfit"


@pytest.mark.parametrize(("share", "use"), [(0.04, "care"), (0.51, "unfit")])
def test_rows_that_contradict_themselves_ask_for_care(share, use):
    scores = [score("impossible_rows", 0.03, 0.0), score("inconsistent_rows", share, 0.0)]
    assert told(report(scores=scores))[f"single rows ({share:.0%} contradict themselves)"] == use
    words = "single rows (3% break rules of the real table)"
    assert told(report(scores=scores[:1]))[words] == "care"


def learned(name, outside, **fields):
    domain = Learned(domain="", outside=outside, error=0.001)
    return SchemaColumn(name=name, source=DomainSource.LEARNED, learned=domain, **fields)


def test_what_was_not_learned_is_named_with_its_ends():
    declared = Schema(
        columns=(
            learned("ward", 0.1, kind=Kind.CATEGORY, categories=("x", "OTHER"), other="OTHER"),
            learned("pressure", 0.05, kind=Kind.NUMBER, low=60.0, high=200.0),
            learned("visits", 0.05, kind=Kind.INTEGER, low=0, high=5),
            learned("age", 0.0, kind=Kind.NUMBER, low=0.0, high=100.0),
            SchemaColumn(name="note", kind=Kind.TEXT, source=DomainSource.DROP),
            learned("town", 1.0, kind=Kind.TEXT),
        )
    )
    found = told(report(), declared)
    assert found["rare values of ward"] == found["pressure below 60 or above 200"] == "unfit"
    assert found["visits above 5"] == "unfit"  # nobody expects fewer than none
    assert found["note (left out)"] == found["town (made up)"] == "unfit" and "age" not in " ".join(
        found
    )


def test_the_outside_verdict_leaves_open_what_is_not_paid_for():
    declared = schema().model_copy(update={"sensitive": {}})
    made = outside_report(rows(300, 1), declared).model_dump()
    found = verdict(made, declared, private=True, hidden=())
    assert [str(words) for words in found.uses["unmeasured"]] == [
        "shares of single columns", "cross tables", "predictions",
    ]  # fmt: skip
    assert not found.uses["fit"] and not found.uses["care"]


def test_people_are_protected_by_epsilon_alone():
    assert "ε allows" in verdict(report(), NOTHING_LEARNED, private=True, hidden=()).people
    assert "not protected" in verdict(report(), NOTHING_LEARNED, private=False, hidden=()).people
    attacked = report() | {"attacks": [{"exposed": True}]}
    found = verdict(attacked, NOTHING_LEARNED, private=True, hidden=())
    assert found.exposed and "ε allows" in found.people and "Exposure" in found.people
    found = verdict(attacked, NOTHING_LEARNED, private=False, hidden=())
    assert found.exposed and "ε" not in found.people and "Exposure" in found.people
