"""What is said of money is what the ledger holds, in every state of a run and an account."""

from __future__ import annotations

import math
import os
from dataclasses import replace

import pytest

from core.privacy.ledger.filters import left_of
from core.runs.accounts.account import default_limit, pay
from core.runs.accounts.learned_earlier import learned_columns, noted_earlier, with_learned
from core.runs.accounts.spending import (
    account_spending,
    claim_of,
    epsilon_text,
    left_words,
    run_spending,
    share_of,
    share_used,
    shown_share,
)
from core.runs.events import State
from core.runs.request import RunRequest
from core.services import export, imports, reviews, runs
from core.services.planning import make_plan
from core.services.sample_tables import sample_table
from tests.runs.workers import queued, toy_plan, work

pytestmark = pytest.mark.slow

NOTHING = "Nothing has been spent or released about these people yet."
RUNS = "The ledger was charged for 1 run about these people: ε "
WAITS = "1 run is waiting and has not paid yet."
STARTS = "A run is starting: the ledger is being charged for it now."
UNSPENT = "Nothing was spent on this run yet."
STARTING = "The run is starting: the ledger is being charged for it now."
CHARGED = "The ledger was charged ε "


@pytest.fixture
def table(store):
    return imports.import_frame(store, sample_table(600), name="t", source="test")


def debit(store, table, run, *, open_ended=False):
    pay(
        store.ledger, run.account_id, run.plan, run.debit_key,
        domain=table.schema.as_proposed().domain(), allow_non_private=open_ended,
    )  # fmt: skip


def said(store, table, run=None):
    entries = store.ledger.entries(table.account_id)
    account = account_spending(entries, store.runs(table.id)).sentences
    return account if run is None else (account, run_spending(entries, store.run(run.id)).sentence)


@pytest.mark.parametrize(
    ("state", "paid", "account", "run"),
    [
        (State.QUEUED, False, [NOTHING, WAITS], UNSPENT),
        (State.RUNNING, False, [NOTHING, STARTS], STARTING),
        (State.RUNNING, True, [RUNS], CHARGED),
        (State.QUEUED, True, [RUNS], CHARGED),  # it waits to go on
        (State.PAUSED, False, [NOTHING], UNSPENT),
        (State.PAUSED, True, [RUNS], CHARGED),
        (State.CANCELLED, False, [NOTHING], UNSPENT),
        (State.CANCELLED, True, [RUNS], CHARGED),
        (State.FAILED, False, [NOTHING], UNSPENT),
        (State.FAILED, True, [RUNS], CHARGED),
        (State.LOST, True, [RUNS], CHARGED),
        (State.DONE, True, [RUNS], CHARGED),
    ],
)
def test_what_was_spent_in_every_state(store, table, state, paid, account, run):
    started = queued(store, table, toy_plan(table))
    if paid:
        debit(store, table, started)
    if state is State.RUNNING:  # this process stands for the worker
        assert store.claim(started.id, slots=1) and store.adopt(started.id, os.getpid())
    else:
        store.set_state(started.id, state)
    sentences, own = said(store, table, started)
    assert len(sentences) == len(account)
    assert all(one.startswith(begin) for one, begin in zip(sentences, account, strict=True))
    assert own.startswith(run)


def test_before_anything(store, table):
    assert said(store, table) == (NOTHING,)


def test_a_new_start_is_charged_twice_and_no_privacy_has_no_sum(store, table):
    run = queued(store, table, toy_plan(table))
    debit(store, table, run)
    debit(store, table, replace(run, attempt=2))
    assert said(store, table, run)[1].endswith(" for it 2 times.")
    request = RunRequest(model="pearl", epsilon=math.inf)
    free = queued(store, table, make_plan(table.schema, table.training_n, request))
    debit(store, table, free, open_ended=True)
    sentences, own = said(store, table, free)
    assert "without differential privacy, which no ε covers" in sentences[1]
    assert own == "The ledger holds it as a release without differential privacy."


def test_a_cancelled_run_says_what_the_ledger_holds(store, table):
    run = queued(store, table, toy_plan(table))
    assert runs.cancel(store, run.id).message == "Cancelled. Nothing was spent on this run."
    run = queued(store, table, toy_plan(table))
    debit(store, table, run)
    assert runs.cancel(store, run.id).message == "Cancelled. What it spent stays spent."


def test_epsilon_is_the_certificates_everywhere(store, table):
    """The file's name and the list of runs said ε 1 where the certificate said more."""
    earlier = work(store, queued(store, table, toy_plan(table, epsilon=4.0)).id)
    table = store.save_schema(
        table.id, with_learned(table.schema, learned_columns(earlier.schema, earlier.debit))
    )
    (learned,) = noted_earlier(table.schema)
    run = queued(store, table, toy_plan(table))
    before = claim_of(run)
    done = work(store, run.id)
    assert done.state is State.DONE
    claim = claim_of(done)
    certificate = reviews.privacy_certificate(store, run.id)
    text = epsilon_text(claim)
    assert certificate["claim"].startswith(f"ε = {text}, ")
    assert certificate["epsilon_zero_out"] == claim.epsilon
    assert claim.epsilon == pytest.approx(done.plan.guarantee.epsilon + learned.epsilon, rel=1e-3)
    assert epsilon_text(before) == text
    assert export.file_name(done, "csv") == f"t-synthetic-epsilon-{text}.csv"


def test_shares_of_a_limit_add_up_to_what_is_used(store, table):
    for _ in range(3):
        debit(store, table, queued(store, table, toy_plan(table)))
    entries = store.ledger.entries(table.account_id)
    left = left_of(entries)
    total = math.fsum(share_of(left, entry) for entry in entries)
    assert total == pytest.approx(1.0 - left.share)
    assert total <= share_used(left) < total + 1e-4
    assert left_of(entries[:2]).releases == 1
    assert share_used(left_of(entries[:2])) == shown_share(share_of(left, entries[1]))
    used, could, why = left_words(left, default_limit(600)[1])
    assert used == f"{share_used(left):.2%} of the limit of ε 10 is used."
    assert "One more release could spend about ε" in could and "which do add up" in why
