"""Monitoring: what a Prometheus server may learn of a workspace, and whether it can take work.

Figures are read from the database anew at each scrape, so that several servers of one workspace
tell one truth and a restart forgets nothing. Labels come from closed lists of the code or are
numbers: no name of a table, column, group or person, and no text of an error. An account is called
by the number of the ledger's entry that opened it, which only who may see the ledger can read.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import accumulate
from typing import get_args

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import select, text

from core.models.registry import cards
from core.privacy.ledger.entries import Entry
from core.privacy.ledger.filters import left_of, opening
from core.privacy.ledger.units import units_of
from core.privacy.plan import Plan
from core.runs.errors import FailureKind
from core.runs.events import State
from core.runs.execution.launching.launcher import Launcher
from core.runs.storage.database import RunRow
from core.runs.storage.processes.process import runs_without_worker
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace

# seconds; of phases that last a blink and of trainings that last a night
BOUNDS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 3600.0, 14400.0)
OTHER = "other"
# phases that no model's card names; "certificate NAME" is one a group, and people wrote NAME
PHASES = {"debit", "read", "sample", "report", "shift", "certificate", "review", "score"}
FAILURES = get_args(FailureKind)


@cache
def _known_phases() -> frozenset[str]:
    staged = {stage.name for card in cards() for stage in card.stages}
    return frozenset(staged | PHASES)


def phase_label(name: str) -> str:
    """A phase as a label: itself where the code names it, "other" where a person may have."""
    first = name.split(" ")[0].split(":")[0]
    return next((label for label in (name, first) if label in _known_phases()), OTHER)


class _Workspace(Collector):
    """Reads the database when it is asked."""

    def __init__(self, store: RunStore) -> None:
        self._store = store

    def collect(self) -> Iterable[Metric]:
        """All families, newly read."""
        yield from _runs(self._store)
        yield from _seconds(self._store)
        yield from _accounts(self._store.ledger.entries())


def metrics_text(store: RunStore) -> bytes:
    """Everything, in Prometheus's text format; with memory and time of this process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Workspace(store))
    return generate_latest(registry)


def _runs(store: RunStore) -> Iterator[Metric]:
    """States, the queue, and what failed."""
    gone = {lost.run_id for lost in runs_without_worker(store.engine)}
    columns = (RunRow.id, RunRow.state, RunRow.queued, RunRow.failure)
    with store.engine.connect() as connection:
        rows = connection.execute(select(*columns)).all()
    states = Counter(State.LOST if row.id in gone else State(row.state) for row in rows)
    yield _gauge("runs", "Runs that are kept, by state.", "state", {s: states[s] for s in State})
    waiting = [row.queued for row in rows if row.state == State.QUEUED]
    oldest = max(0.0, time.time() - min(waiting)) if waiting else 0.0
    yield GaugeMetricFamily("facsimile_queue_length", "Runs that wait.", value=len(waiting))
    yield GaugeMetricFamily(
        "facsimile_queue_oldest_seconds", "How long the first of them has waited.", value=oldest
    )
    kinds = Counter(row.failure for row in rows if row.state == State.FAILED)
    by_kind = {kind: kinds[kind] for kind in FAILURES}
    yield _gauge("failed_runs", "Failed runs that are kept, by kind.", "kind", by_kind)


def _gauge(name: str, text: str, label: str, values: dict[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"facsimile_{name}", text, labels=(label,))
    for key, value in values.items():
        family.add_metric((str(key),), value)
    return family


def _seconds(store: RunStore) -> Iterator[Metric]:
    """How long phases took, of runs that are kept and work no more."""
    ended = select(RunRow.id, RunRow.seconds).where(
        RunRow.state.not_in((State.QUEUED, State.RUNNING))
    )
    with store.engine.connect() as connection:
        taken = {run_id: seconds for run_id, seconds in connection.execute(ended) if seconds}
    models = _models(store, taken)
    observed: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run_id, seconds in taken.items():
        for phase, value in seconds.items():
            observed[models.get(run_id, OTHER), phase_label(phase)].append(float(value))
    family = HistogramMetricFamily(
        "facsimile_phase_seconds",
        "Wall time of a phase, of runs that are kept and ended.",
        labels=("model", "phase"),
    )
    for labels, values in sorted(observed.items()):
        family.add_metric(labels, _buckets(values), sum_value=sum(values))
    yield family


def _buckets(values: list[float]) -> list[tuple[str, float]]:
    """Cumulative counts up to each of `BOUNDS`, as Prometheus wants them."""
    inside = Counter(next((i for i, b in enumerate(BOUNDS) if v <= b), len(BOUNDS)) for v in values)
    totals = accumulate(inside[i] for i in range(len(BOUNDS) + 1))
    names = (*(str(bound) for bound in BOUNDS), "+Inf")
    return [(name, float(total)) for name, total in zip(names, totals, strict=True)]


_model_of: dict[str, str] = {}  # a run's model never changes, and its plan is long to read


def _models(store: RunStore, run_ids: Iterable[str]) -> dict[str, str]:
    """The model of each run, as the registry calls it."""
    unknown = [run_id for run_id in run_ids if run_id not in _model_of]
    registered = {card.id for card in cards()}
    for start in range(0, len(unknown), 500):  # databases limit how many values one query takes
        some = unknown[start : start + 500]
        with store.engine.connect() as connection:
            rows = connection.execute(select(RunRow.id, RunRow.plan).where(RunRow.id.in_(some)))
            for run_id, plan in rows:
                model = Plan.model_validate_json(plan).model
                _model_of[run_id] = model if model in registered else OTHER
    return _model_of


def _accounts(entries: tuple[Entry, ...]) -> Iterator[Metric]:
    """What each account may spend, spent and has left."""
    of_people: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        of_people[entry.account_id].append(entry)
    texts = {
        "epsilon_limit": "ε that all releases of an account may cost together, if limited.",
        "epsilon_sum": "Sum of the ε of its releases; together no more, where units is 1.",
        "units": "Kinds of units its private releases protect; of several ε does not add up.",
        "left_ratio": "Share of its limit that is left.",
        "releases": "Releases that it paid for.",
        "non_private_releases": "Releases without differential privacy, which no limit holds for.",
    }
    families = {
        name: GaugeMetricFamily(f"facsimile_account_{name}", text, labels=("account",))
        for name, text in texts.items()
    }
    for known in of_people.values():
        opened = opening(tuple(known))
        if opened is None:
            continue
        paid = [entry for entry in known if entry.kind == "release"]
        values: dict[str, float] = {
            "epsilon_sum": sum(entry.epsilon or 0.0 for entry in paid),
            "units": len(units_of(known)),
            "releases": len(paid),
            "non_private_releases": sum(not entry.private for entry in paid),
            "epsilon_limit": opened.limit,
            "left_ratio": left_of(tuple(known)).share,
        }
        for name, value in values.items():
            families[name].add_metric((str(opened.seq),), value)
    yield from families.values()


def readiness(store: Callable[[], RunStore], launcher: Callable[[], Launcher]) -> dict[str, bool]:
    """Whether the workspace can be written, the database asked, and workers started.

    Whatever goes wrong is a False and nothing more: no path, address or message.
    """
    return {
        "workspace": _does(_write),
        "database": _does(lambda: _ask(store())),
        "launcher": _does(lambda: launcher().reachable()),
    }


def _does(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception:  # what it was is on other pages' faults; here only that it is not ready
        return False


def _write() -> bool:
    """A few bytes, on the disk and gone again: rights, room and a disk that answers."""
    with tempfile.TemporaryFile(dir=Workspace.default().home) as file:
        file.write(b"ready")
        file.flush()
    return True


def _ask(store: RunStore) -> bool:
    with store.engine.connect() as connection:
        return bool(connection.execute(text("SELECT 1")).scalar_one() == 1)
