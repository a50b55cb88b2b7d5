"""A workspace that an older version kept: see tests/fixtures/README.md.

`expected.json` in it is what that version itself said.
"""

import json
import tarfile
import time
from pathlib import Path

import pytest

from core.models.registry import load_fitted, synthesizer
from core.privacy.ledger.ledger import Ledger
from core.quality.report.types import Report
from core.runs.accounts.account import table_account
from core.runs.execution.local_launcher import LocalLauncher
from core.runs.storage import notes
from core.runs.storage.events import State
from core.runs.storage.inside_views import recorded_views
from core.services import export, planning, reviews, runs
from tests.runs.workers import releases, work

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "old_workspace.tar.gz"
DONE = ("scores", "scores again", "tagged", "not private", "p3gm", "ppem", "dp_auto_gan")
PATIENCE = 120.0  # seconds


@pytest.fixture
def home(tmp_path):
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "home", filter="data")
    return tmp_path / "home"


@pytest.fixture
def expected(home):
    return json.loads((home / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture
def store(home):
    with runs.open_store(home) as opened:
        yield opened


def as_json(value):
    return None if value is None else json.loads(value.model_dump_json())


def test_tables_are_read_as_they_were(store, expected):
    tables = {table.id: table for table in store.tables()}
    assert tables.keys() == expected["tables"].keys()
    for table_id, old in expected["tables"].items():
        table = tables[table_id]
        assert (table.name, table.n, list(table.columns)) == (old["name"], old["n"], old["columns"])
        assert table.people == old["people"] and as_json(table.schema) == old["schema"]
        frame = store.load_frame(table_id)
        assert len(frame) == old["rows"] and list(frame.columns) == old["columns"]
        assert store.attested(table_id)
        entries = table_account(store, table_id).entries
        assert [entry.hash for entry in entries] == old["account"]


def test_runs_and_their_plans_are_read_as_they_were(store, expected):
    by_name = {run.name: run for run in store.runs()}
    assert by_name.keys() == expected["runs"].keys() == {*DONE, "paused", "lost"}
    for name, old in expected["runs"].items():
        run = by_name[name]
        assert (run.id, run.table_id, run.model) == (old["id"], old["table"], old["model"])
        assert (run.state.value, run.message) == (old["state"], old["message"])
        assert (run.debit, run.debit_key) == (old["debit"], old["debit_key"])
        assert run.resumable is old["resumable"]
        assert as_json(run.guarantee) == old["guarantee"]
        assert len(list(store.journal.events(run.id))) == old["events"]
        plan, asked = run.plan, old["plan"]
        assert (plan.model, plan.n) == (asked["model"], asked["n"])
        assert plan.settings == asked["settings"]
        assert plan.budget.epsilon == float(asked["budget"]["epsilon"])
        assert plan.budget.delta == asked["budget"]["delta"]
        assert [as_json(phase) for phase in plan.phases] == asked["phases"]
        assert as_json(plan.guarantee) == asked["guarantee"]
        assert as_json(plan.protection) == asked["protection"]
        attempts = asked["budget"]["attempts"]
        counts = [phase["count"] * attempts for phase in asked["phases"]]
        assert [phase.count for phase in plan.charged] == counts
        assert plan.digest == old["digest"]


def test_the_ledger_holds_and_says_what_was_paid(store, expected):
    ledger = Ledger(store.engine)
    assert ledger.verify()
    entries = ledger.entries()
    assert len(entries) == len(expected["ledger"])
    for entry, old in zip(entries, expected["ledger"], strict=True):
        assert {name: getattr(entry, name) for name in old} == old
    debits = {entry.run: entry for entry in entries if entry.kind == "release"}
    for run in store.runs():
        debit = debits.pop(run.debit_key)
        assert (debit.id, debit.plan, debit.people) == (run.debit, run.plan.digest, run.people)
    assert not debits


@pytest.mark.parametrize("name", DONE)
def test_reports_are_whole(store, expected, name):
    old = expected["runs"][name]
    inside, outside = (reviews.report(store, old["id"], view) for view in ("inside", "outside"))
    assert sorted(inside) == old["inside"]
    report = Report.model_validate(inside)
    assert report.complete and report.view == "inside" and report.rows_synthetic == 40
    assert bool(report.protection) is (expected["runs"][name]["plan"]["protection"] is not None)
    assert (outside is not None) is old["outside"] is (name != "not private")
    if outside is not None:
        assert Report.model_validate(outside).view == "outside"


def test_what_people_said_is_there(store, expected):
    first = expected["runs"]["scores"]
    said = notes.comments(store, first["id"])
    assert [[c.about, c.author, c.text, c.settled_by] for c in said] == expected["comments"]
    assert [c.author for c in notes.comments(store, first["id"], "outside")] == ["Bo"]
    given = notes.review_verdicts(store, first["id"])
    assert [[v.author, v.decision.value, v.text] for v in given] == expected["verdicts"]
    assert notes.rule(store, first["table"]).approvals == 2
    assert not notes.missing(store, table_id=first["table"], run_id=first["id"])
    for table_id, old in expected["picked"].items():
        assert list(notes.picked(store, table_id)) == old
    chosen = notes.picked_by_scores(store, first["table"])
    assert chosen is not None and chosen[1].runs == expected["by_scores"]
    seen = recorded_views(store, store.table(first["table"]).people)
    assert sorted([view.run_id, view.author] for view in seen) == expected["looks"]


@pytest.mark.parametrize("name", DONE)
def test_downloads_are_there(store, expected, name):
    old = expected["runs"][name]
    run = store.run(old["id"])
    paper = reviews.privacy_certificate(store, run.id)
    assert paper == old["certificate"] and paper["plan_digest"] == run.plan.digest
    assert json.loads(export.certificate_text(paper)) == paper
    assert export.reviewed_file(store, run, format="csv").read_text().count("\n") == 41
    assert tuple(export.domain_dictionary(run.schema.domain())["column"]) == run.schema.names
    if name in ("tagged", "ppem"):
        with pytest.raises(ValueError, match="it stays here"):
            export.model_zip(store, run)
    else:
        assert export.model_zip(store, run)


@pytest.mark.parametrize("name", DONE)
def test_saved_models_make_more_rows(store, expected, name):
    run = store.run(expected["runs"][name]["id"])
    more = load_fitted(run.model, store.artefacts(run.id).path("model")).sample(7, seed=1)
    assert len(more) == 7 and tuple(more.columns) == run.schema.names
    assert set(more["smoker"].dropna()) <= {"yes", "no"}


def test_a_paused_run_goes_on_to_its_end_and_pays_nothing_more(store, expected):
    old = expected["runs"]["paused"]
    before = releases(store, store.table(old["table"]))
    runs.resume(store, LocalLauncher(store), old["id"])
    end = time.monotonic() + PATIENCE
    while store.run(old["id"]).state.live and time.monotonic() < end:
        time.sleep(0.1)
    run = store.run(old["id"])
    log = store.artefacts(run.id).path("worker.log").read_text()
    assert (run.state, run.message) == (State.DONE, "Done."), log
    steps = [
        e.data
        for e in store.journal.events(run.id, kind="progress")
        if e.data["phase"] == "training"
    ]
    assert min(s["step"] for s in steps[1:]) > old["progress"]["step"], "from the checkpoint on"
    assert run.debit == old["debit"] and releases(store, store.table(old["table"])) == before
    assert run.guarantee is not None
    assert run.guarantee.epsilon == old["plan"]["guarantee"]["epsilon"]
    assert Report.model_validate(reviews.report(store, run.id)).complete
    assert Ledger(store.engine).verify()


def test_a_killed_run_goes_on_to_its_end_and_pays_nothing_more(store, expected):
    old = expected["runs"]["lost"]
    before = releases(store, store.table(old["table"]))
    assert store.set_state(old["id"], State.QUEUED, "Waiting.", expect=(State.LOST,))
    run = work(store, old["id"], find=synthesizer)
    assert (run.state, run.message) == (State.DONE, "Done."), run.error
    assert run.debit == old["debit"] and releases(store, store.table(old["table"])) == before
    assert run.guarantee is not None
    assert run.guarantee.epsilon == old["plan"]["guarantee"]["epsilon"]


def test_a_new_run_starts_on_an_old_table(store, expected):
    table = store.table(expected["runs"]["paused"]["table"])
    settings = {"steps": 10, "frequencies": 100, "batch": 64, "hidden": 8, "latent": 4}
    request = planning.PlanRequest(model="pearl", epsilon=0.5, settings=settings)
    plan = planning.make_plan(table.schema, table.training_n, request)
    before = releases(store, table)
    run = store.create_run(
        table.id, plan, schema=table.schema, rows=20, seed=1, device="cpu", name="new"
    )
    run = work(store, run.id, find=synthesizer)
    assert (run.state, run.message) == (State.DONE, "Done."), run.error
    assert releases(store, table) == before + 1 and Ledger(store.engine).verify()
    assert reviews.privacy_certificate(store, run.id)["plan_digest"] == plan.digest
