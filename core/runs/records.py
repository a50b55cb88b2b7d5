"""TableRecord and RunRecord: what is known of a table and of a run, as frozen values."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.encoding.holdout import training_count
from core.privacy.plan import Guarantee, Plan
from core.runs.events import State
from core.runs.request import RunRequest
from core.schema.schema import Schema

NEWEST = "ledger"  # of a profile: number of the ledger's newest entry when the table came in
PEOPLE = "people"  # of a profile: how many people are trained on, and how they are told apart

RESUMABLE = (State.PAUSED, State.LOST, State.FAILED)  # states that a run may go on from


@dataclass(frozen=True, kw_only=True)
class TableRecord:
    """An imported table.

    Attributes:
      id: short and fit for a URL.
      columns: headers in file order.
      source: where it came from, in words.
      created: time of import, UTC.
      schema: proposed, or as the steward confirmed it.
      profile: `core.proposing.profile.Profile` as a dict; pages read it instead of the rows.
    """

    id: str
    name: str
    n: int
    columns: tuple[str, ...]
    source: str
    created: datetime
    schema: Schema
    profile: dict[str, Any]
    account_id: str

    @property
    def training_n(self) -> int:
        """Number of records that are trained on: all but the holdout (public).

        People where rows are put together by person, else rows.
        """
        people = people_of_profile(self.profile, self.schema)
        return training_count(self.n, self.schema.holdout) if people is None else people

    @property
    def records(self) -> str:
        """What a record is, in the plural: people or rows."""
        person = self.schema.person
        return "people" if person is not None and person.grouped else "rows"


def people_of_profile(profile: dict[str, Any], schema: Schema) -> int | None:
    """How many people are trained on; None where rows are not put together, or nobody counted."""
    counted = profile.get(PEOPLE)
    if counted is None or schema.person is None or counted["counted"] != people_counted(schema):
        return None
    return int(counted["n"])


def people_counted(schema: Schema) -> str:
    """A digest of whose rows are whose, as declared: a number of people depends on it."""
    assert schema.person is not None
    told = [schema[name].model_dump_json() for name in schema.person.columns]
    text = "\n".join((*told, str(schema.holdout)))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run.

    Attributes:
      id: short and fit for a URL.
      plan: what will be done for it, fixed before data was touched.
      schema: as it was when the run was made.
      state, message: where it is, with a plain sentence.
      error: one plain line when it failed, else None.
      created, queued, started, ended: UTC; queued when it last began to wait, started at the first
        start, ended with the last state.
      host, pid: the machine and worker process that holds or held it.
      attempt: 1, and one more for each start from the beginning; each pays for itself.
      debit: the ledger's entry that paid, None when nothing was debited yet.
      guarantee: what was executed; None until a fit has ended.
      seconds: wall time by phase, in seconds.
      peak_memory_mb: the worker's largest resident size, in MiB.
      resumable: whether it can go on without another debit.
    """

    id: str
    table_id: str
    table_name: str
    account_id: str
    request: RunRequest
    plan: Plan
    schema: Schema
    state: State
    message: str
    error: str | None
    created: datetime
    queued: datetime
    started: datetime | None
    ended: datetime | None
    host: str | None
    pid: int | None
    attempt: int
    debit: str | None
    guarantee: Guarantee | None
    seconds: dict[str, float]
    peak_memory_mb: float | None
    resumable: bool

    @property
    def model(self) -> str:
        """The model's registry id."""
        return self.plan.model

    @property
    def name(self) -> str:
        """For people; may be empty."""
        return self.request.name

    @property
    def rows(self) -> int:
        """Number of synthetic records, ≥ 1."""
        return self.plan.n if self.request.rows is None else self.request.rows

    @property
    def debit_key(self) -> str:
        """The ledger's key of this attempt: asked twice, it pays once."""
        return self.id if self.attempt == 1 else f"{self.id}.{self.attempt}"

    @property
    def private(self) -> bool:
        """Whether any differential privacy is claimed or planned."""
        return self.guarantee.private if self.guarantee is not None else self.plan.budget.private

    @property
    def title(self) -> str:
        """The name, or the model and the table when it has none."""
        return self.name or f"{self.table_name} by {self.model}"
