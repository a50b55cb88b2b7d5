"""The report as one file, in the language of whoever exports it."""

import base64
import gzip
import json
import re

import pandas as pd
import pytest

from core.export.findings import findings
from core.export.page_html import STAMPS, page
from core.language.catalogue import ENGLISH, Language
from core.proposing.propose import infer_schema
from core.quality.report.outside import outside_report
from docs.make_catalogue import texts_of_calls, texts_of_declarations
from tests.pages.screen import small_report

SOURCES = ("core/export/findings.py", "core/export/page_html.py")


def german(**more):
    """A language that says «text» for each text of the page; numbers as in German."""
    language, texts = Language("de"), []
    for path in SOURCES:
        with open(path, encoding="utf-8") as file:
            source = file.read()
        texts += [*texts_of_calls(source), *texts_of_declarations(source)]
    language._messages = {text: f"«{text}»" for text in texts} | more
    return language


def body(text):
    return text.split("<main>")[1].split("</main>")[0]


def test_the_page_is_said_in_the_language():
    report = small_report(2, filled=True) | {"notes": ["Measured on a sample."]}
    remark = {"author": "Scores", "time": "now", "about": "pca", "text": "What it is"}
    language = german(**{
        "Left out: {names}.": "Weggelassen: {names}.",
        "Measured on a sample.": "An einer Stichprobe gemessen.",
        "Pairs of columns": "Spaltenpaare",
        "distance": "Abstand",
    })  # fmt: skip
    text = page(report, "In short", remarks=[remark], hidden=["c1"], language=language)
    assert "<html lang='de'>" in text and "<title>In short</title>" in text
    head, _, rest = STAMPS["inside"].partition(". ")
    assert f"<b>«{head}.</b> {rest}»" in text
    shown = body(text)
    assert "An einer Stichprobe gemessen." in shown and "Spaltenpaare" in shown
    assert "0,03" in shown and "<td>0,800</td>" in shown and "0.800" not in shown
    assert "<td>Scores</td>" in shown and "<td>What it is</td>" in shown  # what people wrote
    for heading in re.findall(
        r"<h2 id='(?:findings|scores|columns|utility|remarks)'>(.*?)</h2>", shown
    ):
        assert heading.startswith("«"), heading
    assert "<h3>c1 <small>«(hidden on purpose: not the real shares)»</small></h3>" in shown


@pytest.mark.parametrize("label", [
    "<a href='http://e.io'>x", "</a><A HREF=javascript:alert(1)>", "<img src=http://e.io>",
    "<span style='display:none'>", "<script>alert(1)</script>", "<!-- x", "<b onclick=x>",
    "[x](http://e.io) http://e.io", "<a\nhref='http://e.io'>x",
])  # fmt: skip
def test_labels_in_figures_are_text(label):
    frame = pd.DataFrame({label: [label, "plain"] * 40, "n": range(80)})
    report = outside_report(frame, infer_schema(frame)).model_dump(mode="json")
    text = page(report, "t")
    packed = re.search(r"id='figures'>([^<]*)<", text)[1]
    figures = gzip.decompress(base64.b64decode(packed)).decode()
    found = set(re.findall(r"<[^\s\d][^>]{0,20}>?", json.dumps(list(json.loads(figures).values()))))
    assert found <= {"<b>", "</b>", "<br>", "<extra>", "</extra>"}
    assert "&lt;" in figures or "<" not in label
    assert "<a" not in body(text).lower() and "<img" not in body(text)


def test_findings_name_people_s_columns_as_they_are():
    table = {
        "columns": ["missing", "with"],
        "real": [[1, 0.5], [0.5, 1]],
        "synthetic": [[1, 0.2], [0.2, 1]],
        "luck": [[0, 0], [0, 0]],
    }
    report = small_report() | {"associations": table}
    weaker = "The only strong relationship between columns is weaker: {pairs}."
    pair = "{first} with {second} ({real:.2f} → {synthetic:.2f})"
    language = german(**{
        weaker: "Schwächer: {pairs}.", pair: pair.replace("with", "mit"),
    })  # fmt: skip
    assert "Schwächer: missing mit with (0,50 → 0,20)." in [
        language.render(one.text) for one in findings(report)
    ]
    english = [one.text for one in findings(report)]
    assert weaker.format(pairs="missing with with (0.50 → 0.20)") in english


def test_english_is_what_nobody_asked_for():
    report = small_report(filled=True)
    text = page(report, "t")
    assert text == page(report, "t", language=ENGLISH)
    assert "<html lang='en'>" in text and "lower is closer · real data 0.01" in body(text)
    assert json.dumps(report) == json.dumps(small_report(filled=True))
