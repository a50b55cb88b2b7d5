"""Words on pictures in another language: all of ours, none of people's."""

import json
import math
import re

import pytest

from core.figures.budget import budget_figure
from core.figures.column import column_figure
from core.figures.column_profile import profile_figure
from core.figures.marginal_shift import shift_figure
from core.figures.report_figure import report_figures
from core.figures.rows_per_person import row_limit_figure
from core.figures.stages import stages_figure
from core.figures.tradeoff import tradeoff_figure
from core.language.catalogue import ENGLISH, Language
from core.language.figure_texts import CONTEXT, FIGURE_TEXTS, say_figure
from core.language.templates import Templates
from core.models.planning import plan_fit
from core.models.registry import cards, synthesizer
from core.privacy.plan import Budget
from tests.figures.test_figures import BARS, HISTOGRAM, prediction
from tests.models.tables import domain

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
}  # fmt: skip
PROFILE = {"kind": "integer", "edges": None, "labels": None, "counts": [5.0, 3.0], "other": 0,
           "missing": 0.2}  # fmt: skip


@pytest.fixture
def german():
    """Every word of ours as «word»."""
    language = Language("de")
    words = {f"{CONTEXT}\x04{text}": f"«{text}»" for text in FIGURE_TEXTS}
    language._messages, language._templates = words, Templates(())  # not the catalogue of the day
    return language


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
    names = {*NAMES, "missing", "other", "noise", "QR", "real × Q. missing × score"}
    names |= {"real: missing"}
    for figure in figures():
        said = say_figure(json.loads(figure.to_json()), german)
        assert said["layout"]["separators"] == ",."
        for text in texts(said):
            assert unsaid(text) <= names, text


def test_names_that_are_also_words_of_ours_stay(german):
    said = say_figure(json.loads(column_figure(REPORT, "QB").to_json()), german)
    assert said["layout"]["yaxis"]["ticktext"] == ["missing", "Q", "«missing»"]
    assert [text.split("<br>")[0] for text in said["data"][0]["hovertext"]] == [
        "<b>missing</b>", "<b>Q</b>", "<b>«missing»</b>",
    ]  # fmt: skip
    labels = profile_figure(PROFILE | {"labels": ["other", "Q"], "other": 2.0})
    said = say_figure(json.loads(labels.to_json()), german)
    assert said["layout"]["yaxis"]["ticktext"] == ["other", "Q", "«other»", "«missing»"]
    (pairs,) = (one for one in report_figures() if one.id == "pairs")
    said = say_figure(json.loads(pairs.drawn(REPORT).to_json()), german)
    assert said["layout"]["xaxis"]["ticktext"] == ["QA with QB", "real"]
    assert said["data"][0]["hovertext"][0][1] == "<b>QA with QB</b> «with» <b>real</b>"


def test_numbers_are_written_the_languages_way(german):
    german._messages |= {f"{CONTEXT}\x04{{first:s}} to {{last:s}}": "{first} bis {last}"}
    said = say_figure(json.loads(column_figure(REPORT, "QA").to_json()), german)
    assert said["layout"]["xaxis"]["ticktext"] == ["0", "2.000", "9.000"]
    assert said["data"][0]["hovertext"][1].startswith("<b>2.000 bis 9.000</b><br>")
    assert "20,0 %" in said["data"][0]["hovertext"][1]


def test_phases_and_stages_are_said_as_texts_of_core(german):
    made = synthesizer("pearl")
    plan = plan_fit(made, domain(), 5000, Budget(epsilon=1.0, delta=1e-6), {}).model_dump(
        mode="json"
    )
    phase = plan["phases"][0]
    german._messages |= {phase["title"]: "Titel", phase["what"]: "Was " * 40}
    said = say_figure(json.loads(budget_figure(plan).to_json()), german)
    first = said["data"][0]
    assert first["name"] == "Titel"
    lines = first["hovertext"][0].split("<br>")
    assert "<b>Titel</b>" in lines[0] and max(map(len, lines[1:])) <= 60
    assert "influence, once.»" in first["hovertext"][0]
    for card in cards():
        stages = [stage.model_dump() for stage in card.stages]
        plan = plan_fit(synthesizer(card.id), domain(), 5000, Budget(epsilon=1.0, delta=1e-6), {})
        drawn = stages_figure(stages, plan.model_dump(mode="json")).to_json()
        notes = [
            one["text"] for one in say_figure(json.loads(drawn), german)["layout"]["annotations"]
        ]
        assert all("«" in text for text in notes if text and not text.startswith("<b>"))
        assert "«touches no<br>real rows»" in notes or all(stage["private"] for stage in stages)


def test_english_stays_as_it_is():
    for figure in figures():
        drawn = json.loads(figure.to_json())
        assert say_figure(json.loads(figure.to_json()), ENGLISH) == drawn


def test_pages_show_pictures_in_the_language(german, monkeypatch):
    from pages.shared import language
    from pages.shared import widgets as shared

    monkeypatch.setattr(language, "code", lambda: "de")
    monkeypatch.setattr(language, "spoken", lambda: german)
    shown = shared.inert(column_figure(REPORT, "QB"))
    assert shown.data[0].name == "«real»" and shown.layout.separators == ",."
