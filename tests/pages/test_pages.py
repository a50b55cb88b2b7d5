"""Every page: with nothing, with a table, with runs in every state; never a fault on the screen."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.request import RunRequest
from core.services import planning, runs
from pages.server import uploads
from pages.shared import widgets as shared
from tests.pages.screen import (
    button,
    buttons,
    finish,
    forget_statement,
    in_tab,
    press,
    small_report,
    whole,
    words,
)
from tests.requests_for import request_for

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("tables", "plan", "training", "review", "download", "ledger")


@pytest.mark.parametrize(
    ("page", "way"),
    [
        ("tables", "Try the sample table"),
        ("plan", "Add a table"),
        ("training", "Plan a run"),
        ("review", "Go to Training"),
        ("download", "Go to Training"),
        ("ledger", "Add a table"),
    ],
)
def test_an_empty_workspace_says_what_to_do_next(show, page, way):
    at = whole(show(page))
    assert not at.error
    assert way in buttons(at)


def test_the_app_opens_on_tables(store):
    at = whole(AppTest.from_file(str(ROOT / "pages/server/front.py"), default_timeout=120).run())
    assert [title.value for title in at.title] == ["Tables"]


def test_one_click_brings_the_sample_table_in(store, show):
    at = whole(press(show("tables"), "Try the sample table"))
    assert not at.error
    (record,) = store.tables()
    assert record.n == 5000 and record.schema.target == "readmitted"
    assert at.query_params["table"] == record.id
    assert at.title[0].value == record.name


def test_a_broken_upload_is_one_plain_error(store, show):
    at = show("tables")
    whole(at.file_uploader[0].set_value(("bad.csv", b"a,b\n1,2\n3,4,5\n", "text/csv")).run())
    assert len(at.error) == 1 and "Line 3" in at.error[0].value
    assert not store.tables()
    assert "Try the sample table" in buttons(at)
    at = whole(at.run())  # it waits, and is read again only on request
    assert not at.error and "Line 3" in press(at, "Try bad.csv again").error[0].value


def test_after_a_refused_file_the_next_one_is_heard(store, show):
    at = show("tables")
    for content, word in ((b"", "empty"), (b"a,b\n1,2\n3,4,5\n", "Line 3"), (b"a\n", "no rows")):
        (uploader,) = at.file_uploader
        whole(uploader.set_value(("bad.csv", content, "text/csv")).run())
        assert len(at.error) == 1 and word in at.error[0].value
    whole(at.file_uploader[0].set_value(("t.csv", b"a,b\n1,2\n3,4\n", "text/csv")).run())
    (record,) = store.tables()
    assert not at.error and at.query_params["table"] == record.id


def test_planning_needs_the_declaration(store, table, show, gone):
    forget_statement(store, table)
    at = show("tables", table=table.id)
    assert button(at, "Plan a synthetic table").disabled
    at.checkbox[0].check().run()
    press(at, "Plan a synthetic table")
    assert store.attested(table.id)


def test_an_address_does_not_lead_past_the_declaration(store, table, show):
    forget_statement(store, table)
    for at in (show("plan", table=table.id), show("plan")):
        assert "confirm on the Tables page" in at.info[0].value
        assert buttons(at) == ["Go to the table"] and not at.metric
    plan = planning.make_plan(table.schema, table.n, RunRequest(model="pearl", epsilon=1.0))
    with pytest.raises(RunStoreError, match="Nobody has confirmed"):
        runs.start(store, shared.launcher(), table.id, plan, request_for(plan))


def test_a_declaration_holds_for_one_schema(store, table):
    assert store.attested(table.id)
    other = table.schema["age"].model_copy(update={"low": -5.0})
    store.save_schema(table.id, table.schema.replace(other))
    assert not store.attested(table.id)
    store.save_schema(table.id, table.schema)
    assert store.attested(table.id)


def test_the_target_can_be_changed(store, table, show):
    at = show("tables", table=table.id)
    at.selectbox[0].select_index(0).run()  # none
    assert not at.exception
    assert store.table(table.id).schema.target is None


def test_a_deleted_table_in_the_address_is_explained(table, store, show):
    store.delete_table(table.id)
    at = whole(show("tables", table=table.id))
    assert "outdated" in at.warning[0].value


def test_the_plan_is_shown_before_anything_is_spent(store, table, show):
    at = whole(show("plan", table=table.id))
    assert not at.error
    assert {m.label: m.value for m in at.metric}["ε"] == "1"
    assert "Nothing has been spent or released about these people yet." in words(at)
    assert "Train: spends ε = 1 of this table's budget" in buttons(at)
    at.select_slider[0].set_value(0.5).run()
    assert {m.label: m.value for m in at.metric}["ε"] == "0.5"
    assert not store.runs()  # looking at plans starts nothing


def test_no_privacy_needs_the_typed_words(table, show):
    at = show("plan", table=table.id)
    whole(at.toggle[0].set_value(True).run())
    label = "Train without differential privacy"
    assert button(at, label).disabled
    at.text_input(key=f"confirm_not_private_{table.id}").set_value("not private").run()
    assert not button(at, label).disabled


def test_an_undeclared_column_is_a_plain_error_with_a_way_back(store, table, show):
    age = table.schema["age"].model_copy(update={"low": None})
    store.save_schema(table.id, table.schema.replace(age))
    store.attest(table.id)
    at = whole(show("plan", table=table.id))
    assert "age" in at.error[0].value
    assert "Back to the table" in buttons(at)


@pytest.mark.parametrize(
    ("state", "said", "offered"),
    [
        (State.QUEUED, "in the queue", "Cancel …"),
        (State.PAUSED, "saved", "Resume"),
        (State.FAILED, "kept", "Give up …"),
        (State.LOST, "saved is kept", "Give up …"),
        (State.CANCELLED, "ancelled", None),
    ],
)
def test_training_explains_every_ending(store, start, show, state, said, offered):
    run = start()
    if state is not State.QUEUED:
        assert store.set_state(run.id, state, "What happened.")
    at = whole(show("training", run=run.id))
    assert said in words(at)
    if offered is not None:
        assert offered in buttons(at)


def test_review_waits_for_its_report(store, start, show):
    run = start()
    finish(store, run, state=State.RUNNING)
    at = whole(show("review", run=run.id))
    assert "comparison is running" in words(at)


def test_review_labels_every_score(store, start, show):
    run = start()
    finish(store, run, report=small_report())
    at = in_tab(show("review", run=run.id), "Findings and scores")
    assert not at.error
    table = at.dataframe[0].value.set_index("Score")
    assert np.isnan(table["Value"]["Absent"])
    measured = table.loc["Single columns: distance"]
    assert (measured["Value"], measured["Real data"]) == (0.03, 0.01)
    assert measured["Better"] == "lower is closer" and measured["Range"] == "0 to 1"


def test_review_of_an_unfinished_run_points_to_training(start, show):
    at = whole(show("review", run=start().id))
    assert "Go to Training" in buttons(at)


def test_download_offers_the_reviewed_rows(store, start, show):
    run = start()
    finish(store, run, report=small_report())
    at = whole(show("download", run=run.id))
    assert not at.error
    assert "exactly the rows that were reviewed" in words(at)


def test_download_says_when_nothing_is_private(store, start, show):
    run = start(math.inf)
    finish(store, run, report=small_report())
    at = whole(show("download", run=run.id))
    assert "no differential privacy" in at.error[0].value
    assert any("not-private" in b.label for b in at.get("download_button"))


def test_download_of_an_unfinished_run_is_blocked_with_a_reason(start, show):
    at = whole(show("download", run=start().id))
    assert "no synthetic table" in at.info[0].value


def test_ledger_sets_a_limit_and_checks_the_chain(store, table, show):
    at = whole(show("ledger"))
    at = whole(press(at, "Set this limit"))
    assert not at.error
    at = press(at, "Verify the ledger")
    assert "intact" in at.success[0].value


def test_pages_import_nothing_heavy_and_run_nothing():
    code = (
        "import sys\n"
        + "".join(f"import pages.{name}.page\n" for name in PAGES)
        + "print([m for m in ('torch', 'sklearn', 'opacus', 'ot') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_uploaded_bytes_are_freed(show, monkeypatch):
    """Against the real upload manager of a session that holds a file."""
    seen = []
    real = uploads.free_uploads

    def watched() -> None:
        context = uploads.get_script_run_ctx()
        before = uploads.upload_key()
        real()
        manager = context.uploaded_file_mgr
        seen.append((manager.file_storage.get(context.session_id), before, uploads.upload_key()))

    monkeypatch.setattr(uploads, "free_uploads", watched)
    at = show("tables")
    whole(at.file_uploader[0].set_value(("t.csv", b"a,b\n1,2\n3,4\n", "text/csv")).run())
    ((left, before, after),) = seen
    assert not left  # nothing of the session is in the server's memory
    assert before != after  # and the uploader shows empty
