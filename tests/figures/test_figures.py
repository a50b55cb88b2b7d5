"""Figures from plain dicts: what is drawn, in words and numbers."""

import json
from datetime import UTC, datetime

import pytest
from plotly.graph_objects import Figure

from core.figures.column import column_figure, describe_column
from core.figures.column_profile import profile_figure
from core.figures.elements import edge_ticks, name_points, share, spans
from core.figures.pca import pca_figure
from core.figures.prediction import prediction_figure
from core.figures.probability import describe_probability, probability_figure
from core.figures.prospects import prospects_figure
from core.figures.report_figure import report_figures
from core.language.catalogue import ENGLISH, language, say_figure

HISTOGRAM = {
    "kind": "integer",
    "scale": "log",
    "labels": None,
    "edges": [0, 0, 2, 9],
    "real": [0.5, 0.1, 0.2],
    "synthetic": [0.35, 0.2, 0.35],
    "missing_real": 0.2,
    "missing_synthetic": 0.1,
    "outside": 0.0,
    "tvd": 0.25,
}
BARS = {
    "kind": "category",
    "scale": "linear",
    "labels": ["a", "a label that is far too long for any axis"],
    "edges": None,
    "real": [0.75, 0.25],
    "synthetic": [0.5, 0.5],
    "missing_real": 0.0,
    "missing_synthetic": 0.0,
    "outside": 0.0,
    "tvd": 0.25,
}


STATE = {
    "column": "word",
    "labels": ["a", "b"],
    "real": [[0.5, 0.25, 0.25], [0.1, 0.4, 0.5]],
    "synthetic": [[0.25, 0.5, 0.25], [0.1, 0.4, 0.5]],
    "times": [0.0, 5.0],
    "real_not_yet": [[0.5, 0.2], [0.6, 0.1]],
    "synthetic_not_yet": [[0.4, 0.3], [0.5, 0.2]],
    "runs": HISTOGRAM,
}
HISTORIES = {
    "file": "",
    "days": True,
    "pictures": {"events": BARS, "gaps": HISTOGRAM, "first": HISTOGRAM},
    "states": [STATE],
    "people": [[[0.0, "a"], [4.0, "b"]], [[0.0, "b"], [2.5, "b"]]],
}


def prediction(column, real, synthetic, metric="F1", predictable=True):
    return {
        "column": column,
        "metric": metric,
        "real": real,
        "synthetic": synthetic,
        "baseline": 0.1,
        "predictable": predictable,
        "note": "",
    }


@pytest.fixture
def report():
    return {
        "view": "inside",
        "columns": {"amount": HISTOGRAM, "word": BARS},
        "pca": {
            "real": [[0.0, 1.0], [1.0, 0.0]],
            "synthetic": [[0.5, 0.5]],
            "explained": [0.4, 0.2],
            "wscore": 0.91,
            "spread": 0.01,
        },
        "dimension_probability": [
            {"column": "word", "label": "a", "real": 0.75, "synthetic": 0.5},
            {"column": "word", "label": "b", "real": 0.25, "synthetic": 0.26},
        ],
        "dimension_prediction": [
            prediction("word", 0.9, 0.6),
            prediction("amount", 0.5, 0.45, "R²"),
            prediction("noise", 0.01, 0.0, "R²", False),
            prediction("constant", None, None, "R²", False),
        ],
        "pairs": {"columns": ["amount", "word"], "tvd": [[0.1, 0.3], [0.3, 0.2]]},
        "density": {"x": [0, 1, 2], "y": [0, 1], "real": [[0.5, 0.5]], "synthetic": [[0.2, 0.8]]},
        "significant_sets": [
            {"columns": ["amount", "word"], "score": 40.0, "target": True},
            {"columns": ["amount", "word", "other"], "score": 90.0, "target": False},
        ],
        "associations": {
            "columns": ["amount", "word"],
            "real": [[1, 0.5], [0.5, 1]],
            "synthetic": [[1, 0.2], [0.2, 1]],
        },
        "histories": [HISTORIES],
    }


def drawn(figure):
    return say_figure(figure, ENGLISH)


def every_figure(report):
    yield column_figure(report, "amount")
    yield column_figure(report, "word")
    for declared in report_figures():
        yield declared.drawn(report)


def test_plotly_takes_every_figure(report):
    for figure in every_figure(report):
        assert Figure(drawn(figure)).data


def test_every_figure_suits_both_themes(report):
    for figure in every_figure(report):
        layout = drawn(figure)["layout"]
        assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"
        # No text colour of its own, so that the page's applies.
        assert "color" not in layout.get("font", {})
        whole = json.dumps(drawn(figure))
        assert '"color": "#000' not in whole and '"color": "black' not in whole


def test_a_column_tells_tables_apart_by_more_than_colour(report):
    filled, hatched = drawn(column_figure(report, "word"))["data"]
    assert (filled["name"], hatched["name"]) == ("real", "synthetic")
    assert "pattern" not in filled["marker"]
    assert hatched["marker"]["pattern"]["shape"] == "/"
    assert "25.0% of rows" in filled["hovertext"][1]
    bars, outline = drawn(column_figure(report, "amount"))["data"][:2]
    assert (bars["type"], outline["type"]) == ("bar", "scatter")
    assert outline["line"]["shape"] == "hv"


def test_atoms_stand_apart_and_missing_beside_the_bins(report):
    figure = drawn(column_figure(report, "amount"))
    bins, outline, real, synthetic = figure["data"]
    assert bins["y"] == [0.1, 0.2, 0.2]  # the last one missing, on the scale of the bins
    assert bins["x"][:2] == [0, 1] and bins["x"][2] > 2 and outline["y"][-2] == 0.1
    assert figure["layout"]["xaxis"]["ticktext"][-1] == "<br>missing"
    assert "missing" in bins["hovertext"][-1]
    assert (real["x"], synthetic["x"]) == ([0.5], [0.35])  # exactly 0
    assert "exactly 0" in real["hovertext"][0] and real["xaxis"] == "x2"


def test_a_constant_column_and_one_without_values_are_drawn(report):
    constant = HISTOGRAM | {"edges": [3, 3], "real": [0.8], "synthetic": [0.9]}
    report["columns"]["amount"] = constant
    real = drawn(column_figure(report, "amount"))["data"][0]
    assert real["x"] == [0.8, 0.2]
    report["columns"]["amount"] = HISTOGRAM | {
        "edges": [], "real": [], "synthetic": [], "missing_real": 1.0,
    }  # fmt: skip
    assert drawn(column_figure(report, "amount"))["data"][0]["x"] == [1.0]
    assert "Missing in 100.0%" in describe_column(report, "amount")


def test_many_points_use_webgl(report):
    assert {trace["type"] for trace in drawn(pca_figure(report))["data"]} == {"scatter"}
    report["pca"]["real"] = [[0.0, 0.0]] * 1001
    kinds = [trace["type"] for trace in drawn(pca_figure(report))["data"]]
    assert kinds == ["scattergl", "scatter"]


def test_pca_symbols_differ(report):
    real, synthetic = drawn(pca_figure(report))["data"]
    assert real["marker"]["symbol"] != synthetic["marker"]["symbol"]
    assert "19%" not in json.dumps(real) and real["x"] == [0.0, 1.0]


def test_predictions_are_grouped_and_the_unmeasured_left_out(report):
    figure = drawn(prediction_figure(report))
    assert [trace["name"] for trace in figure["data"]] == [
        "equal",
        "lists (F1)",
        "numbers (R²)",
        "not predictable even from real rows",
    ]
    assert sum(len(trace["x"]) for trace in figure["data"][1:]) == 3
    assert {note["text"] for note in figure["layout"]["annotations"]} == {"word", "amount"}


def test_what_is_not_measured_yet_is_no_figure(report):
    empty = report | {
        "pca": None,
        "pairs": None,
        "density": None,
        "significant_sets": [],
        "dimension_probability": [],
        "dimension_prediction": [],
        "histories": [],
    }
    for declared in report_figures():
        if declared.id != "associations":
            assert declared.drawn(empty) is None
    with pytest.raises(KeyError):
        column_figure(report, "no such column")
    with pytest.raises(KeyError):
        describe_column(report, "no such column")


def test_figures_declare_themselves_once(report):
    figures = report_figures()
    assert [figure.id for figure in figures] == [
        "pca", "density", "interactions", "pairs", "associations", "probability", "prediction",
        "transitions", "survival", "timeline",
    ]  # fmt: skip
    assert len({figure.order for figure in figures}) == len(figures)
    for figure in figures:
        assert figure.title[0].isupper() and figure.name[0].islower()
        assert figure.describe(report).endswith(".")


def test_shares_show_how_far_they_may_be_off(report):
    """Inside beside the real shares; outside alone, where real ones may lie."""
    assert "error_y" not in probability_figure(report)["data"][1]
    point = report["dimension_probability"][0]
    figures = [[point["label"], point["synthetic"], 0.04, "share"], ["mean", 3.0, 1.0, "number"]]
    known = report | {"intervals": {"columns": {point["column"]: {"figures": figures}}}}
    inside = probability_figure(known)["data"][1]
    assert inside["error_y"]["array"][0] == 0.04 and inside["x"][0] == point["real"]
    outside = probability_figure(known | {"view": "outside"})
    assert outside["data"][1]["x"] == [point["synthetic"]] == outside["data"][1]["y"]
    assert outside["layout"]["xaxis"]["title"]["text"] == "share of synthetic rows"
    assert "± 4%" in outside["data"][1]["hovertext"][0].replace(".0%", "%")
    assert "at most 4" in describe_probability(known | {"view": "outside"})


def test_what_is_for_inside_only_is_never_drawn_outside(report):
    outside = report | {"view": "outside"}
    drawn_outside = {figure.id for figure in report_figures() if figure.drawn(outside) is not None}
    # without their real side, by `outside_report`; a scan is a release
    histories = {"transitions", "survival", "timeline"}
    assert drawn_outside == {"pca", "associations", "interactions"} | histories


def test_descriptions_name_the_largest_difference(report):
    amount = describe_column(report, "amount")
    assert "exactly 0: 50.0% of real and 35.0% of synthetic" in amount
    assert "Missing in 20.0% of real" in amount
    sentences = {figure.id: figure.describe(report) for figure in report_figures()}
    assert "score is 0.910" in sentences["pca"]
    assert "“a” in word: 75.0% of real and 50.0%" in sentences["probability"]
    assert "word: F1 0.90 and 0.60" in sentences["prediction"]
    assert "is 0.300 for the only pair of columns, amount with word" in sentences["pairs"]
    assert "is 30.0% of rows in one cell" in sentences["density"]
    assert "most is that of amount and word: 0.50" in sentences["associations"]
    assert "a is followed by a in 50.0% of real and 25.0%" in sentences["transitions"]
    assert "in days" in sentences["survival"] and "first 2 synthetic" in sentences["timeline"]


def test_histories_stand_side_by_side(report):
    figures = {one.id: drawn(one.drawn(report)) for one in report_figures()}
    names = [trace["name"] for trace in figures["transitions"]["data"]]
    assert names == ["real", "synthetic", "difference"]
    assert figures["transitions"]["layout"]["xaxis"]["ticktext"][-1] == "end of the history"
    lines = figures["survival"]["data"]
    assert [line["line"]["dash"] for line in lines] == ["solid", "dash"] * 2
    marks = [one for one in figures["timeline"]["data"] if one["mode"] == "markers"]
    assert [(one["name"], one["x"], one["y"]) for one in marks] == [
        ("a", [0.0], [1]), ("b", [4.0, 0.0, 2.5], [1, 2, 2]),
    ]  # fmt: skip


def test_prospects_mark_the_planned_epsilon_alone():
    points = [{"epsilon": e, "attacker": [a] * 3} for e, a in ((0.5, 0.6), (1.0, 0.7), (3.0, 0.9))]
    points[1]["pairs"] = [0.8, 0.7, 0.9]
    drawn = prospects_figure(points, 1.0)
    lines = [trace for trace in drawn["data"] if "marker" in trace]
    assert [line["name"] for line in lines] == [
        "pairs of columns in common",
        "attacker guesses right",
    ]
    assert lines[1]["marker"]["size"] == [0, 12, 0] and drawn["layout"]["shapes"][0]["x0"] == 1.0
    Figure(say_figure(drawn, ENGLISH))


def profile(**changes):
    base = {
        "name": "x", "kind": "integer", "missing": 0.0, "distinct": 3, "edges": None,
        "labels": None, "counts": [], "other": 0,
    }  # fmt: skip
    return base | changes


def test_profile_shares_are_of_all_rows():
    # 60 + 20 present rows and 20 % missing: 100 rows.
    bars = drawn(profile_figure(profile(edges=[0, 5, 10], counts=[60, 20], missing=0.2)))["data"][0]
    assert bars["y"] == pytest.approx([0.6, 0.2, 0.2])
    assert bars["marker"]["pattern"]["shape"] == ["", "", "/"]
    bars = drawn(profile_figure(profile(kind="category", labels=["a"], counts=[60], other=40)))[
        "data"
    ][0]
    assert bars["x"] == pytest.approx([0.6, 0.4])
    assert "other" in bars["hovertext"][1]


def test_profiles_of_surrogates_and_empty_columns():
    bars = drawn(
        profile_figure(
            profile(kind="identifier", labels=["appear once", "appear more often"], counts=[9, 1])
        )
    )["data"][0]
    assert bars["x"] == pytest.approx([0.9, 0.1])
    stored = profile(kind="identifier", labels=["appear once"], counts=[9])
    ticks = say_figure(profile_figure(stored), language("de"))["layout"]["yaxis"]["ticktext"]
    assert ticks == ["kommen einmal vor"]
    bars = drawn(profile_figure(profile(kind="text", missing=1.0)))["data"][0]
    assert bars["x"] == [1.0]


def test_spans_of_dates_and_decimals():
    start = datetime(2020, 1, 31, tzinfo=UTC).timestamp()
    assert spans([start, start + 86400], "datetime") == ["2020-01-31 to 2020-02-01"]
    assert spans([0.125, 2500000.5], "number") == ["0.125 to 2,500,000"]
    assert spans([3, 3], "integer") == ["3"]
    assert spans([], "integer") == []


def test_ticks_stay_few_and_start_at_a_bin_s_first_value():
    ticks = edge_ticks([x - 0.5 for x in range(0, 101, 4)], "integer", most=7)
    assert len(ticks["tickvals"]) <= 7
    assert ticks["ticktext"][0] == "0" and ticks["tickvals"][0] == -0.5
    ends = edge_ticks([x - 0.5 for x in range(11)], "integer")["ticktext"]
    assert ends == ["0", "2", "4", "6", "8", "9"]  # both ends, even steps between


def test_ticks_of_numbers_with_a_step_are_values_that_occur(report):
    stepped = {"edges": [-0.005, 0.995, 1.995], "step": 0.01, "real": [], "synthetic": [0.5, 0.5]}
    report["columns"]["amount"] = HISTOGRAM | stepped | {"kind": "number", "scale": "linear"}
    axis = drawn(column_figure(report, "amount"))["layout"]["xaxis"]
    assert axis["ticktext"][:3] == ["0", "1", "2"]


def test_only_points_off_the_line_are_named():
    trace = {"x": [0.1, 0.5], "y": [0.1, 0.9]}
    (note,) = name_points(trace, ["on", "off"])
    assert note["text"] == "off" and note["xanchor"] == "right"


def test_small_shares_are_not_rounded_away():
    assert share(0.0001) == "< 0.1%"
    assert share(1.0) == "100.0%"


def test_hover_lines_are_short():
    long = {"data": [{"hovertext": ["word " * 60, [f"name<br>{'word ' * 60}"]]}], "layout": {}}
    short, (nested,) = drawn(long)["data"][0]["hovertext"]
    assert all(len(line) <= 60 for line in f"{short}<br>{nested}".split("<br>"))
    assert nested.startswith("name<br>word")
