"""execute: the straight line from a plan to a synthetic table, for the worker and the command line.

    check → debit → learn what is open → read → encode → PrivateTable → fit (→ shift → certify)
    → claim → sample

Rows are read after the debit and not a moment earlier; the claim is made from what the meter
counted, never from what was planned.
"""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.encoding.layout.layout import Layout
from core.message import Message, ReportedError, to_json
from core.models.events import Emitter, OnEvent, Signal
from core.models.registry import synthesizer
from core.models.synthesizer import Synthesizer
from core.privacy.accounting.accountant import guarantee
from core.privacy.discovery.open_domain import planned_schema, reopened
from core.privacy.ledger.entries import Entry
from core.privacy.plan import Guarantee, Phase
from core.runs.accounts.account import pay
from core.runs.accounts.learned_earlier import learned_earlier
from core.runs.accounts.people import require_account
from core.runs.accounts.settled_shift import SettledShift
from core.runs.accounts.spending import with_earlier_added
from core.runs.execution.attempts import Attempts, first_meter, fit_attempts
from core.runs.execution.domain_discovery import discover
from core.runs.execution.job import Job
from core.runs.execution.opinion import opinion_of_opacus
from core.runs.execution.privacy_certificate import conditions, make_privacy_certificate
from core.runs.execution.training_rows import TrainingRows, check_disk
from core.runs.execution.written_tables import WrittenTables, write_tables
from core.runs.request import Device
from core.runs.storage.access import accesses
from core.runs.storage.artefacts import PRIVACY_CERTIFICATE, ArtefactStore
from core.runs.storage.store import RunStore
from core.schema.column import Learned, SchemaError
from core.schema.coverage import coverage
from core.schema.schema import Domain, Schema
from core.schema.surrogates import check_room

Find = Callable[[str], Synthesizer[Any]]


class DeviceError(ReportedError):
    """The device that was asked for is not there."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came out: synthetic tables on disk, what ran, what may be claimed.

    Attributes:
      schema: with what was learned.
    """

    schema: Schema
    tables: WrittenTables
    executed: tuple[Phase, ...]
    guarantee: Guarantee
    privacy_certificate: dict[str, Any]


def choose_device(asked: Device) -> str:
    """The device to use: "cpu" or "cuda".

    Raises:
      DeviceError: CUDA was asked for and is not there.
    """
    if asked == "cpu":
        return asked
    import torch  # after `limit_threads`

    if torch.cuda.is_available():
        return "cuda"
    if asked == "cuda":
        raise DeviceError(
            "There is no CUDA device here. Nothing more was spent. Choose auto or cpu."
        )
    return "cpu"


def execute(
    job: Job,
    rows: TrainingRows,
    *,
    store: RunStore,
    on_event: OnEvent,
    find: Find = synthesizer,
    debited: Callable[[Entry], None] = lambda entry: None,
    learned: Callable[[Schema], None] = lambda schema: None,
) -> Outcome:
    """Run a plan to its synthetic table, which is among the job's artefacts at the end.

    Args:
      rows: that are trained on; read once, after the debit.
      store: holds the ledger that pays and the secret that shifts.
      debited: told of the ledger's entry before a row is read; for a resumed run, the one it has.
      learned: told of the schema with which the run goes on, once nothing is open in it.

    Raises:
      FitCancelled, FitPaused: the observer's signal was followed.
      SchemaError, LedgerError, RunStoreError, ValueError: one plain line; nothing was spent when it
        came before the debit.
    """
    model = find(job.plan.model)
    layout = Layout(planned_schema(job.schema, private=job.plan.budget.private).domain())
    _check(job, layout)
    shift = SettledShift(store, job.account_id, job.plan, layout.output)  # a lost one costs nothing
    earlier = _learned_earlier(job, store)
    Emitter(on_event).phase("debit", Message("Checking the ledger"))
    debited(entry := _debit(job, store, layout.output))
    found = discover(job, rows, meter := first_meter(job), on_event)
    if found.domain != job.schema:
        learned(found.domain)
        job, rows = replace(job, schema=found.domain), rows.read_as(found.domain)
    attempts = fit_attempts(job, rows, model, shift, on_event, meter, found.list_counts)
    claim = with_earlier_added(_claim(job, attempts, shift.conditions()), earlier)
    claim, opinion = _compared(claim, job, attempts, earlier)
    tables = _sample(job, attempts, on_event)
    certificate = make_privacy_certificate(
        table=job.table,
        plan=job.plan,
        executed=attempts.executed,
        guarantee=claim,
        rows=job.rows,
        debit=entry,
        lmdp=attempts.lmdp,
        earlier=earlier,
        opinion=opinion,
        owned=job.table_id in accesses(store),
    ) | {"coverage": list(coverage(job.schema).sentences)}
    _write_certificate(job.artefacts, certificate)
    return Outcome(
        schema=job.schema,
        tables=tables,
        executed=attempts.executed,
        guarantee=claim,
        privacy_certificate=certificate,
    )


def _sample(job: Job, attempts: Attempts, on_event: OnEvent) -> WrittenTables:
    gc.collect()  # steps of a fit refer to one another, and to the encoded rows
    Emitter(on_event, obeys=(Signal.CANCEL,)).phase("sample", Message("Making the synthetic table"))
    return write_tables(
        attempts.fitted, job.rows, job.request.seed, job.artefacts, on_event=on_event
    )


def _write_certificate(artefacts: ArtefactStore, certificate: dict[str, Any]) -> None:
    with artefacts.replacing(PRIVACY_CERTIFICATE) as file:
        file.write(json.dumps(to_json(certificate), indent=1, ensure_ascii=False).encode())


def _check(job: Job, layout: Layout) -> None:
    """Refuse what cannot end well, before anything is spent."""
    if not job.resume and reopened(job.schema) != job.schema:
        raise SchemaError(
            "The schema holds bounds, lists or mappings that were learned in a run that it "
            "does not name. Nothing was spent. Let this run learn them, or declare them."
        )
    check_room(layout.output.columns, job.rows, job.schema.person)
    if job.plan.unit != job.schema.person:
        raise SchemaError(
            "The plan and the schema say otherwise whose rows are protected together. "
            "Nothing was spent. Make a new plan."
        )
    check_disk(job.plan, layout, job.schema.person, job.folder)


def _learned_earlier(job: Job, store: RunStore) -> tuple[Learned, ...]:
    """What the run's domain was learned with in earlier runs.

    Raises:
      SchemaError: the δ of a claim with it would reach 1/n; nothing was spent. A run that goes on
        was admitted and paid for before.
    """
    earlier = learned_earlier(store, job.account_id, job.schema, job.learned_by)
    plan = job.plan
    before = math.fsum(one.delta for one in earlier)
    too_large = (plan.budget.delta + before) * plan.n >= 1.0
    if earlier and plan.budget.private and too_large and not job.resume:
        raise SchemaError(
            "δ = {delta:g} of this run and {before:g} of the run that learned its bounds and "
            "lists are too large together for {n} records: they must be below 1/n = "
            "{value:g}. Nothing was spent. Plan with a smaller δ.",
            delta=plan.budget.delta,
            before=before,
            n=plan.n,
            value=1 / plan.n,
        )
    return earlier


def _debit(job: Job, store: RunStore, domain: Domain) -> Entry:
    """Pay for the plan; a key that paid already, before a pause or a crash, pays no more."""
    if job.table_id is not None:
        require_account(store, job.table_id)
    return pay(
        store.ledger,
        job.account_id,
        job.plan,
        job.debit_key,
        domain=domain,
        allow_non_private=bool(job.request.without_privacy.strip()),
        shift_words=job.request.shift_words,
        unit_words=job.request.unit_words,
    )


def _claim(job: Job, attempts: Attempts, more: tuple[str, ...]) -> Guarantee:
    """What may be claimed without earlier runs; `more` are conditions.

    Where attempts were declared, that is all of them, however many were needed: how many depends on
    the data, and the plan's ε covers every case.
    """
    plan = job.plan
    terms = *conditions(job.schema, n=plan.n, inferred=job.inferred), *more
    executed = guarantee(attempts.executed, plan.budget.delta, terms, rows=plan.rows_of_one)
    if plan.attempts == 1 or not executed.private or not attempts.private:
        return executed
    return plan.guarantee.model_copy(update={"conditions": executed.conditions})


def _compared(
    claim: Guarantee, job: Job, attempts: Attempts, earlier: Sequence[Learned]
) -> tuple[Guarantee, dict[str, Any] | None]:
    """The claim, on condition of what Opacus says where it disagrees; and all that it says."""
    plan = job.plan
    if not claim.private:
        return claim, None
    phases = attempts.executed if plan.attempts == 1 else plan.charged  # see `_claim`
    opinion = opinion_of_opacus(phases, plan.budget.delta, rows=plan.rows_of_one, earlier=earlier)
    if opinion["agrees"] is False:
        claim = claim.model_copy(update={"conditions": (*claim.conditions, opinion["statement"])})
    return claim, opinion
