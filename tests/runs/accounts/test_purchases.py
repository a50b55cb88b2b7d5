"""Purchases: paid before rows are read, kept by the account, used by its runs and nobody else's."""

from __future__ import annotations

from functools import partial

import pytest
from scipy import stats

from core.privacy.discovery import release
from core.privacy.discovery.planning import LISTS, Levels, _open_lists
from core.privacy.discovery.thresholds import label_threshold
from core.privacy.discovery.unbought import as_bought, unbought
from core.privacy.ledger.admission import HiddenError, OverBudgetError
from core.privacy.plan import Guarantee, Plan
from core.runs.accounts.people import NEW, change_account
from core.runs.accounts.purchases import (
    PurchaseRecord,
    declared_since,
    purchases,
    purchases_used,
)
from core.runs.accounts.spending import with_purchases_added
from core.runs.errors import RunStoreError
from core.runs.execution import buying as execution
from core.runs.execution.job import Job
from core.runs.execution.pipeline import _set_since, execute
from core.runs.request import RunRequest
from core.runs.storage.artefacts import LocalArtefacts
from core.schema.column import DomainSource, Provenance, SchemaError
from core.schema.person import Person
from core.schema.rules.rules import Determines
from core.schema.schema import Schema
from core.services import imports
from core.services import purchases as buying
from core.services.planning import make_plan
from core.services.sample_tables import sample_table
from core.services.schema_grid import grid_of, schema_of

pytestmark = pytest.mark.slow

ROWS = 600
EPSILON = 4.0


def imported(store, *, account_id=None, rows=ROWS, marked=True):
    frame = sample_table(rows)
    table = imports.import_frame(store, frame, name="t", source="test", account_id=account_id)
    return store.save_schema(table.id, as_bought(table.schema)) if marked else table


def planned(table, schema=None, epsilon=EPSILON):
    return buying.plan_purchase(schema or table.schema, table.training_n, epsilon)


@pytest.fixture
def table(store):
    return imported(store)


@pytest.fixture
def made(store, table):
    return buying.buy(store, table, planned(table), buying.to_buy(store, table))


def spent(store, account_id):
    return [entry for entry in store.ledger.entries(account_id) if entry.kind == "release"]


def test_a_purchase_is_paid_for_kept_and_said(store, table, made):
    (entry,) = spent(store, table.account_id)
    assert entry.purchase and entry.epsilon == pytest.approx(EPSILON, rel=1e-6)
    assert 0.0 < entry.failure < entry.delta == pytest.approx(0.25e-6)
    (record,) = purchases(store, table.account_id)
    assert record.entry == entry.id and record.epsilon == entry.epsilon
    for column in made.schema.columns:
        if column.modelled:
            assert column.provenance is Provenance.BOUGHT and column.declared
            assert column.purchase.entry == entry.id
    public = made.schema.domain()
    assert {c.provenance for c in public.modelled} == {Provenance.BOUGHT}
    assert Schema.model_validate_json(made.schema.model_dump_json()) == made.schema
    assert type(public).model_validate_json(public.model_dump_json()) == public
    assert make_plan(made.schema, table.training_n, RunRequest(model="pearl", epsilon=1.0))


def test_a_purchase_is_reused_for_the_same_people(store, table, made):
    again = imported(store)
    assert again.account_id == table.account_id and unbought(again.schema).names
    known = buying.to_buy(store, again)
    assert known.domain() == made.schema.domain()
    with pytest.raises(SchemaError, match="Nothing is to be bought"):
        planned(again, known)
    assert len(spent(store, table.account_id)) == 1


def test_other_people_pay_for_themselves(store, table, made):
    other = imported(store, account_id="others", rows=640)
    assert other.account_id != table.account_id
    assert buying.to_buy(store, other) == other.schema
    with pytest.raises(RunStoreError, match="never paid for it"):
        purchases_used(store, other.account_id, made.schema)
    buying.buy(store, other, planned(other), buying.to_buy(store, other))
    assert len(spent(store, other.account_id)) == 1


def test_a_moved_table_is_paid_for_by_nobody_else(store, table, monkeypatch):
    schema = buying.to_buy(store, table)
    before = table.account_id
    move = partial(change_account, store, table.id, NEW, "they are other people")
    paid = execution.pay

    def late(*given, **more):
        move()
        return paid(*given, **more)

    monkeypatch.setattr(release, "release_schema", lambda *_: pytest.fail("rows were read"))
    with monkeypatch.context() as patched:
        patched.setattr(execution, "pay", late)
        with pytest.raises(RunStoreError, match="other people. Nothing was read; ledger entry"):
            buying.buy(store, table, planned(table), schema)
    assert len(spent(store, before)) == 1 and not purchases(store, before)
    with pytest.raises(RunStoreError, match="other people. Nothing was spent"):
        buying.buy(store, table, planned(table), schema, again=True)
    assert len(spent(store, before)) == 1


def test_a_forged_domain_is_no_purchase(store, table, made):
    age = made.schema["age"]
    forged = age.model_copy(update={"high": 1e6})
    forged = forged.model_copy(
        update={"purchase": age.purchase.model_copy(update={"domain": forged.domain_digest})}
    )
    assert forged.provenance is Provenance.BOUGHT  # as far as the schema can tell
    with pytest.raises(RunStoreError, match="'age' is marked as bought"):
        purchases_used(store, table.account_id, made.schema.replace(forged))
    rule = Determines(source="ward", result="smoker", mapping={}, bought=True)
    with pytest.raises(RunStoreError, match="smoker <- ward"):
        purchases_used(store, table.account_id, made.schema.model_copy(update={"rules": (rule,)}))


def test_what_the_steward_changes_is_the_stewards(store, table, made):
    grid = grid_of(made.schema)
    grid.loc[grid["column"] == "age", "to"] = "130"
    edited = schema_of(grid, made.schema)
    age = edited["age"]
    assert age.provenance is Provenance.STEWARD and age.source is DomainSource.DECLARED
    assert schema_of(grid_of(made.schema), made.schema) == made.schema
    marked = grid_of(table.schema)
    assert set(marked.loc[marked["keep"] == "buy", "origin"]) == {"to be bought"}
    assert schema_of(marked, table.schema) == table.schema
    changed = made.schema.replace(made.schema["age"].model_copy(update={"high": 7e7}))
    with pytest.raises(ValueError, match="Nobody has bought .* age"):
        make_plan(changed, ROWS, RunRequest(model="pearl", epsilon=1.0))


def test_rows_are_read_after_a_debit_that_outlives_a_crash(store, table, monkeypatch):
    def dies(rows, *_):
        assert len(spent(store, table.account_id)) == 1  # paid before anything was read
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(release, "release_schema", dies)
        with pytest.raises(KeyboardInterrupt):
            buying.buy(store, table, planned(table), buying.to_buy(store, table))
    assert purchases(store, table.account_id) == () and buying.to_buy(store, table) == table.schema
    with pytest.raises(RunStoreError, match="paid for .* confirm that another"):
        buying.buy(store, table, planned(table), buying.to_buy(store, table))
    assert len(spent(store, table.account_id)) == 1
    buying.buy(store, table, planned(table), buying.to_buy(store, table), again=True)
    assert len(spent(store, table.account_id)) == 2
    assert len(purchases(store, table.account_id)) == 1  # and the lost one is not asked about again
    keyed = as_bought(table.schema, ["ward"])
    assert unbought(buying.to_buy(store, store.table(table.id)).replace(keyed["ward"])).names


def test_nothing_is_loaded_where_the_ledger_refuses(store, table, monkeypatch):
    monkeypatch.setattr(type(store), "load_split", None)
    store.ledger.register(table.account_id, 1.0, 1e-6, n=ROWS)
    with pytest.raises(OverBudgetError):
        buying.buy(store, table, planned(table), buying.to_buy(store, table))
    assert spent(store, table.account_id) == []
    other = planned(table).model_copy(update={"settings": {"columns": [], "rules": []}})
    with pytest.raises(ValueError, match="something else"):
        buying.buy(store, table, other, buying.to_buy(store, table))


def run_like(n: int, epsilon: float, delta: float) -> Plan:
    schema = sample_schema()
    return make_plan(schema, n, RunRequest(model="pearl", epsilon=epsilon, delta=delta))


def sample_schema() -> Schema:
    from core.proposing.propose import infer_schema

    return infer_schema(sample_table(200))


def test_failures_use_delta_reserved_at_the_first_release(store, table):
    ledger = store.ledger
    ledger.register("first a run", 10.0, 2e-5, n=ROWS)
    ledger.debit("first a run", run_like(ROWS, 1.0, 1e-6), "run")
    with pytest.raises(OverBudgetError, match="set aside before their first release"):
        ledger.debit("first a run", planned(table), "late")
    ledger.register("first a purchase", 10.0, 2e-5, n=ROWS)
    whole = ledger.left("first a purchase").capacity
    costly = buying.plan_purchase(table.schema, ROWS, EPSILON, 1.1e-5)  # fails with 2.75e-6
    ledger.debit("first a purchase", costly, "one")
    assert ledger.left("first a purchase").capacity < whole
    with pytest.raises(OverBudgetError, match="used up"):
        ledger.debit("first a purchase", costly, "two")
    alone = Schema(columns=(table.schema["age"],))
    ledger.debit("first a run", buying.plan_purchase(alone, ROWS, 1.0), "bounds never fail")
    assert ledger.verify()


def test_tagged_columns_are_not_bought_nor_settled(store):
    table = imported(store, marked=False)
    tagged = as_bought(table.schema.model_copy(update={"sensitive": {"g": ("smoker",)}}))
    table = store.save_schema(table.id, tagged)
    made = buying.buy(store, table, planned(table), buying.to_buy(store, table))
    request = RunRequest(model="pearl", epsilon=1.0)
    plan = make_plan(made.schema, ROWS, request)
    assert store.ledger.objection(table.account_id, plan, made.schema.domain()) is None
    shown = made.schema.model_copy(update={"sensitive": {"g": ("age",)}})
    words = store.ledger.objection(
        table.account_id, make_plan(shown, ROWS, request), shown.domain()
    )
    assert words is not None and "shows age without a shift" in words
    store.ledger.debit(table.account_id, plan, "run", domain=made.schema.domain())
    fresh = as_bought(sample_schema()).model_copy(update={"sensitive": {}})
    renamed = fresh["age"].model_copy(update={"name": "years"})
    only = Schema(columns=(renamed,))
    with pytest.raises(HiddenError):
        store.ledger.debit(
            table.account_id, buying.plan_purchase(only, ROWS, 1.0), "new", domain=only_domain(only)
        )


def only_domain(schema: Schema):
    from core.schema.column import DomainColumn
    from core.schema.schema import Domain

    return Domain(columns=tuple(DomainColumn.of(column) for column in schema.columns))


def test_a_plan_cannot_fail_where_nothing_was_bought(store):
    table = imported(store, marked=False)
    plan = make_plan(table.schema, ROWS, RunRequest(model="pearl", epsilon=1.0))
    assert plan.failure == 0.0


@pytest.mark.parametrize("columns", [("visit_id",), ()])
def test_more_rows_make_no_persons_label_easier_to_show(table, columns):
    """Where nobody can tell whose rows are whose, a person counts as often as they have rows."""
    person = Person(columns=columns, rows=3)
    schema = table.schema.model_copy(update={"person": person})
    plan, wanted = planned(table, schema), unbought(schema)
    levels, lists = Levels.of(plan, wanted), _open_lists(wanted)
    failure, std = plan.phase(LISTS).failure, levels.std[LISTS]
    most = 1.0 if columns else 3.0
    for labels in (1, 3):  # one label in all rows, or another in each
        shown = labels * stats.norm.sf((levels.label - most / labels) / std)
        assert lists * shown <= 1.01 * failure
    alone = label_threshold(std, failure, lists, 1)  # a twin that forgets the other rows
    assert columns or lists * stats.norm.sf((alone - most) / std) > failure


def test_delta_of_purchase_and_run_stays_below_one_over_n(store, table, made, tmp_path):
    request = RunRequest(model="pearl", epsilon=1.0, delta=0.9999 / table.training_n)
    job = Job(
        table="t",
        plan=make_plan(made.schema, table.training_n, request),
        request=request,
        schema=made.schema,
        device="cpu",
        artefacts=LocalArtefacts(tmp_path),
        account_id=table.account_id,
        debit_key="k",
    )
    with pytest.raises(SchemaError, match=r"too large together for 600 records.*Nothing was spent"):
        execute(job, None, store=store, on_event=lambda _: 0)
    assert len(spent(store, table.account_id)) == 1  # the purchase


def test_what_is_declared_after_it_was_bought_is_said(store, table, made):
    """Who bought bounds and then sets them by hand has looked, whatever this run's ε says."""
    used = purchases_used(store, table.account_id, made.schema)
    assert declared_since(store, table.account_id, made.schema, used) == ([], 0.0)
    by_hand = {"source": DomainSource.DECLARED, "purchase": None}
    columns = [
        c.model_copy(update=by_hand) if c.source is DomainSource.BOUGHT else c
        for c in made.schema.columns
    ]
    declared = made.schema.model_copy(update={"columns": tuple(columns)})
    assert purchases_used(store, table.account_id, declared) == ()
    names, epsilon = declared_since(store, table.account_id, declared, ())
    assert "age" in names and epsilon == used[0].epsilon
    (sentence,) = _set_since(names, epsilon)
    assert "age" in sentence and "this ε does not include" in sentence and _set_since([], 0) == ()
    assert declared_since(store, "others", declared, ()) == ([], 0.0)


def test_a_claim_adds_purchases_under_both_relations():
    def bought(entry: str, epsilon: float, replace: float, delta: float) -> PurchaseRecord:
        return PurchaseRecord(
            entry=entry, epsilon=epsilon, epsilon_replace=replace, delta=delta, columns=(), rules=()
        )

    own = Guarantee(epsilon=1.0, epsilon_replace=2.25, delta=1e-6, method="PLD")
    records = [bought("1-a", 0.25, 0.625, 1e-7), bought("2-b", 0.5, 1.125, 2e-7)]
    claim = with_purchases_added(own, records)
    assert (claim.epsilon, claim.epsilon_replace) == (1.75, 4.0)
    assert claim.delta == pytest.approx(1.3e-6, rel=1e-12)
    assert "ε 1.75 and δ 1.3e-06 are sums" in claim.conditions[-1]
    assert with_purchases_added(own, ()) == own
