"""Job: what is asked of one run, for the worker and the command line alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.privacy.plan import Plan
from core.runs.request import RunRequest
from core.runs.storage.artefacts import WorkingFolder
from core.schema.column import DomainColumn
from core.schema.schema import Schema

LmdpResult = dict[str, Any]  # of one group's certificate or check; JSON-safe
Undone = dict[str, Any]  # of one group: "group", "columns", and "undone" in [0, 1]


@dataclass(frozen=True)
class LmdpOutcome:
    """What a run found of its tagged columns.

    Attributes:
      results: of the last attempt's certificate or check, by group; empty when nothing was tested.
      undone: how much of the shift somebody with other shares undoes, by group.
      attempts: how many were made, those that a crash ended among them.
    """

    results: tuple[LmdpResult, ...] = ()
    undone: tuple[Undone, ...] = ()
    attempts: int = 1


@dataclass(frozen=True, kw_only=True)
class Job:
    """What `execute` needs to know.

    Attributes:
      table_id: of the stored table; None for one that is not stored.
      schema: with a declared domain.
      device: "cpu" or "cuda", as `choose_device` answered.
      artefacts: where checkpoint, model, synthetic table and certificate go, with a folder.
      account_id: the ledger account that pays, and whose releases are all shifted the same way.
      debit_key: of the debit; asked twice, it pays once.
      resume: whether to go on from the checkpoint among the artefacts.
      inferred: whether the domain was declared public without being looked at.
      learned_by: what a run learned that the workspace does not hold.
    """

    table: str
    table_id: str | None = None
    plan: Plan
    schema: Schema
    request: RunRequest
    device: str
    artefacts: WorkingFolder
    account_id: str
    debit_key: str
    resume: bool = False
    inferred: bool = False
    learned_by: tuple[DomainColumn, ...] = ()

    @property
    def rows(self) -> int:
        """Number of synthetic records to make, ≥ 1."""
        return self.plan.n if self.request.rows is None else self.request.rows

    @property
    def folder(self) -> Path:
        """Of this machine: where checkpoints and other files of the fit lie beside each other."""
        return self.artefacts.folder
