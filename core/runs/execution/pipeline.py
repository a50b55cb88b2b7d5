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
from pathlib import Path
from typing import Any

import pandas as pd

from core.models.events import Emitter, Observe, Wish
from core.models.synthesizer import Synthesizer
from core.privacy.accounting.accountant import guarantee
from core.privacy.ledger.ledger import Entry
from core.privacy.plan import Guarantee, Phase, Plan
from core.runs.execution.attempts import fit_attempts
from core.runs.execution.privacy_certificate import conditions, make_certificate
from core.runs.storage.workspace import replacing
from core.table.codec import Codec
from core.table.schema import Schema

__all__ = ["DeviceError", "Job", "Outcome", "choose_device", "execute", "limit_threads"]

Find = Callable[[str], Synthesizer[Any]]


class DeviceError(ValueError):
    """The device that was asked for is not there."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What `execute` needs to know.

    Attributes:
      table: the table's name, for the certificate.
      plan: what may be done.
      schema: with a declared domain.
      rows: synthetic records to make, ≥ 1.
      seed: of data-free randomness; None draws one.
      device: "cpu" or "cuda", as `choose_device` answered.
      folder: where checkpoint, model, synthetic table and certificate go.
      resume: whether to go on from the checkpoint in that folder.
      inferred: whether the domain was declared public without a look.
      shift_key: fixes the marginal shift of tagged columns, see `protect.shift_key`.
    """

    table: str
    plan: Plan
    schema: Schema
    rows: int
    seed: int | None
    device: str
    folder: Path
    resume: bool = False
    inferred: bool = False
    shift_key: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came out: the synthetic table [rows, columns], what ran, what may be claimed."""

    synthetic: pd.DataFrame
    executed: tuple[Phase, ...]
    guarantee: Guarantee
    certificate: dict[str, Any]


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
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if asked == "cuda":
        raise DeviceError("There is no CUDA device here. Nothing was spent. Choose auto or cpu.")
    return "cpu"


def execute(
    job: Job,
    load: Callable[[Sequence[str]], pd.DataFrame],
    *,
    debit: Callable[[], Entry],
    observe: Observe,
    find: Find,
) -> Outcome:
    """Run a plan to its synthetic table, which lies in the job's folder at the end.

    Args:
      job: see `Job`.
      load: rows of the named columns; called once, after the debit.
      debit: pays for the plan and returns the ledger's entry; for a resumed run, the entry it has.
      observe: hears of each phase and brings the wish back.
      find: the synthesizer of a model id.

    Raises:
      FitCancelled, FitPaused: the observer's wish was followed.
      SchemaError, DeviceError, ValueError: one plain line; nothing was spent when it came before
        the debit.
    """
    model = find(job.plan.model)
    codec = Codec(job.schema.domain())
    _phase(observe, "debit", "Checking the ledger")
    entry = debit()
    _phase(observe, "read", "Reading and encoding the table")
    names = [column.name for column in codec.domain.modelled]
    codes = codec.encode(load(names))
    made = fit_attempts(job, model, codec, codes, observe=observe)
    terms = conditions(job.schema, n=job.plan.n, inferred=job.inferred)
    ran = guarantee(made.executed, job.plan.budget.delta, terms)
    claim = _claim(job.plan, ran) if made.private else ran
    _phase(observe, "sample", "Making the synthetic table", pausable=False)
    synthetic = made.fitted.sample(job.rows, seed=job.seed)
    certificate = make_certificate(
        table=job.table,
        plan=job.plan,
        executed=made.executed,
        guarantee=claim,
        rows=len(synthetic),
        debit=entry,
        verdicts=made.verdicts,
        attempts=made.used,
    )
    if made.fitted.baseline is not None:
        with replacing(job.folder / "before.parquet") as file:
            made.fitted.baseline.sample(job.rows, seed=job.seed).to_parquet(file, index=False)
    with replacing(job.folder / "synthetic.parquet") as file:
        synthetic.to_parquet(file, index=False)
    with replacing(job.folder / "certificate.json") as file:
        file.write(json.dumps(certificate, indent=1, ensure_ascii=False).encode())
    return Outcome(
        synthetic=synthetic, executed=made.executed, guarantee=claim, certificate=certificate
    )


def _claim(plan: Plan, ran: Guarantee) -> Guarantee:
    """What may be claimed: where attempts were declared, all of them, however many were needed.

    How many were needed depends on the data; the plan's ε covers every case.
    """
    if plan.attempts == 1 or not ran.private:
        return ran
    return plan.guarantee.model_copy(update={"conditions": ran.conditions})


def _phase(observe: Observe, name: str, title: str, *, pausable: bool = True) -> None:
    """Say that a phase begins and follow a wish that stands already."""
    obeys = (Wish.CANCEL, Wish.PAUSE) if pausable else (Wish.CANCEL,)
    Emitter(observe, obeys=obeys).phase(name, title)
