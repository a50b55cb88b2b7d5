"""execute: the straight line from a plan to a synthetic table, for the worker and the command line.

    check → debit → read → encode → PrivateTable → fit (→ shift → certify) → claim → sample

Rows are read after the debit and not a moment earlier; the claim is made from what the meter
counted, never from what was planned.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from core.models.events import Emitter, Observe, Wish
from core.models.registry import synthesizer
from core.models.synthesizer import Synthesizer
from core.privacy.accounting.accountant import guarantee
from core.privacy.ledger.ledger import Entry, Ledger
from core.privacy.plan import Guarantee, Phase
from core.runs.accounts.account import pay
from core.runs.accounts.people import require_account
from core.runs.execution.attempts import Attempts, fit_attempts
from core.runs.execution.job import Job
from core.runs.execution.privacy_certificate import conditions, make_privacy_certificate
from core.runs.storage.artefacts import (
    BASELINE_TABLE,
    PRIVACY_CERTIFICATE,
    SYNTHETIC_TABLE,
    ArtefactStore,
)
from core.runs.storage.store import RunStore
from core.runs.storage.workspace_secrets import shift_key
from core.table.codec import Codec
from core.table.person_rows import encoded_records
from core.table.schema import Schema, SchemaError

__all__ = ["DeviceError", "Outcome", "choose_device", "execute", "limit_threads"]

Find = Callable[[str], Synthesizer[Any]]


class DeviceError(ValueError):
    """The device that was asked for is not there."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came out: the synthetic table [rows, columns], what ran, what may be claimed."""

    synthetic: pd.DataFrame
    executed: tuple[Phase, ...]
    guarantee: Guarantee
    privacy_certificate: dict[str, Any]


def limit_threads(workers: int = 1) -> None:
    """Share the processors among `workers`; to be called before torch is imported."""
    processors = os.cpu_count() or 1
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, processors // workers)))
    # Threads that wait for each other spin for some microseconds and then sleep. Sleeping at once
    # makes steps of small networks three to five times slower; spinning on makes everything as much
    # slower when another process keeps a processor busy.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def choose_device(asked: str) -> str:
    """The device to use: "cpu" or "cuda", for "auto", "cpu" or "cuda".

    Raises:
      DeviceError: CUDA was asked for and is not there, or the word is none of the three.
    """
    if asked == "cpu":
        return asked
    if asked not in ("auto", "cuda"):
        raise DeviceError(f"There is no device '{asked}'. Choose auto, cpu or cuda.")
    import torch  # after `limit_threads`

    if torch.cuda.is_available():
        return "cuda"
    if asked == "cuda":
        raise DeviceError("There is no CUDA device here. Nothing was spent. Choose auto or cpu.")
    return "cpu"


def execute(
    job: Job,
    load: Callable[[Sequence[str]], pd.DataFrame],
    *,
    store: RunStore,
    observe: Observe,
    find: Find = synthesizer,
    debited: Callable[[Entry], None] = lambda entry: None,
) -> Outcome:
    """Run a plan to its synthetic table, which is among the job's artefacts at the end.

    Args:
      job: see `Job`.
      load: rows of the named columns that are trained on; called once, after the debit.
      store: holds the ledger that pays and the secret that shifts.
      observe: hears of each phase and brings the wish back.
      find: the synthesizer of a model id.
      debited: told of the ledger's entry before a row is read; for a resumed run, the one it has.

    Raises:
      FitCancelled, FitPaused: the observer's wish was followed.
      SchemaError, LedgerError, RunStoreError, ValueError: one plain line; nothing was spent when it
        came before the debit.
    """
    model = find(job.plan.model)
    codec = Codec(job.schema.domain())
    _check_unit(job)
    key = shift_key(store.workspace, job.people)  # first: one that is broken costs nothing
    _phase(observe, "debit", "Checking the ledger")
    entry = _debit(job, store)
    debited(entry)
    _phase(observe, "read", "Reading and encoding the table")
    codes, people = encoded_records(load(_needed(job.schema)), codec, job.schema.person)
    attempts = fit_attempts(job, model, codec, codes, people=people, shift_key=key, observe=observe)
    claim = _claim(job, attempts)
    _phase(observe, "sample", "Making the synthetic table", pausable=False)
    synthetic = attempts.fitted.sample(job.rows, seed=job.seed)
    certificate = make_privacy_certificate(
        table=job.table,
        plan=job.plan,
        executed=attempts.executed,
        guarantee=claim,
        rows=len(synthetic),
        debit=entry,
        lmdp_results=attempts.lmdp_results,
        attempts=attempts.used,
    )
    baseline = attempts.fitted.baseline
    if baseline is not None:
        _write_table(job.artefacts, BASELINE_TABLE, baseline.sample(job.rows, seed=job.seed))
    _write_table(job.artefacts, SYNTHETIC_TABLE, synthetic)
    with job.artefacts.replacing(PRIVACY_CERTIFICATE) as file:
        file.write(json.dumps(certificate, indent=1, ensure_ascii=False).encode())
    return Outcome(
        synthetic=synthetic,
        executed=attempts.executed,
        guarantee=claim,
        privacy_certificate=certificate,
    )


def _check_unit(job: Job) -> None:
    """Refuse a plan that protects other rows together than the schema says."""
    if job.plan.unit != job.schema.person:
        raise SchemaError(
            "The plan and the schema say otherwise whose rows are protected together. Nothing was "
            "spent. Make a new plan."
        )


def _needed(schema: Schema) -> list[str]:
    """The columns that are read: those that are modelled, and those that say who a row is of."""
    modelled = [column.name for column in schema.domain().modelled]
    who = () if schema.person is None else schema.person.columns
    return list(dict.fromkeys((*modelled, *who)))


def _debit(job: Job, store: RunStore) -> Entry:
    """Pay for the plan; a key that paid already, before a pause or a crash, pays no more."""
    if job.table_id is not None:
        require_account(store, job.table_id)
    return pay(
        Ledger(store.engine),
        job.people,
        job.plan,
        job.debit_key,
        domain=job.schema.domain(),
        allow_non_private=job.allow_non_private,
        shift_words=job.shift_words,
    )


def _write_table(artefacts: ArtefactStore, name: str, frame: pd.DataFrame) -> None:
    with artefacts.replacing(name) as file:
        frame.to_parquet(file, index=False)


def _claim(job: Job, attempts: Attempts) -> Guarantee:
    """What may be claimed: where attempts were declared, all of them, however many were needed.

    How many were needed depends on the data; the plan's ε covers every case.
    """
    plan = job.plan
    terms = conditions(job.schema, n=plan.n, inferred=job.inferred)
    executed = guarantee(attempts.executed, plan.budget.delta, terms, rows=plan.rows_of_one)
    if plan.attempts == 1 or not executed.private or not attempts.private:
        return executed
    return plan.guarantee.model_copy(update={"conditions": executed.conditions})


def _phase(observe: Observe, name: str, title: str, *, pausable: bool = True) -> None:
    """Say that a phase begins and follow a wish that stands already."""
    obeys = (Wish.CANCEL, Wish.PAUSE) if pausable else (Wish.CANCEL,)
    Emitter(observe, obeys=obeys).phase(name, title)
