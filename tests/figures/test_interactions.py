"""The picture and the sentence of what a scan found significant."""

from __future__ import annotations

import math

from core.export.findings import findings
from core.figures.interactions import FIGURE, describe_interactions, interactions_figure
from core.quality.report.types import Report


def one(*columns, score=40.0, target=False):
    return {"columns": list(columns), "score": score, "target": target}


def report(*told, target="ill"):
    empty = Report(rows_real=1, rows_synthetic=1, target=target).model_dump(mode="json")
    return empty | {"significant_sets": list(told)}


def test_models_that_do_not_scan_show_nothing():
    for silent in (report(), Report(rows_real=1, rows_synthetic=1).model_dump(mode="json")):
        assert interactions_figure(silent) is None and FIGURE.drawn(silent) is None
        assert findings(silent) == []


def test_pairs_are_coloured_by_logarithm_others_are_blank():
    told = report(one("a", "b", score=1000.0), one("b", "c", score=10.0))
    figure = interactions_figure(told)
    (trace,) = figure["data"]
    named = {name: i for i, name in enumerate(figure["layout"]["xaxis"]["ticktext"])}
    grid = trace["z"]
    a, b, c = (named[name] for name in "abc")
    assert grid[a][b] == grid[b][a] == math.log10(1000.0) and grid[b][c] == 1.0
    assert grid[a][c] is None and grid[a][a] is None


def test_larger_sets_stand_below_in_full():
    told = report(one("a", "b"), one("x", "y", "z", score=200.0, target=True))
    figure = interactions_figure(told)
    _, bars = figure["data"]
    assert bars["x"] == [200.0] and "x × y × z" in figure["layout"]["yaxis2"]["ticktext"]
    assert "differs between the values of the target" in bars["hovertext"][0]
    assert "1 pair of columns, 1 larger set" in describe_interactions(told)
    assert "x × y × z" in describe_interactions(told)


def test_a_set_without_pairs_is_a_picture_too():
    (bars,) = interactions_figure(report(one("x", "y", "z")))["data"]
    assert bars["type"] == "bar"


def test_the_sentence_names_the_target_only_where_it_matters():
    (about,) = findings(report(one("x", "y", "z", target=True)))
    assert about.kind == "counted" and "together tell something about ill" in about.text
    assert "x, y, z" in about.text
    (silent,) = findings(report(one("x", "y", "z")))
    assert "ill" not in silent.text
    (outside,) = findings(report(one("x", "y", "z", target=True), target=None))
    assert "about the target" in outside.text
    assert findings(report(one("a", "b", target=True))) == []  # pairs have sentences already


def test_both_views_may_show_it():
    for view in ("inside", "outside"):
        assert FIGURE.drawn(report(one("a", "b")) | {"view": view}) is not None


def test_pairs_tell_how_far_their_association_may_be_off():
    told = report(one("a", "b"), one("b", "c")) | {
        "associations": {"columns": ["a", "b"], "real": [], "synthetic": [[1.0, 0.4], [0.4, 1.0]]},
        "intervals": {"associations": [[0.0, 0.1], [0.1, 0.0]]},
    }
    (trace,) = interactions_figure(told)["data"]
    hover = [text for row in trace["hovertext"] for text in row if "association" in text]
    assert len(hover) == 2 and all("0.40 (real table: ± 0.10)" in text for text in hover)
