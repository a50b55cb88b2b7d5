"""Review and Download of finished runs; the ledger."""

from __future__ import annotations

import io
import json
import math
import zipfile
from datetime import UTC, date, datetime
from types import SimpleNamespace

import pandas as pd
import pytest

from core.models.shaped_output import Measured, Shape, ShapeFacts
from core.runs.accounts.account import set_limit, table_account
from core.runs.events import State
from core.runs.execution.launching.launcher import SampleRequest
from core.runs.storage.artefacts import REFITS_WANTED
from core.runs.storage.reviews import notes
from core.services import imports, runs
from core.services.sample_tables import sample_table
from pages.ledger import account_view
from pages.server import guard
from pages.shared import widgets as shared
from tests.pages.screen import buttons, each_tab, finish, in_tab, press, small_report, whole, words

pytestmark = pytest.mark.slow


def drawn(at):
    """The figures of the comparison, without the picture of the stages."""
    return [chart for chart in at.get("plotly_chart") if chart.key != "stages"]


# -- review -------------------------------------------------------------------------------------


def test_a_full_report_is_drawn_and_described(store, start, show):
    run = start()
    finish(store, run, report=small_report(filled=True))
    charts, said, tables = [], "", []
    for at in each_tab(show("review", run=run.id)):
        charts += drawn(at)
        said += words(at)
        trained = "Trained on synthetic"
        tables += [f.value[trained].tolist() for f in at.dataframe if trained in f.value]
    # a column, pairs, plane, probability, prediction, groups, seven of histories, best attack
    assert len(charts) == 14
    assert all(chart.proto.alt for chart in charts)
    assert "Not compared yet" not in said and "Measured on a sample." in said
    assert "do not share" in said and "400 real and 300 synthetic rows" in said
    assert tables == [[0.7]]


def test_figures_are_drawn_when_their_tab_is_open(store, start, show):
    run = start()
    finish(store, run, report=small_report(filled=True))
    at = whole(show("review", run=run.id))
    assert [chart.key for chart in at.get("plotly_chart")] == ["column_c0"]
    at = in_tab(at, "Pairs")
    assert [chart.key for chart in at.get("plotly_chart")] == ["pairs"]


def test_the_review_tells_how_the_table_was_made(store, start, show):
    run = start()
    finish(store, run, report=small_report())
    at = in_tab(show("review", run=run.id), "Findings and scores")
    assert "How this table was made" in [box.label for box in at.expander]
    at.session_state["made"] = True
    assert "stages" in [chart.key for chart in whole(at.run()).get("plotly_chart")]


def test_a_column_without_a_synthetic_score_breaks_nothing(store, start, show):
    """As when the synthetic column has one value only: nothing can be learnt from it."""
    run = start()
    report = small_report(filled=True)
    report["dimension_prediction"] = report["dimension_prediction"][1:]
    finish(store, run, report=report)
    charts, said = 0, ""
    for at in each_tab(show("review", run=run.id)):
        charts, said = charts + len(drawn(at)), said + words(at)
    assert charts == 13 and "nothing to compare" in said


def test_a_partial_report_shows_what_is_there(store, start, show):
    run = start()
    partial = small_report(columns=0, complete=False)
    finish(store, run, report=partial, state=State.RUNNING)
    at = whole(show("review", run=run.id))
    (bar,) = at.get("progress")
    assert "Still comparing" in bar.proto.text and "Not compared yet." in words(at)
    assert not drawn(at)


def test_a_comparison_that_stopped_can_be_finished_for_free(store, start, show):
    run = start()
    finish(store, run, report=small_report(columns=0, complete=False))
    at = whole(show("review", run=run.id))
    assert any("not complete" in warning.value for warning in at.warning)
    press(at, "Finish the comparison")
    assert store.run(run.id).state is State.QUEUED
    runs.cancel(store, run.id)  # the table stays done, whatever becomes of its comparison
    assert store.run(run.id).state is State.DONE


def test_a_reviewer_is_not_offered_to_finish_it(store, start, show, monkeypatch):
    run = start()
    finish(store, run, report=small_report(columns=0, complete=False))
    monkeypatch.setattr(guard, "steward", lambda: False)
    at = whole(show("review", run=run.id))
    assert "Finish the comparison" not in buttons(at)
    assert "A steward can finish the comparison." in words(at)


def test_columns_come_six_at_a_time_the_worst_first(store, start, show):
    run = start()
    finish(store, run, report=small_report(columns=12))
    at = whole(show("review", run=run.id))
    assert len(drawn(at)) == 6
    names = [m.value for m in at.markdown if ":gray[distance" in m.value]
    assert names[0].startswith("**c11**")
    order = next(g for g in at.segmented_control if g.label == "Order")
    at = whole(order.set_value("as in the table").run())
    names = [m.value for m in at.markdown if ":gray[distance" in m.value]
    assert names[0].startswith("**c0**")


def test_review_leads_to_the_download(store, start, show, gone):
    run = start()
    finish(store, run, report=small_report())
    whole(press(show("review", run=run.id), "Download"))
    assert gone == [("download", {"run": run.id})]


# -- download -----------------------------------------------------------------------------------


def test_every_file_of_a_done_run(store, start, show, downloads):
    run = start()
    finish(store, run)
    whole(show("download", run=run.id))
    stem = "clinic-visits-synthetic-epsilon-1"
    assert set(downloads) == {
        f"{stem}.csv", f"{stem}.certificate.json", f"{stem}.dictionary.csv", f"{stem}.model.zip",
        f"{stem}.evidence-outside.zip", f"{stem}.evidence-inside.zip", f"{stem}.csv.synthetic.json",
    }  # fmt: skip
    assert json.loads(downloads[f"{stem}.certificate.json"]()) == {"relation": "zero-out"}
    label = json.loads(downloads[f"{stem}.csv.synthetic.json"]())
    assert label["synthetic"] is True and label["run"] == run.id
    dictionary = pd.read_csv(io.BytesIO(downloads[f"{stem}.dictionary.csv"]()))
    assert dictionary["column"].tolist() == list(run.schema.names)
    with zipfile.ZipFile(io.BytesIO(downloads[f"{stem}.model.zip"]())) as archive:
        assert {name.rsplit(".")[-1] for name in archive.namelist()} == {"json", "safetensors"}


def test_the_bytes_are_the_reviewed_rows_in_the_asked_form(store, start, show, downloads):
    run = start()
    finish(store, run)
    # the button's number is the number of rows that were reviewed
    at = whole(show("download", run=run.id))
    name = "clinic-visits-synthetic-epsilon-1"
    said = "has an apostrophe in front"
    assert b"'=1+1" in downloads[f"{name}.csv"]()
    assert said in downloads[f"{name}.dictionary.csv"]().decode()
    whole(at.checkbox[0].uncheck().run())
    data = downloads[f"{name}.csv"]()
    assert data.startswith(b"visit_id,age,ward\na,30,=1+1\n")
    assert said not in downloads[f"{name}.dictionary.csv"]().decode()
    at = whole(at.radio[0].set_value("xlsx").run())
    book = io.BytesIO(downloads[f"{name}.xlsx"]())
    sheets = pd.read_excel(book, sheet_name=None, engine="calamine")
    assert len(sheets["table"]) == 3 and "=1+1" in sheets["table"]["ward"].tolist()
    at = whole(at.radio[0].set_value("parquet").run())
    assert not at.checkbox
    assert len(pd.read_parquet(io.BytesIO(downloads[f"{name}.parquet"]()))) == 3


def test_a_page_left_open_gives_no_file_that_awaits_review(store, start, show, downloads):
    run = start()
    finish(store, run)
    whole(show("download", run=run.id))
    rows = [name for name in downloads if name.endswith((".csv", "model.zip"))]
    rows = [name for name in rows if "dict" not in name]
    assert len(rows) == 2 and all(downloads[name]() for name in rows)
    notes.set_rule(store, table_id=run.table_id, author="S", rule=notes.Rule(approvals=1))
    for name in [*rows, *(name for name in downloads if "evidence" in name)]:
        with pytest.raises(PermissionError):
            downloads[name]()


def test_names_say_not_private(store, start, show, downloads):
    run = start(math.inf)
    finish(store, run)
    at = whole(show("download", run=run.id))
    assert downloads and all("not-private" in name for name in downloads)
    assert "This table has no differential privacy" in words(at)


def test_rows_of_chosen_values_come_with_what_was_asked(store, start, show, downloads, drawing):
    run = start()
    finish(store, run)
    seen = Measured(text="sex=female", drawn=700, fitting=300, rows=9)
    asked = drawing(
        lambda request: ShapeFacts(
            rows=9, seed=4, shape=request.shape, drawn=700, conditions=(seen,)
        )
    )
    at = show("download", run=run.id)
    at.number_input[0].set_value(9)
    at.multiselect(key=f"where_{run.id}").set_value(["sex", "age", "visit_date"]).run()
    at.multiselect(key=f"where_{run.id}_sex").set_value(["female"])
    at.number_input(key=f"where_{run.id}_age_from").set_value(40.0)
    at.date_input(key=f"where_{run.id}_visit_date_to").set_value(date(2023, 1, 31))
    at.selectbox(key=f"share_{run.id}").set_value("smoker").run()
    at.number_input(key=f"share_{run.id}_smoker_yes").set_value(12.5)
    at.text_input(key=f"seeds_{run.id}").set_value("4, 4")
    at.toggle(key=f"fill_{run.id}").set_value(True)
    at = whole(at.run())
    downloads.clear()
    at = whole(press(at, "Generate 9 rows"))
    where = ("sex=female", "age=40..", "visit_date=..2023-01-31")
    shape = Shape(where=where, share="smoker:yes=12.5%", fill_missing=True)
    request = SampleRequest(rows=9, format="csv", escape_formulas=True, shape=shape)
    assert asked == [(run.id, request, (4,))]
    assert "sex=female: 300 of 700 rows that the model drew (42.86%)" in words(at)
    with zipfile.ZipFile(io.BytesIO(downloads["clinic-visits-synthetic-epsilon-1.zip"]())) as files:
        assert files.read("clinic-visits-synthetic-epsilon-1.csv") == b"age\n1\n"
        assert json.loads(files.read("certificate.json"))["drawn"]["asked"]["where"] == [*where]
        assert b"shares were set: smoker:yes=12.5%" in files.read("dictionary.csv")


def test_seeds_that_are_no_numbers_are_refused(store, start, show):
    run = start()
    finish(store, run)
    at = show("download", run=run.id)
    at = whole(at.text_input(key=f"seeds_{run.id}").set_value("one").run())
    assert "whole numbers" in at.error[0].value and "exactly the rows" in words(at)


def test_files_stay_while_error_bars_are_worked_out(store, start, show, downloads):
    run = start()
    finish(store, run)
    with store.artefacts(run.id).replacing(REFITS_WANTED) as file:
        file.write(b"")
    store.set_state(run.id, State.RUNNING)
    at = whole(show("download"))  # also offered without an address
    assert "clinic-visits-synthetic-epsilon-1.csv" in downloads and not at.warning


def test_an_unfinished_run_offers_no_file(store, start, show, downloads):
    run = start()
    store.set_state(run.id, State.FAILED, error="x")
    at = whole(show("download", run=run.id))
    assert not downloads and buttons(at) == ["Go to Training"]


# -- ledger -------------------------------------------------------------------------------------


def test_releases_and_what_is_left_are_listed(store, table, start, show):
    set_limit(store, table.id, epsilon=3.0)
    run = start()
    store.ledger.debit(table.account_id, run.plan, run.id)
    at = whole(show("ledger"))
    shown = at.dataframe[0].value
    assert shown["Entry"].tolist() == ["account opened", "release"]
    assert shown["ε"].tolist() == ["3", "1"] and shown["Run"].tolist()[1] == shared.run_title(run)
    assert shown["Open"].tolist()[1] == f"training?run={run.id}"
    (bar,) = at.get("progress")
    numbers = {metric.label: metric.value for metric in at.metric}
    used = float(numbers["Limit used"].removesuffix("%"))
    assert 0.0 < used < 100.0 and bar.proto.value == pytest.approx(used, abs=1.0)
    assert shown["Share of the limit"].tolist()[1] == f"{used:.2f}%"
    assert f"{used:.2f}% of the limit of ε 3 is used" in words(at)
    assert numbers["Limit for all releases"] == "ε 3"
    account = table_account(store, table.id)
    left = account.left.epsilon(account.delta)
    assert 1.0 < left < 3.0 and numbers["Left for the next release"] == f"ε {left:.2f}"
    assert not at.get("vega_lite_chart")  # one release is no line over time
    assert "Set this limit" not in buttons(at)
    again = start()
    store.ledger.debit(table.account_id, again.plan, again.id)
    assert len(show("ledger").get("vega_lite_chart")) == 1


def test_a_release_without_privacy_is_warned_of(store, table, start, show):
    run = start(math.inf)
    store.ledger.debit(
        table.account_id, run.plan, run.id, limit=(10.0, 1e-6), allow_non_private=True
    )
    at = whole(show("ledger"))
    assert "Set this limit" not in buttons(at)
    assert at.dataframe[0].value["ε"].tolist() == ["10", "no privacy"]
    assert "had no differential privacy" in words(at) and not at.get("vega_lite_chart")


@pytest.mark.parametrize(
    ("state", "said"), [(State.CANCELLED, "cancelled"), (State.FAILED, "failed")]
)
def test_a_run_that_paid_for_nothing_is_named(store, table, start, show, state, said):
    run = start()
    store.ledger.debit(table.account_id, run.plan, run.id, limit=(10.0, 1e-5))
    again = f"{run.id}.2"  # a second attempt pays under a key of its own
    store.ledger.debit(table.account_id, run.plan, again)
    store.set_state(run.id, state, "It ended.")
    shown = whole(show("ledger")).dataframe[0].value
    assert shown["Run"].tolist() == ["", shared.run_title(run), shared.run_title(run)]
    assert shown["Outcome"].tolist()[1:] == [f"{said}; its ε stays spent"] * 2


def test_a_run_that_was_deleted_is_no_fault(store, table, start, show):
    run = start()
    store.ledger.debit(table.account_id, run.plan, "gone", limit=(10.0, 1e-5))
    shown = whole(show("ledger")).dataframe[0].value
    assert "deleted" in shown["Run"].tolist()[1] and run.title not in shown["Run"].tolist()


def test_the_shares_of_the_limit_add_up(store, table, start, show):
    plan = start().plan
    for key in ("a", "b", "c"):
        store.ledger.debit(table.account_id, plan, key, limit=(10.0, 1e-5))
    account = table_account(store, table.id)
    releases = [e for e in account.entries if e.kind == "release"]
    line = account_view.used_over_time(account.left, releases)
    total = 100.0 * (1.0 - account.left.share)
    each = total / 3
    assert line["used"].tolist() == pytest.approx([0, each, each, 2 * each, 2 * each, total])
    assert line["when"].is_monotonic_increasing
    at = whole(show("ledger"))
    shown = [
        float(share.removesuffix("%"))
        for share in at.dataframe[0].value["Share of the limit"].tolist()
        if share
    ]
    numbers = {metric.label: metric.value for metric in at.metric}
    used = float(numbers["Limit used"].removesuffix("%"))
    assert len(shown) == 3 and used < sum(shown) + 1e-9 < used + 3e-2  # each is rounded up
    assert sum(e.limit for e in releases) + account.left.epsilon(1e-5) > 10.0  # ε does not add up
    assert "shares, which do add up" in words(at)


def test_times_are_the_readers_own(monkeypatch):
    noon = datetime(2026, 7, 1, 12, tzinfo=UTC)
    for zone, said in (
        ("Asia/Tokyo", "01 Jul 2026 21:00"),
        ("Nowhere/Land", "01 Jul 2026 12:00"),
        ("../etc", "01 Jul 2026 12:00"),
        (None, "01 Jul 2026 12:00"),
    ):
        monkeypatch.setattr(shared.st, "context", SimpleNamespace(timezone=zone, locale=None))
        assert shared.clock(noon) == said


def test_limits_of_several_tables_stand_side_by_side(store, table, show):
    other = imports.import_frame(store, sample_table(60), name="other", source="test")
    at = whole(show("ledger"))
    at.number_input(key=f"epsilon_{other.id}").set_value(5.0).run()
    whole(at.button(key=f"limit_{other.id}").click().run())
    assert table_account(store, other.id).limit == 5.0
    assert table_account(store, table.id).limit is None


@pytest.mark.parametrize("agrees", [True, False])
def test_every_page_of_a_run_says_that_accountants_disagree(store, start, show, agrees):
    run = start()
    finish(store, run, report=small_report())
    words_of_it = "Two accountants disagree on ε. Do not rely on it."
    opinion = {"agrees": agrees, "statement": words_of_it if not agrees else "Opacus agrees."}
    path = store.artefacts(run.id).path("certificate.json")
    path.write_text(json.dumps({"relation": "zero-out", "second_opinion": opinion}))
    for page in ("training", "review", "download"):
        at = show(page, run=run.id)
        assert any(words_of_it in one.value for one in at.warning) is not agrees
    assert ("Opacus agrees." in words(at)) is agrees
