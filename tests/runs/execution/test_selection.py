"""What certificates say of the choice among runs: always the truth of that moment."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path

import pytest

from core.message import from_json
from core.models.planning import plan_fit
from core.privacy.plan import Budget
from core.quality.metrics.noisy import NoisyCells
from core.reading.raw_cells import raw_frame
from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.execution import worker
from core.runs.execution.noisy_scores import (
    SYNTHETIC_CELLS,
    ScoreCounts,
    released_cells,
)
from core.runs.storage.reviews import notes
from core.runs.storage.reviews.inside_views import (
    SOMEBODY,
    record_view,
    recorded_views,
    viewed_runs,
)
from core.runs.storage.reviews.notes import Decision
from core.services import reviews
from tests.requests_for import request_for
from tests.runs import toy

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]


def queued(store, table, schema, *, epsilon=1.0, score=None):
    budget = Budget(epsilon=epsilon, delta=1e-6)
    plan = plan_fit(toy.Toy(), schema.domain(), table.n, budget)
    if score is not None:
        bought = ScoreCounts(budget, score).phases(schema.domain(), 1, 1.0)[0]
        plan = plan.model_copy(update={"phases": (*plan.phases, bought)})
    if not budget.private:
        endless = {"epsilon": math.inf, "epsilon_replace": math.inf}
        claim = plan.guarantee.model_copy(update=endless)
        plan = plan.model_copy(update={"guarantee": claim})
    words = "" if budget.private else "not private"
    return store.create_run(
        table.id,
        plan,
        request_for(plan, rows=25, seed=1, device="cpu", without_privacy=words),
        schema=schema,
    )


@pytest.fixture
def done(store, table, schema):
    """Make runs that are done, as a worker leaves them."""

    def make(**more):
        run = queued(store, table, schema, **more)
        assert store.claim(run.id, slots=1) and store.adopt(run.id, os.getpid())
        command = [run.id, "--home", str(store.workspace.home)]
        worker.main(command, find=toy.find, compare=toy.compare, command=toy.COMMAND)
        run = store.run(run.id)
        assert run.state is State.DONE
        return run

    return make


def see(store, run, author="Ada"):
    record_view(store, table_id=run.table_id, run_id=run.id, author=author)


def said(store, run):
    """The last condition of the certificate, where one on the choice was added."""
    shown = reviews.privacy_certificate(store, run.id)
    assert shown is not None
    words = shown.get("selection", "")
    if words:
        assert shown["conditions"][-1] == words
    return words


UNPAID = "Chosen among {} runs after looking at real data; the choice is not covered by ε."


# -- looks --------------------------------------------------------------------------------------


def test_a_look_is_kept_once_a_person_with_its_first_time(store, done):
    run = done()
    see(store, run, " Ada  L ")
    see(store, run, "Ada L")
    see(store, run, "")
    first, second = recorded_views(store, run.account_id)
    assert (first.run_id, first.author, second.author) == (run.id, "Ada L", SOMEBODY)
    assert first.time <= second.time
    assert viewed_runs(store, run.account_id) == {run.id}
    assert viewed_runs(store, "others") == frozenset()


def test_what_the_product_computes_by_itself_is_no_look(store, done):
    run = done()
    assert store.artefacts(run.id).exists("report.json")
    reviews.report(store, run.id)  # reading is not showing; pages show through one function
    assert recorded_views(store, run.account_id) == ()


def test_words_written_inside_count_as_looks(store, done):
    first, second, third = done(), done(), done()

    def where(run):
        return {"table_id": run.table_id, "run_id": run.id, "author": "Ada"}

    notes.comment(store, **where(first), about="pca", text="x")
    notes.decide(store, **where(second), decision=Decision.APPROVE)
    notes.comment(store, **where(third), about="pca", text="x", view="outside")
    notes.decide(store, **where(third), decision=Decision.APPROVE, view="outside")
    assert viewed_runs(store, first.account_id) == {first.id, second.id}


# -- the condition ------------------------------------------------------------------------------


def test_the_condition_comes_with_the_second_run_that_was_seen(store, done):
    one, other = done(), done()
    stored = json.loads(
        store.artefacts(one.id).path("certificate.json").read_text(), object_hook=from_json
    )
    assert reviews.privacy_certificate(store, one.id) == stored
    see(store, one)
    assert (
        reviews.privacy_certificate(store, one.id) == stored
    )  # one run, seen: nothing to choose from
    see(store, other)
    assert said(store, one) == said(store, other) == UNPAID.format(2)
    assert (
        json.loads(
            store.artefacts(one.id).path("certificate.json").read_text(), object_hook=from_json
        )
        == stored
    )
    see(store, other, "Bob")  # another person, the same run
    see(store, done())
    assert said(store, one) == UNPAID.format(3)  # a later download says the later truth


def test_an_unseen_run_after_a_seen_one_counts_as_chosen(store, done):
    one, other = done(), done()
    see(store, one)
    assert said(store, one) == ""
    assert said(store, other) == UNPAID.format(2)


@pytest.mark.parametrize("ending", [State.FAILED, State.CANCELLED, State.LOST])
def test_runs_that_were_given_up_or_deleted_still_count(store, done, ending):
    one, bad = done(), done()
    see(store, one)
    see(store, bad)
    store.set_state(bad.id, ending)
    assert said(store, one) == UNPAID.format(2)
    store.delete_run(bad.id)
    assert said(store, one) == UNPAID.format(2)


def test_only_tables_of_the_same_people_count(store, table, schema, frame, done):
    one = done()
    see(store, one)
    for account_id, expected in (("others", ""), ("p1", UNPAID.format(2))):
        copy = store.add_table(
            raw_frame(frame),
            name="x",
            schema=schema,
            profile={},
            source="test",
            account_id=account_id,
        )
        run = queued(store, copy, schema)
        record_view(store, table_id=copy.id, run_id=run.id, author="Ada")
        assert said(store, one) == expected
        store.delete_table(copy.id)
        assert said(store, one) == expected  # deleting the table undoes no look


def test_a_look_at_a_run_without_privacy_counts(store, done):
    one, open_run = done(), done(epsilon=math.inf)
    see(store, one)
    see(store, open_run)
    assert said(store, open_run) == ""
    assert said(store, one) == UNPAID.format(2)


def test_without_a_certificate_there_is_none(store, table, schema):
    run = queued(store, table, schema)
    assert reviews.privacy_certificate(store, run.id) is None


def test_the_stored_certificate_is_read_in_one_place():
    """No path shows the one that was true when the run ended."""
    named = {
        path.relative_to(ROOT).as_posix()
        for path in (*ROOT.glob("core/**/*.py"), *ROOT.glob("pages/**/*.py"))
        if re.search(r'"certificate\.json"|\bPRIVACY_CERTIFICATE\b', path.read_text("utf-8"))
    }
    names_it, writes, asks, *name_a_file = (
        "core/runs/storage/artefacts.py",
        "core/runs/execution/pipeline.py",
        "core/runs/storage/store.py",
        "pages/download/page.py",
        # in a ZIP, of a certificate that it is given
        "core/services/export.py",
        "core/services/evidence/documents.py",
        "core/services/inference/take_along.py",
        "core/export/evidence_pack.py",
        # in a folder of its own, as it is true when that is written
        "core/services/synthesis/saved_runs.py",
    )
    label = "core/runs/execution/synthetic_label.py"  # what no choice among runs changes
    named -= {names_it, writes, asks, label, *name_a_file}
    assert named == {"core/services/reviews.py"}
    for name in name_a_file[1:]:
        assert "PRIVACY_CERTIFICATE" not in (ROOT / name).read_text("utf-8")
    claims = {
        path.parent.name: path.read_text()
        for path in ROOT.glob("pages/**/*.py")
        if ".conditions" in path.read_text()
    }
    assert set(claims) == {"download", "plan"}
    assert 'certificate.get("conditions", claim.conditions)' in claims["download"]
    assert "claim = spending.promised_claim(" in claims["plan"]  # before there is a certificate


def test_pages_show_inside_reports_only_when_recorded():
    calls = {
        f"{path.parent.name}/{path.name}": path.read_text("utf-8").count("reviews.report(")
        for path in ROOT.glob("pages/**/*.py")
    }
    # Review's own is the progress bar of a page whose inside view is open already
    found = {name: n for name, n in calls.items() if n}
    assert found == {"review/report_view.py": 1, "review/page.py": 1}


def test_a_pick_by_eye_is_no_pick_by_scores(store, done):
    run = done()
    notes.pick(store, table_id=run.table_id, run_id=run.id, author="Ada")
    assert notes.picked(store, run.table_id) == (run.id, "Ada")
    assert notes.picked_by_scores(store, run.table_id) is None


# -- noisy scores -------------------------------------------------------------------------------


def test_counts_bought_once_score_every_run_of_the_table(store, table, schema, done):
    earlier, buyer, later = done(), done(score=0.5), done()
    released = store.artefacts(buyer.id).path(ScoreCounts.artefact)
    cells = NoisyCells.model_validate_json(released.read_text())
    assert cells.noise_std == pytest.approx(
        buyer.plan.phase(ScoreCounts.name).noise_multiplier * math.sqrt(3)
    )
    assert sum(cells.counts[: cells.sizes[0]]) != table.n
    assert abs(sum(cells.counts[: cells.sizes[0]]) - table.n) < 8 * cells.noise_std * 4
    executed = json.loads(
        store.artefacts(buyer.id).path("certificate.json").read_text(), object_hook=from_json
    )["phases"]
    assert {p["name"]: p["count"] for p in executed} == {"sum": 1, ScoreCounts.name: 1}
    assert released_cells(store, table.id, cells.key) == cells
    ranked = reviews.ranking(store, [earlier, buyer, later])
    assert ranked is not None and set(ranked.scores) == {earlier.id, buyer.id, later.id}
    kept = store.artefacts(later.id)
    assert not kept.exists(ScoreCounts.artefact) and kept.exists(SYNTHETIC_CELLS)
    values = [score.value for score in ranked.scores.values()]
    assert values == sorted(values) and ranked.lead.value == pytest.approx(values[1] - values[0])


def test_runs_that_cannot_be_compared_are_refused(store, done):
    one, other = done(), done()
    assert reviews.ranking(store, [one, other]) is None  # nobody bought counts
    with pytest.raises(RunStoreError, match="Nothing was picked"):
        reviews.pick_by_scores(store, [one, other], author="Ada")
    assert notes.picked(store, one.table_id) is None
    buyer, not_private = done(score=0.5), done(epsilon=math.inf)
    assert reviews.ranking(store, [buyer]) is None
    assert reviews.ranking(store, [buyer, not_private]) is None
    assert not store.artefacts(not_private.id).exists(SYNTHETIC_CELLS)


def test_a_pick_by_scores_is_covered_by_the_total_cost(store, done):
    runs = [done(score=0.5), done(), done(epsilon=2.0)]
    aside = done()  # not compared, but which were compared may depend on it
    best, ranked = reviews.pick_by_scores(store, runs, author="Ada")
    assert best == ranked.best and notes.picked(store, aside.table_id) == (best, "Ada")
    releases = [e for e in store.ledger.entries(aside.account_id) if e.kind == "release"]
    assert len(releases) == 4
    total, delta = sum(e.limit for e in releases), sum(e.delta for e in releases)
    words = said(store, store.run(best))
    assert words.startswith("Chosen among 3 runs by noisy scores that ε covers")
    assert f"ε = {total:.4g}, δ = {delta:.3g} together" in words
    assert "ε of this run alone does not count the other runs" in words
    assert all(said(store, run) == "" for run in runs if run.id != best)


def test_a_look_at_another_run_removes_the_cover(store, done):
    runs = [done(score=0.5), done()]
    best, _ = reviews.pick_by_scores(store, runs, author="Ada")
    (other,) = (run for run in runs if run.id != best)
    see(store, store.run(best))  # a look at the picked run alone chose nothing
    assert "that ε covers" in said(store, store.run(best))
    see(store, other)
    assert said(store, store.run(best)) == UNPAID.format(2)
    reviews.pick_by_scores(store, runs, author="Ada")  # too late: what was seen stays seen
    assert said(store, store.run(best)) == UNPAID.format(2)


def test_a_later_pick_by_hand_replaces_the_one_by_scores(store, done):
    runs = [done(score=0.5), done()]
    best, _ = reviews.pick_by_scores(store, runs, author="Ada")
    (other,) = (run for run in runs if run.id != best)
    notes.pick(store, table_id=other.table_id, run_id=other.id, author="Bob")
    assert said(store, store.run(best)) == "" and said(store, other) == ""


def test_a_release_without_noise_is_never_used(store, table, done):
    """Counts of a run that claims nothing would be exact."""
    buyer, run = done(score=0.5), done(epsilon=math.inf)
    source = store.artefacts(buyer.id).path(ScoreCounts.artefact)
    key = NoisyCells.model_validate_json(source.read_text()).key
    store.artefacts(run.id).path(ScoreCounts.artefact).write_bytes(source.read_bytes())
    source.unlink()
    assert released_cells(store, table.id, key) is None


def test_a_charged_release_is_not_made_again_after_a_crash(store, table, schema, monkeypatch):
    run = queued(store, table, schema, score=0.5)
    real_release, made = toy.PrivateTable.release, []

    def crashing(self, name, *rest, **more):
        made.append(name)
        real_release(self, name, *rest, **more)
        raise RuntimeError("the machine went down")

    def work():
        assert store.claim(run.id, slots=1) and store.adopt(run.id, os.getpid())
        command = [run.id, "--home", str(store.workspace.home)]
        return worker.main(command, find=toy.find, compare=toy.compare, command=toy.COMMAND)

    monkeypatch.setattr(toy.PrivateTable, "release", crashing)
    with pytest.raises(RuntimeError):
        work()
    monkeypatch.setattr(toy.PrivateTable, "release", real_release)
    assert store.set_state(run.id, State.QUEUED, expect=(State.FAILED,))
    assert work() == 0 and made == [ScoreCounts.name]
    assert not store.artefacts(run.id).exists(ScoreCounts.artefact)
