"""discover: the first step of a run whose schema leaves domains open; what it learned is kept.

It is charged to the meter of the run's first attempt before a row is read, and kept on disk before
anything uses it, so that a run that goes on after a crash learns nothing twice.
"""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict

from core.message import Message
from core.models.events import OnEvent, PhaseStarted
from core.privacy.accounting.accountant import guarantee
from core.privacy.discovery.lists import ListCounts
from core.privacy.discovery.open_domain import open_domain, reopened, without_proposals
from core.privacy.discovery.planning import PHASES
from core.privacy.discovery.waits import with_orders
from core.privacy.meter import Meter, UnplannedReleaseError
from core.privacy.plan import Plan
from core.runs.errors import RunStoreError
from core.runs.execution.job import Job
from core.runs.execution.training_rows import TrainingRows
from core.runs.storage.artefacts import LEARNED_DOMAIN, load_json, save_json
from core.schema.schema import Schema


class LearnedDomain(BaseModel):
    """What a run learned before its model was trained; all of it was released.

    Attributes:
      counts: of the states of listed columns and of ranges of numbers, their standard deviations,
        and the edges of ranges, by name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    domain: Schema
    counts: dict[str, tuple[list[float], ...]]

    @property
    def list_counts(self) -> dict[str, ListCounts]:
        """As models take them."""
        return {
            name: ListCounts(*map(np.array, released)) for name, released in self.counts.items()
        }


def discover(job: Job, rows: TrainingRows, meter: Meter, on_event: OnEvent) -> LearnedDomain:
    """Learn what the job's schema leaves open, or read back what was learned before a pause.

    Args:
      rows: that are trained on; asked for the open columns alone.
      meter: of the run's first attempt.

    Raises:
      RunStoreError: what was paid for was lost when the worker process ended.
    """
    if not job.plan.budget.private:
        return LearnedDomain(domain=with_orders(job.schema.as_proposed()), counts={})
    kept = load_json(job.artefacts, LEARNED_DOMAIN, LearnedDomain) if job.resume else None
    if kept is not None:
        return kept
    wanted = open_domain(reopened(job.schema))  # which a run that begins holds open already
    if not wanted.names:
        return LearnedDomain(domain=with_orders(job.schema), counts={})
    from core.privacy.discovery.release import release_domain  # torch comes after `limit_threads`

    title = Message("Learning bounds and lists")
    on_event(PhaseStarted(name="domain", title=title))
    unit = job.plan.unit
    who = () if unit is None else (*unit.columns, *unit.several_files)
    names = list(dict.fromkeys((*wanted.names, *who)))
    cells = rows.read_as(without_proposals(job.schema)).whole(names)
    try:
        released = release_domain(cells, wanted, job.plan, meter)
    except UnplannedReleaseError:
        if not job.resume:
            raise  # no crash came before: more is asked than the plan holds
        raise RunStoreError(
            "Bounds and lists were learned and lost when the worker process ended. What they "
            "cost stays spent, and nothing else was released. A new start spends its budget "
            "again."
        ) from None
    found = LearnedDomain(
        domain=_with_cost(released.schema(job.schema), job.plan, meter),
        counts={
            name: tuple(x.tolist() for x in (one.counts, one.std, one.edges) if x is not None)
            for name, one in released.counts.items()
        },
    )
    save_json(job.artefacts, LEARNED_DOMAIN, found)
    job.artefacts.publish()
    return found


def _with_cost(schema: Schema, plan: Plan, meter: Meter) -> Schema:
    """The schema whose learned columns say what all of them cost together, by what ran."""
    ran = tuple(phase for phase in meter.executed if phase.name in PHASES)
    cost = guarantee(ran, plan.budget.delta, rows=plan.rows_of_one)
    paid = {name: getattr(cost, name) for name in ("epsilon", "epsilon_replace", "delta")}
    for column in schema.columns:
        if column.learned is not None and not column.learned.entry:
            learned = column.learned.model_copy(update=paid)
            schema = schema.replace(column.model_copy(update={"learned": learned}))
    return schema
