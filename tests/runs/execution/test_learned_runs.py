"""Runs that learn a domain: paid for in one entry, before a row is read, and kept with the run."""

from __future__ import annotations

import pytest

from core.models.planning import DiscoverDomain, plan_fit
from core.privacy.discovery import release
from core.privacy.discovery.open_domain import open_domain, reopened, stand_in
from core.privacy.discovery.planning import LISTS, PHASES
from core.privacy.plan import Budget, Guarantee, Plan
from core.runs.accounts.learned_earlier import learned_columns, learned_earlier, with_learned
from core.runs.accounts.spending import with_earlier_added
from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.execution import pipeline
from core.runs.execution.domain_discovery import LearnedDomain
from core.runs.execution.job import Job
from core.runs.records import RunRecord, TableRecord
from core.runs.request import RunRequest
from core.runs.storage.artefacts import LEARNED_DOMAIN, METER, LocalArtefacts, load_json
from core.runs.storage.store import RunStore
from core.schema.column import DomainSource, Learned, Provenance, SchemaError
from core.services import imports, reviews, runs, tables
from core.services.planning import make_plan
from core.services.sample_tables import sample_table
from tests.runs import toy
from tests.runs.workers import HereLauncher, queued, work

ROWS, EPSILON = 1500, 2.0
DELTA = 1e-6


@pytest.fixture
def table(store: RunStore) -> TableRecord:
    return imports.import_frame(store, sample_table(ROWS), name="t", source="test")


def learning_plan(table: TableRecord) -> Plan:
    wanted, budget = open_domain(table.schema), Budget(epsilon=EPSILON, delta=DELTA)
    discover, domain = DiscoverDomain.of(wanted, budget), stand_in(table.schema).domain()
    return plan_fit(toy.Toy(), domain, table.training_n, budget, discover=discover)


def died_after_training(store, table, monkeypatch: pytest.MonkeyPatch) -> RunRecord:
    run = queued(store, table, learning_plan(table))
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "write_tables", _dies)
        with pytest.raises(RuntimeError):
            work(store, run.id)
    return run


def _dies(*_: object, **__: object) -> None:
    raise RuntimeError("the process dies here")


def entries(store: RunStore, table: TableRecord):
    return [e for e in store.ledger.entries(table.account_id) if e.kind == "release"]


def test_an_import_leaves_to_the_run_what_its_rows_propose(table: TableRecord) -> None:
    for column in table.schema.columns:
        assert column.source is DomainSource.LEARNED
        assert column.provenance in (Provenance.PROPOSED, Provenance.UNSTATED)
    assert table.schema.as_proposed().domain().modelled  # and the steward sees what they propose


def test_a_run_learns_within_its_own_epsilon(store: RunStore, table: TableRecord) -> None:
    plan = learning_plan(table)
    run = work(store, queued(store, table, plan).id)
    assert run.state is State.DONE, run.error
    (entry,) = entries(store, table)
    assert entry.epsilon == pytest.approx(EPSILON, rel=1e-6) and 0.0 < entry.failure < DELTA
    assert run.guarantee is not None
    assert run.guarantee.epsilon == pytest.approx(EPSILON, rel=1e-6)
    learned = [column for column in run.schema.columns if column.learned is not None]
    assert {c.name for c in learned} == set(open_domain(table.schema).names)
    for column in learned:
        if column.kind.surrogate:
            continue
        assert column.provenance is Provenance.LEARNED and column.declared
        assert column.learned is not None and 0.0 < column.learned.epsilon < EPSILON
    certificate = reviews.privacy_certificate(store, run.id)
    assert certificate is not None
    assert {p["name"] for p in certificate["phases"]} >= {"bounds", "lists"}
    told = " ".join(certificate["conditions"])
    assert "learned with noise in this run" in told and "as proposed from the rows" not in told
    assert any("columns are in the synthetic table" in one for one in certificate["coverage"])
    assert store.table(table.id).schema == table.schema  # what was learned is no cage


def test_nothing_that_the_rows_propose_reaches_the_plan(table: TableRecord) -> None:
    """Bounds, labels and marks of open columns may change; the plan must not."""
    request = RunRequest(model="pearl", epsilon=1.0)
    plan = make_plan(table.schema, ROWS, request)
    for column in table.schema.columns:
        if not column.modelled:
            continue
        change = {"missing": not column.missing, "categories": ("x", "y", "z")}
        if column.kind.numeric:
            change = {"missing": not column.missing, "low": -7.0, "high": 7e5, "scale": "log"}
        other = column.model_copy(update=change).as_proposed()
        assert make_plan(table.schema.replace(other), ROWS, request).phases == plan.phases


def test_rows_are_read_after_the_debit(store, table, monkeypatch) -> None:
    def dies(*_: object, **__: object) -> None:
        assert len(entries(store, table)) == 1
        raise RuntimeError("no matter")

    monkeypatch.setattr(release, "release_domain", dies)
    run = queued(store, table, learning_plan(table))
    with pytest.raises(RuntimeError):
        work(store, run.id)
    assert store.run(run.id).state is State.FAILED


def test_a_run_that_goes_on_learns_nothing_twice(store, table, monkeypatch) -> None:
    run = died_after_training(store, table, monkeypatch)
    kept = store.artefacts(run.id)
    before = load_json(kept, LEARNED_DOMAIN, LearnedDomain)
    assert before is not None and kept.exists(METER)
    assert store.run(run.id).schema == before.domain
    monkeypatch.setattr(release, "release_domain", lambda *_, **__: pytest.fail("learned twice"))
    runs.resume(store, HereLauncher(store, slots=1), run.id)
    after = store.run(run.id)
    assert after.state is State.DONE and after.schema == before.domain
    assert len(entries(store, table)) == 1


def test_what_was_learned_and_lost_is_not_learned_again(store, table, monkeypatch) -> None:
    run = died_after_training(store, table, monkeypatch)
    kept = store.artefacts(run.id)
    kept.delete(LEARNED_DOMAIN)
    store.record(run.id, learned=table.schema)  # as before it was written down
    runs.resume(store, HereLauncher(store, slots=1), run.id)
    after = store.run(run.id)
    assert after.state is State.FAILED and "learned and lost" in str(after.error)


def test_what_a_run_learned_is_not_another_runs(store, table, tmp_path) -> None:
    """The schema that a result carries was paid for by its own run alone."""
    run = work(store, queued(store, table, learning_plan(table)).id)
    assert run.schema.domain() and open_domain(run.schema).names == ()
    plan = make_plan(run.schema, ROWS, RunRequest(model="pearl", epsilon=1.0))
    job = Job(
        table="t",
        plan=plan,
        schema=run.schema,
        request=RunRequest(model="pearl", epsilon=1.0),
        device="cpu",
        artefacts=LocalArtefacts(tmp_path),
        account_id=table.account_id,
        debit_key="another",
    )
    with pytest.raises(SchemaError, match=r"a run that it does not name. Nothing was spent"):
        pipeline.execute(job, None, store=store, on_event=lambda _: 0)
    assert len(entries(store, table)) == 1
    wanted, before = open_domain(reopened(run.schema)), open_domain(table.schema)
    assert wanted.names == before.names


def test_a_new_start_learns_anew(store, table) -> None:
    run = work(store, queued(store, table, learning_plan(table)).id)
    assert run.schema != table.schema
    assert store.begin_again(run.id).schema == table.schema


def test_a_later_run_adds_what_its_domain_was_learned_for(store, table) -> None:
    run = work(store, queued(store, table, learning_plan(table)).id)
    schema = with_learned(table.schema, learned_columns(run.schema, run.debit))
    assert open_domain(schema).names == () and schema.domain()
    (earlier,) = learned_earlier(store, table.account_id, schema)
    assert earlier.entry == run.debit and earlier.epsilon > 0.0
    plan = make_plan(schema, ROWS, RunRequest(model="pearl", epsilon=1.0))
    assert not {phase.name for phase in plan.phases} & set(PHASES)
    with pytest.raises(RunStoreError, match="no run about these people learned it"):
        learned_earlier(store, "others", schema)
    age = schema["age"]
    assert age.learned is not None
    forged = age.model_copy(update={"high": 1e6})
    mark = age.learned.model_copy(update={"domain": forged.domain_digest})
    forged = forged.model_copy(update={"learned": mark})
    assert forged.provenance is Provenance.LEARNED  # as far as the schema can tell
    with pytest.raises(RunStoreError, match="'age' is marked as learned"):
        learned_earlier(store, table.account_id, schema.replace(forged))


def test_a_claim_adds_earlier_runs_under_both_relations() -> None:
    own = Guarantee(epsilon=1.0, epsilon_replace=2.25, delta=1e-6, method="PLD")
    earlier = [
        Learned(domain="", entry="1-a", epsilon=0.25, epsilon_replace=0.625, delta=1e-7),
        Learned(domain="", entry="2-b", epsilon=0.5, epsilon_replace=1.125, delta=2e-7),
    ]
    claim = with_earlier_added(own, earlier)
    assert (claim.epsilon, claim.epsilon_replace) == (1.75, 4.0)
    assert claim.delta == pytest.approx(1.3e-6, rel=1e-12)
    assert "ε 1.75 and δ 1.3e-06 are sums" in claim.conditions[-1]
    assert with_earlier_added(own, ()) == own


def test_tagged_columns_are_not_learned(store, table) -> None:
    declared = table.schema.as_proposed().model_copy(update={"sensitive": {"g": ("smoker",)}})
    table = tables.learn_all(store, store.save_schema(table.id, declared))
    assert table.schema["smoker"].source is DomainSource.DECLARED
    assert "smoker" not in open_domain(table.schema).names
    plan = make_plan(table.schema, ROWS, RunRequest(model="pearl", epsilon=1.0))
    assert plan.phase(LISTS).failure > 0.0


def test_a_domain_that_is_declared_costs_nothing(store, table) -> None:
    table = tables.declare_all(store, table)
    assert len(tables.declared_from_rows(table)) == len(
        table.schema.as_proposed().domain().modelled
    )
    plan = make_plan(table.schema, ROWS, RunRequest(model="pearl", epsilon=1.0))
    assert plan.failure == 0.0 and not {phase.name for phase in plan.phases} & set(PHASES)


def test_without_privacy_the_proposals_are_used(table) -> None:
    request = RunRequest(model="pearl", epsilon=float("inf"))
    assert not {p.name for p in make_plan(table.schema, ROWS, request).phases} & set(PHASES)
