"""Sentences, the one-file report and the pictures of several runs."""

import html
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from plotly.graph_objects import Figure

from core.export.findings import findings
from core.export.page_html import page
from core.figures.associations import association_figure
from core.figures.tradeoff import tradeoff_figure, tradeoff_words
from core.message import to_json
from core.quality.aligned_tables import Features
from core.quality.metrics.association import associations, independence_threshold
from core.quality.report import types
from core.schema.column import Column, Kind
from core.schema.coverage import ColumnCoverage, Coverage
from core.schema.schema import Schema
from tests.pages.screen import small_report
from tests.quality.conftest import shared_reports

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    shared = shared_reports(tmp_path_factory)
    named = {name: report.model_dump() for name, report in shared.items()}
    return named | {"copied": named["real"]}


MANY = {"rows_real": 50_000, "rows_synthetic": 50_000}


def pictured(shares, *, tvd, noise=None, synthetic=None):
    """A column's picture with as much as findings read."""
    other = shares if synthetic is None else synthetic
    bars = {
        "real": list(shares),
        "synthetic": list(other),
        "tvd": tvd,
        "noise": noise,
        "shifted": False,
    }
    return bars | {"missing_real": 0.0, "missing_synthetic": 0.0}


def said(report, kind):
    return " ".join(one.text for one in findings(report) if one.kind == kind)


def test_a_good_table_kept_everything_and_exposes_nobody(reports):
    assert said(reports["fresh"], "lost") == ""
    assert "strong relationships between columns were kept" in said(reports["fresh"], "kept")
    assert "None of 7 attacks" in said(reports["fresh"], "safe")


def test_columns_that_are_there_are_never_called_lost(reports):
    merged = ColumnCoverage(name="code", merged=True, outside=0.2, error=0.01)
    found = Coverage(kept=3, made_up=(), dropped=(), columns=(merged,))
    part = {"coverage": [to_json(one) for one in found.sentences], "covered": found.complete}
    report = reports["fresh"] | part
    assert "All 3 columns are in the synthetic table." in said(report, "kept")
    assert said(report, "lost") == merged.words  # once, not for all lists too


def test_a_shuffle_keeps_shares_and_loses_relationships(reports):
    assert "columns have nearly the true shares" in said(reports["shuffled"], "kept")
    lost = said(reports["shuffled"], "lost")
    assert "are weaker" in lost and "as good as" in lost and "job" in lost


def test_a_collapsed_table_loses_its_shares(reports):
    assert "Shares differ clearly" in said(reports["collapsed"], "lost")


def test_a_copied_table_exposes_people(reports):
    assert "Exact copies of real rows" in said(reports["copied"], "exposed")


def test_what_was_hidden_on_purpose_is_not_lost(reports):
    check = {"differs": True, "columns": ["age", "job"]}
    far = reports["collapsed"]
    report = far | {"protection": [check]}
    assert "The shares of age, job are not the real ones, on purpose." in said(report, "hidden")
    assert "age" not in said(report, "kept") and "job" not in said(report, "kept")
    shares = [f.text for f in findings(report) if f.text.startswith("Shares differ")]
    assert "age (" not in shares[0] and "job (" not in shares[0]
    failed = far | {"protection": [check | {"differs": False}]}
    assert said(failed, "hidden") == ""


def test_noise_alone_is_not_called_a_loss():
    noise, bins = 0.02, 30
    alone = 0.5 * bins * noise / 1.96 * math.sqrt(2 / math.pi)  # 0.12: above the limit by itself
    picture = pictured([1 / bins] * bins, tvd=alone + 0.01, noise=noise)
    report = types.Report(view="outside", **MANY).model_dump(mode="json")
    assert said(report | {"columns": {"a": picture}}, "lost") == ""
    far = picture | {"tvd": alone + 0.2}
    assert "a (in 20% of rows)" in said(report | {"columns": {"a": far}}, "lost")
    assert "a (" in said(report | {"columns": {"a": picture | {"noise": None}}}, "lost")


@pytest.mark.parametrize("rows", [60, 800])
def test_what_two_draws_from_the_same_column_show_is_no_loss(rows):
    rng, differs = np.random.default_rng(0), 0
    report = types.Report(rows_real=rows, rows_synthetic=rows).model_dump(mode="json")
    for _ in range(50):
        real, other = rng.multinomial(rows, [1 / 30] * 30, size=2) / rows
        tvd = 0.5 * float(np.abs(real - other).sum())
        picture = pictured(real, synthetic=other, tvd=tvd)
        differs += "differ clearly" in said(report | {"columns": {"a": picture}}, "lost")
    assert differs <= 2 and (rows > 60 or tvd > 0.2)  # few rows differ much
    collapsed = pictured([1 / 30] * 30, synthetic=[1.0] + [0.0] * 29, tvd=29 / 30)
    assert "a (in 97% of rows" in said(report | {"columns": {"a": collapsed}}, "lost")


def test_chance_between_independent_columns_is_no_relationship():
    """Of each pair few rows have both values, so that strengths are far from zero."""
    rng = np.random.default_rng(0)
    columns = [Column(name=f"c{i}", kind=Kind.NUMBER, low=0.0, high=9.0, missing=True)
               for i in range(12)]  # fmt: skip
    schema = Schema(columns=tuple(columns))
    tables = [
        pd.DataFrame(
            {one.name: pd.Series(rng.random(400)).mask(rng.random(400) < 0.8) for one in columns}
        )
        for _ in range(2)
    ]
    features, cells = Features.fit(schema, *tables)
    real, synthetic = (associations(one) for one in cells)
    assert (np.abs(real[np.triu_indices(12, 1)]) > 0.2).any()
    told = {"columns": list(features.names), "real": real, "synthetic": synthetic, "luck": []}
    empty = types.Report(rows_real=400, rows_synthetic=400).model_dump(mode="json")

    def sentences(**changes):
        table = {name: np.array(values).tolist() for name, values in (told | changes).items()}
        return findings(empty | {"associations": table})

    assert not sentences(luck=np.maximum(*(independence_threshold(one) for one in cells)))
    assert sentences(luck=np.zeros_like(real))


def test_worse_prediction_is_reported_only_beyond_its_interval():
    empty = types.Report(**MANY).model_dump(mode="json")
    point = {"column": "a", "real": 0.5, "synthetic": 0.35, "predictable": True}
    others = [point | {"column": f"b{i}", "synthetic": 0.5, "half_width": 0.1} for i in range(100)]

    def weak(half_width, beside=()):
        points = [point | {"half_width": half_width}, *beside]
        return "than in the real table: a" in said(empty | {"dimension_prediction": points}, "lost")

    assert weak(None) and weak(0.1) and not weak(0.2)
    assert not weak(0.1, others)  # of a hundred intervals, a few hold less than they say


def test_what_noise_hides_is_not_called_kept():
    picture = pictured([0.1] * 10, tvd=0.6, noise=0.3)  # alone: 0.61
    report = types.Report(view="outside", **MANY).model_dump(mode="json")
    report |= {"columns": {"a": picture}}
    assert said(report, "kept") == ""
    assert said(report, "unseen").endswith("whether the shares of a are close to the real ones.")
    clear = picture | {"tvd": 0.02, "noise": 0.005}
    assert "The only column has nearly" in said(report | {"columns": {"a": clear}}, "kept")


def test_what_was_not_tried_is_said(reports):
    report = reports["fresh"] | {"attacks": []}
    assert "No attacks were tried" in said(report, "unknown")
    assert findings(report | {"complete": False, "columns": {}, "associations": None}) != []
    bare = types.Report(rows_real=1, rows_synthetic=1).model_dump(mode="json")
    assert findings(bare) == []


def test_what_chance_may_explain_reads_as_borderline(reports):
    grades = {"safe", "edge", "works", "exposed"}
    clear = reports["fresh"]["attacks"][1] | {"value": 0.5, "baseline": 0.5, "p": 0.7}
    clear |= {"exposed": False, "lead_needed": 0.1, "records": 4000, "strangers": 500}

    def told(p, lead, **more):
        attack = clear | {"key": "closest", "value": 0.5 + lead, "p": p, "exposed": p <= 0.01}
        report = reports["fresh"] | {"attacks": [clear, attack | more]}
        (kind, text), *others = (
            (one.kind, one.text) for one in findings(report) if one.kind in grades
        )
        assert not others
        return kind, text

    for p in (0.02, 0.04):
        kind, text = told(p, 0.08)
        assert kind == "edge" and f"{p:.1%} of releases without a leak show as much" in text
    unseen = "4,000 rows of the table and 500 rows of strangers. A difference below 10.0% may go"
    assert unseen in text and told(0.3, 0.08)[0] == "safe" and unseen in told(0.3, 0.0)[1]
    kind, text = told(0.002, 0.03)  # sure, and small
    assert kind == "works" and "(53.0%; 50.0% is expected without a leak)" in text
    assert told(0.002, 0.2)[0] == told(0.002, 0.03, key="copies")[0] == "exposed"


def test_exposure_is_reported_only_where_significant_and_large(reports):
    def file(value, p):
        attack = reports["copied"]["attacks"][1] | {"value": value, "p": p, "exposed": p <= 0.01}
        return page(reports["copied"] | {"attacks": [attack]}, "run")

    words = "People are exposed"
    assert words in page(reports["copied"], "run") and words in file(0.9, 0.001)
    assert not any(words in file(value, p) for value, p in ((0.55, 0.001), (0.9, 0.03), (0.5, 0.5)))


# -- one file -----------------------------------------------------------------------------------


def test_the_page_is_stamped_and_needs_nothing_from_outside(reports):
    text = page(reports["fresh"], "A & B")
    assert "INSIDE ONLY" in text and "A &amp; B" in text
    assert not re.search(r"(src|href)=['\"]https?:", text) and "default-src 'none'" in text
    assert len(text) < 5_000_000
    assert 'data-figure="pca"' in text or "data-figure='pca'" in text


def test_what_people_wrote_cannot_break_out(reports):
    bad = "</script><script>alert(1)</script>"
    remark = {"author": bad, "time": "now", "about": "pca", "text": bad}
    report = json.loads(json.dumps(reports["fresh"]).replace("job", "j</script><b>"))
    text = page(report, bad, remarks=[remark])
    assert bad not in text and html.escape(bad) in text
    assert "j</script>" not in text


def test_the_outside_page_says_so_and_shows_no_real_row():
    from core.quality.report.outside import NOT_SHOWN, outside_report
    from tests.models.tables import rows, schema

    report = outside_report(rows(200, 1), schema()).model_dump(mode="json")
    text = page(report, "t")
    assert "MAY BE SHOWN OUTSIDE" in text and "INSIDE" not in text
    body = text.split("<main>")[1].split("</main>")[0]
    assert "200 synthetic records" in body and "real rows" not in body.replace(NOT_SHOWN, "")


# -- several runs -------------------------------------------------------------------------------


def test_the_curve_has_a_line_a_model_and_a_place_for_no_privacy():
    runs = [
        {"title": "a", "model": "pearl", "epsilon": 1.0, "value": 0.8, "ceiling": 0.9},
        {"title": "b", "model": "pearl", "epsilon": 0.1, "value": 0.6, "ceiling": 0.9},
        {"title": "c", "model": "p3gm", "epsilon": math.inf, "value": 0.85, "ceiling": None},
    ]
    drawn = Figure(tradeoff_figure(runs, "AUROC"))
    assert [trace.name for trace in drawn.data] == ["pearl", "p3gm"]
    assert list(drawn.data[0].x) == [0.1, 1.0] and drawn.data[1].x[0] > 1
    assert drawn.layout.xaxis.ticktext[-1] == "no privacy"
    assert drawn.layout.shapes[0].y0 == pytest.approx(0.9)
    assert "The best is c at no privacy" in tradeoff_words(runs, "AUROC", "higher")
    assert "The best is b at ε 0.1" in tradeoff_words(runs, "Gap", "lower")
    assert tradeoff_words([], "Gap", "lower") == "No run has this score yet."


def test_associations_are_drawn_with_their_difference():
    table = {"columns": ["a", "b"], "real": [[1, 0.5], [0.5, 1]], "synthetic": [[1, 0.2], [0.2, 1]]}
    drawn = Figure(association_figure({"associations": table}))
    assert [trace.name for trace in drawn.data] == ["real", "synthetic", "difference"]
    assert drawn.data[2].z[0][1] == pytest.approx(-0.3)
    assert [trace.showscale for trace in drawn.data] == [False, False, True]
    outside = Figure(association_figure({"associations": table | {"real": []}}))
    assert [trace.name for trace in outside.data] == ["synthetic"]
    assert association_figure({"associations": None}) is None


def test_small_reports_can_be_written_too():
    assert "Single columns: distance" in page(small_report(filled=True), "t")
