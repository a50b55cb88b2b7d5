"""The whole report: stages, edge tables, ranking of good and bad tables."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from core.quality.metrics import family as registry
from core.quality.metrics.family import Measured, Metric, families, family
from core.quality.report.build_report import READING_COST, build_report
from core.quality.report.types import Report
from core.schema.column import Column, DomainSource, Kind
from core.schema.schema import Schema
from tests.quality.conftest import score_of

pytestmark = pytest.mark.slow

KEYS = {
    "tvd_1way",
    "tvd_2way",
    "tvd_3way",
    "k_marginal",
    "real_subsample",
    "inconsistent_rows",
    "range_error",
    "association_gap",
    "pca_3way",
    "sliced",
    "mmd",
    "wscore_pca",
    "wscore_whole",
    "prediction_gap",
    "tstr_auroc",
    "tstr_auprc",
    "tstr_ten",
    "pmse",
    "pmse_ratio",
    "tree_auroc",
}


METRICS = [metric for one in families() for metric in one.metrics]


@pytest.fixture(scope="module")
def small(schema, tables):
    """A report of few rows without a holdout, what was saved on the way and what was said."""
    saved, heard = [], []
    report = build_report(
        tables["real"].head(200),
        tables["fresh"].head(200),
        schema,
        on_progress=lambda text, part: heard.append((text, part)),
        save=saved.append,
        seed=4,
    )
    return report, saved, heard


def value(report, key):
    return score_of(report, key).value


def test_it_survives_json(reports):
    stored = reports["fresh"].model_dump_json()
    assert Report.model_validate_json(stored) == reports["fresh"]


def test_every_score_declares_itself(reports):
    report = reports["fresh"]
    assert {score.key for score in report.scores} == KEYS
    for score in report.scores:
        assert score.low <= score.value <= score.high
        assert score.goal in ("higher", "lower")
        assert score.meaning.endswith(".") and score.title and score.source
    assert len({metric.key for metric in METRICS}) == len(METRICS)


def test_a_new_metric_is_one_function(schema, tables, monkeypatch):
    monkeypatch.setattr(registry, "_registry", {})
    beauty = Metric(key="beauty", title="Beauty", goal="higher", meaning="Rows.", source="a test")

    @family(beauty, text="Looking at {target}", order=1, cost=3.0)
    def rows(tables, step):
        step("Half of it", 0.5)
        return Measured([beauty.score(0.25)])

    heard = []
    arguments = tables["real"].head(9), tables["fresh"].head(9), schema
    report = build_report(*arguments, on_progress=lambda *one: heard.append(one))
    assert [(score.key, score.value) for score in report.scores] == [("beauty", 0.25)]
    start, text = READING_COST / (READING_COST + 3.0), "Looking at rich"
    assert heard[1:3] == [(text, start), ("Half of it", pytest.approx((1 + start) / 2))]
    for taken in ({"order": 1}, {"order": 2}):  # the order is taken, or else the key
        with pytest.raises(ValueError, match="taken already"):
            family(beauty, text="Again", cost=1.0, **taken)(rows)
    with pytest.raises(ValueError, match="taken already: order 1"):
        family(text="Again", order=1, cost=1.0)(rows)


def test_the_same_table_scores_perfect(reports):
    same = reports["real"]
    assert value(same, "tvd_1way") == value(same, "tvd_2way") == 0
    assert value(same, "wscore_pca") == pytest.approx(1)
    assert value(same, "wscore_whole") == pytest.approx(1)
    assert value(same, "prediction_gap") == 0
    assert value(same, "tstr_auroc") == score_of(same, "tstr_auroc").ceiling
    assert value(same, "pmse") == pytest.approx(0, abs=1e-9)


def test_a_collapsed_table_scores_badly_everywhere(reports):
    good, bad = reports["fresh"], reports["collapsed"]
    for metric in METRICS:
        if metric.key in KEYS - {"inconsistent_rows"}:  # one row often contradicts nothing
            a, b = value(good, metric.key), value(bad, metric.key)
            assert b < a - 0.05 if metric.goal == "higher" else b > a + 0.05, metric.key


def test_a_shuffle_hides_from_margins_only(reports):
    report = reports["shuffled"]
    assert value(report, "tvd_1way") == pytest.approx(0)
    assert value(report, "tvd_2way") > 2 * score_of(report, "tvd_2way").ceiling
    assert value(report, "tstr_auroc") < 0.65 < 0.9 < score_of(report, "tstr_auroc").ceiling
    assert value(report, "prediction_gap") > 0.3


def test_families_are_saved_early_and_progress_rises(small):
    final, saved, heard = small
    first = saved[0]
    assert first.columns and first.dimension_probability and not first.complete
    assert first.pairs is None and first.utility is None
    parts = [len(report.scores) for report in saved]
    assert parts == sorted(parts)
    assert saved[-1] == final and final.complete
    fractions = [part for _, part in heard]
    assert fractions == sorted(fractions) and fractions[0] == 0 and fractions[-1] == 1
    assert all(text and text[0].isupper() for text, _ in heard)


def test_long_tables_get_a_first_look_at_a_few_rows(schema, tables, monkeypatch):
    monkeypatch.setattr("core.quality.report.build_report.FIRST_LOOK_ROWS", 150)
    saved, bare = [], schema.model_copy(update={"target": None})
    build_report(tables["real"].head(400), tables["fresh"].head(300), bare, save=saved.append)
    first = saved[0]
    assert first.columns and not first.complete and not first.scores
    assert "A first look at 150 rows" in first.notes[0]
    assert (first.rows_real, first.rows_synthetic) == (400, 300)
    assert all("first look" not in note for report in saved[1:] for note in report.notes)


def test_the_same_seed_gives_the_same_report(schema, tables, small):
    again = build_report(tables["real"].head(200), tables["fresh"].head(200), schema, seed=4)
    assert again == small[0]


def test_without_a_test_table_every_fourth_row_is_kept_and_said(small):
    report = small[0]
    assert any("every fourth real row" in note for note in report.notes)
    assert report.utility


@pytest.mark.parametrize("rows", [1, 3, 8, 20])
def test_tiny_tables(schema, tables, rows):
    report = build_report(tables["real"].head(rows), tables["fresh"].head(rows), schema)
    assert report.complete and report.rows_real == rows
    for score in report.scores:
        assert score.value is not None or score.note


def test_gaps_on_either_side(schema, tables):
    real = tables["real"].head(120)
    hollow = real.assign(job=None, pay=np.nan, since=pd.NaT)
    bare = schema.model_copy(update={"target": None})
    for a, b, read_by in ((real, hollow, schema), (hollow, real, bare), (hollow, hollow, bare)):
        report = build_report(a, b, read_by)
        assert report.complete
        assert report.columns["pay"].missing_synthetic == pytest.approx(b["pay"].isna().mean())
    assert report.columns["pay"].tvd == 0
    narrow = build_report(real, real.drop(columns=["pay"]), bare)
    assert narrow.columns["pay"].missing_synthetic == 1


def test_tagged_columns_that_the_synthetic_table_lacks(schema, tables):
    real, bare = tables["real"].head(120), schema.model_copy(update={"target": None})
    tagged = bare.model_copy(update={"sensitive": {"a": ("age",), "b": ("pay", "job")}})
    made = tables["fresh"].head(120).drop(columns=["age", "pay"])
    (check,) = build_report(real, made, tagged).protection
    assert check.group == "b" and check.columns == ("job",)


def test_a_category_the_synthetic_table_lacks(schema, tables):
    real = tables["real"].head(300)
    synthetic = real.assign(job=real["job"].where(real["job"] != "c", "a"))
    bare = schema.model_copy(update={"target": None})
    picture = build_report(real, synthetic, bare).columns["job"]
    lost = (real["job"] == "c").mean()
    assert picture.synthetic[picture.labels.index("c")] == 0
    assert picture.tvd == pytest.approx(lost)  # exactly that share moved to another label


def test_no_target_no_utility(schema, tables):
    bare = schema.model_copy(update={"target": None})
    report = build_report(tables["real"].head(60), tables["fresh"].head(60), bare)
    assert report.utility is None and report.target is None
    assert {score.key for score in report.scores} == KEYS - {
        "tstr_auroc",
        "tstr_auprc",
        "tstr_ten",
    }


def test_a_numeric_target(schema, tables):
    numeric = schema.model_copy(update={"target": "age"})
    report = build_report(tables["real"].head(400), tables["fresh"].head(400), numeric)
    assert score_of(report, "tstr_r2").value > 0.5
    assert {row.metric for row in report.utility} == {"R²"}


def test_dates_as_text(schema):
    column = Column(name="d", kind=Kind.DATETIME, dtype="str", date_format="%d.%m.%Y", step=86400)
    real = pd.DataFrame({"d": ["01.02.2020", "03.02.2020", "31.12.2020"] * 5})
    picture = build_report(real, real, Schema(columns=(column,))).columns["d"]
    seconds = pd.Timestamp("2020-02-01").timestamp()
    assert picture.edges[0] == seconds
    assert picture.tvd == 0


def test_large_tables_are_sampled_and_it_is_said(schema, tables, monkeypatch):
    monkeypatch.setattr("core.quality.comparison.TABLE_ROWS", 100)
    bare = schema.model_copy(update={"target": None})
    report = build_report(tables["real"], tables["fresh"], bare)
    assert report.rows_real == 1200
    assert any("at most 100 rows" in note for note in report.notes)


def test_nothing_to_compare_is_said_plainly(schema, tables):
    with pytest.raises(ValueError, match="at least one real and one synthetic row"):
        build_report(tables["real"].head(0), tables["fresh"], schema)
    dropped = Schema(
        columns=(Column(name="age", kind=Kind.INTEGER, source=DomainSource.DROP),),
    )
    with pytest.raises(ValueError, match="No column can be compared"):
        build_report(tables["real"], tables["fresh"], dropped)


def test_reading_a_report_imports_nothing_heavy():
    code = (
        "import sys, core.quality.report.types, core.figures;"
        "heavy = {'sklearn', 'ot', 'torch', 'scipy', 'plotly'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_empty_report_is_a_report():
    report = Report(rows_real=1, rows_synthetic=1)
    assert score_of(report, "tvd_1way") is None and report.view == "inside"


def test_what_stood_before_boosting_stands_beside(reports):
    report = reports["fresh"]
    for key in ("tvd_1way", "tvd_2way"):
        score = score_of(report, key)
        assert score.before > score.value  # it was worse
    assert score_of(report, "wscore_whole").before < score_of(report, "wscore_whole").value
    assert score_of(report, "pmse").before is None
    assert score_of(report, "tstr_auroc").before < score_of(report, "tstr_auroc").value
    assert len(report.pca.before) == min(1500, report.rows_real)


def test_tagged_columns_are_checked_from_inside(reports):
    same, other = reports["fresh"], reports["collapsed"]
    assert [check.columns for check in same.protection] == [("age",)]
    assert not same.protection[0].differs
    assert other.protection[0].differs


def test_attacks_need_a_holdout_and_find_a_copy(reports, small):
    exposed = [attack.key for attack in reports["real"].attacks if attack.exposed]
    alike = ["copies", "closest", "ratio", "membership", "attribute"]
    assert exposed == [*alike, "counts", "values"]
    without = small[0]
    assert without.attacks == [] and any("exposed" in note for note in without.notes)


def test_associations_stand_side_by_side(reports):
    table = reports["fresh"].associations
    assert table is not None and len(table.real) == len(table.columns)
    bad, good = (
        score_of(reports[name], "association_gap").value for name in ("collapsed", "fresh")
    )
    assert good < bad
