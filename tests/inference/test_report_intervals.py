"""Intervals of the report for people outside: in its own bins, and shown with its figures."""

from __future__ import annotations

import numpy as np
import pytest

from core.figures.associations import association_figure
from core.figures.column import column_figure, describe_column
from core.inference.report_intervals import _shares, report_intervals
from core.quality.report.outside import outside_report
from core.schema.column import SchemaColumn
from core.schema.schema import Schema
from tests.inference.people import domain, run

pytestmark = pytest.mark.slow
SCHEMA = Schema(columns=tuple(SchemaColumn(**column.fields()) for column in domain().columns))


@pytest.fixture(scope="module")
def shown():
    _, made, replicas = run(400, 3, 6)
    made.loc[:20, "age"] = np.nan
    report = outside_report(made, SCHEMA).model_dump(mode="json")
    return report | {"intervals": report_intervals(report, made, replicas, SCHEMA)}, made


def test_shares_are_those_of_the_report(shown):
    report, made = shown
    for column in domain().modelled:
        picture = report["columns"][column.name]
        told = [*picture["synthetic"], picture["missing_synthetic"]]
        assert _shares(picture, column, made) == pytest.approx(told), column.name


def test_every_share_and_mean_has_a_half(shown):
    columns = shown[0]["intervals"]["columns"]
    assert 0.02 < columns["ill"]["shares"][0] < 0.2
    assert [figure[0] for figure in columns["age"]["figures"]] == ["mean", "median"]
    assert np.shape(shown[0]["intervals"]["associations"]) == (4, 4)


def test_pictures_and_sentences_show_them(shown):
    report, _ = shown
    for name in report["columns"]:
        bars = [t for t in column_figure(report, name)["data"] if {"error_x", "error_y"} & set(t)]
        assert len(bars) == 1, name
    assert "In the real table (95%): no " in describe_column(report, "ill")
    assert "±" in association_figure(report)["data"][0]["hovertext"][0][1]


def test_without_replicas_nothing_is_said(shown):
    report, made = shown
    assert report_intervals(report, made, (), SCHEMA) == {}
    bare = report | {"intervals": {}}
    assert "error_x" not in column_figure(bare, "ill")["data"][0]
    assert "real table" not in describe_column(bare, "ill")
