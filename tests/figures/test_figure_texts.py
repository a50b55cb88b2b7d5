"""Words on pictures in another language: all of ours, none of people's."""

import math
import re

import pytest

from core.figures.column import column_figure
from core.figures.column_profile import profile_figure
from core.figures.marginal_shift import shift_figure
from core.figures.report_figure import report_figures
from core.figures.rows_per_person import row_limit_figure
from core.figures.stages import stages_figure
from core.figures.tradeoff import tradeoff_figure
from core.language.catalogue import Language, say_figure
from core.message import Message, from_json
from core.models.planning import plan_fit
from core.models.registry import cards, synthesizer
from core.privacy.plan import Budget
from tests.figures.test_figures import BARS, HISTOGRAM, HISTORIES, STATE, prediction
from tests.models.tables import domain

pytestmark = pytest.mark.slow

# as people may call columns and labels; some are also words of ours
NAMES = ["QA with QB", "real", "Q. missing", "score"]
HELD = {"real": [[1, 0.5], [0.5, 1]], "synthetic": [[1, 0.2], [0.2, 1]]}
REPORT = {
    "view": "inside",
    "columns": {
        "QA": HISTOGRAM | {"edges": [0, 0, 2000, 9000], "noise": 0.01},
        "QB": BARS | {"labels": ["missing", "Q"], "missing_real": 0.1, "missing_synthetic": 0.1},
    },
    "pca": {
        "real": [[0, 1.5]], "before": [[0, 1]], "synthetic": [[0.5, 0.5]], "explained": [0.4, 0.2],
        "wscore": 0.9,
    },
    "dimension_probability": [
        {"column": "real", "label": "missing", "real": 0.75, "synthetic": 0.5}
    ],
    "dimension_prediction": [
        prediction("noise", 0.9, 0.6), prediction("QR", 0.5, 0.4, "R²", False)
    ],
    "pairs": {"columns": NAMES[:2], "tvd": [[0.1, 0.3], [0.3, 0.2]]},
    "density": {"x": [0, 1, 2], "y": [0, 1], "real": [[0.5, 0.5]], "synthetic": [[0.2, 0.8]]},
    "significant_sets": [
        {"columns": NAMES[:2], "score": 4000.0, "target": True},
        {"columns": NAMES[1:], "score": 90.0, "target": False},
    ],
    "associations": {"columns": NAMES[1:3]} | HELD,
    "histories": [
        HISTORIES
        | {
            "states": [STATE | {"labels": ["real", "Q"]}],
            "people": [[[0.0, "real"], [2.5, "Q"]]],
        }
    ],
}  # fmt: skip
PROFILE = {"kind": "integer", "edges": None, "labels": None, "counts": [5.0, 3.0], "other": 0,
           "missing": 0.2}  # fmt: skip


class Marked(Language):
    """Says every word of ours as «word»."""

    def render(self, text):
        return f"«{text}»" if isinstance(text, Message) else text


@pytest.fixture
def german():
    return Marked("de")


def figures():
    for name in REPORT["columns"]:
        yield column_figure(REPORT, name)
    for declared in report_figures():
        yield declared.drawn(REPORT)
    yield profile_figure(PROFILE | {"edges": [0, 1500, 3000]})
    yield profile_figure(PROFILE | {"labels": ["other", "Q"], "other": 2.0})
    yield shift_figure(PROFILE | {"edges": [0, 1500, 3000]})
    yield row_limit_figure(3.0, 5, grouped=False)
    yield tradeoff_figure(
        [{"title": "missing", "model": "Q", "epsilon": e, "value": 0.5} for e in (1.5, math.inf)],
        "Q",
    )


def texts(node, inside=""):
    """Every text that a figure shows."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from texts(value, key if key not in ("text",) else inside)
    elif isinstance(node, list):
        for value in node:
            yield from texts(value, inside)
    elif isinstance(node, str) and inside in (
        "name", "hovertext", "hovertemplate", "title", "ticktext", "annotations"
    ):  # fmt: skip
        yield node


def unsaid(text):
    """What stands outside of words of ours, line by line."""
    text = re.sub(r"<(br|/?b|/?extra)>|%\{[^{}]*\}", "\n", text)
    while "«" in text:
        text = re.sub("«[^«»]*»", "\n", text)
    return {line.strip(" :") for line in text.split("\n") if re.search("[A-Za-z]{2}", line)}


def test_all_words_of_ours_are_said(german):
    names = {*NAMES, "missing", "other", "noise", "QR", "real: missing"}
    names |= {f"{a} × {b}" for a in NAMES for b in NAMES} | {" × ".join(NAMES[1:])}
    for figure in figures():
        said = say_figure(figure, german)
        assert said["layout"]["separators"] == ",."
        for text in texts(said):
            assert unsaid(text) <= names, text


def test_names_that_are_also_words_of_ours_stay(german):
    said = say_figure(column_figure(REPORT, "QB"), german)
    assert said["layout"]["yaxis"]["ticktext"] == ["missing", "Q", "«missing»"]
    labels = profile_figure(PROFILE | {"labels": ["other", "Q"], "other": 2.0})
    said = say_figure(labels, german)
    assert said["layout"]["yaxis"]["ticktext"] == ["other", "Q", "«other»", "«missing»"]
    (pairs,) = (one for one in report_figures() if one.id == "pairs")
    said = say_figure(pairs.drawn(REPORT), german)
    assert said["layout"]["xaxis"]["ticktext"] == ["QA with QB", "real"]
    assert said["data"][0]["hovertext"][0][1] == "<b>QA with QB</b> × <b>real</b>"


def test_numbers_are_written_the_languages_way():
    german = Language("de")
    german._messages["{first} to {last}"] = "{first} bis {last}"
    said = say_figure(column_figure(REPORT, "QA"), german)
    assert said["layout"]["xaxis"]["ticktext"][:-1] == ["0", "2.000", "9.000"]
    assert said["data"][0]["hovertext"][1].startswith("<b>2.000 bis 9.000</b><br>")
    assert "20,0\u00a0%" in said["data"][0]["hovertext"][1]


def test_stages_of_every_model_are_messages(german):
    for card in cards():
        figure = stages_figure([stage.model_dump() for stage in card.stages], dumped(card.id))
        notes = [note["text"] for note in say_figure(figure, german)["layout"]["annotations"]]
        assert all(text.startswith("«") for text in notes if text)
        free = "«uses no real rows»"
        assert free in notes or all(stage.private for stage in card.stages)


def dumped(model):
    plan = plan_fit(synthesizer(model), domain(), 5000, Budget(epsilon=1.0, delta=1e-6), {})
    return from_json(plan.model_dump(mode="json"))


def test_pages_show_pictures_in_the_language(german, monkeypatch):
    from pages.shared import language
    from pages.shared import widgets as shared

    monkeypatch.setattr(language, "spoken", lambda: german)
    shown = shared.drawn(column_figure(REPORT, "QB"))
    assert shown["data"][0]["name"] == "«real»" and shown["layout"]["separators"] == ",."
