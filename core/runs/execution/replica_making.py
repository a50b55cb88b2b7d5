"""What fits a finished run's model again: replicas, and an attack; both are asked for.

Replicas are made several at once and kept one by one. Nothing of the table is read for them, and
nothing is charged: see `core.inference.refitting`. A maker that stops leaves those that are
complete; the next one makes the others. The attack reads real rows as the inside report does, and
spends nothing, since nothing of it is released.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from contextlib import closing

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.inference.refitting import Refitting
from core.inference.replicas import (
    COUNT,
    TOO_NARROW,
    no_replicas,
    numbers_kept,
    replicas_of,
    write_replica,
)
from core.inference.report_intervals import report_intervals
from core.message import Message
from core.models.events import Emitter, FitEvent, OnEvent, Progress, Signal
from core.models.registry import load_fitted, synthesizer
from core.privacy.summation import in_threads
from core.runs.errors import RunStoreError
from core.runs.execution.domain_discovery import LearnedDomain
from core.runs.execution.report_rows import real_sides, synthetic_side
from core.runs.execution.reports import report_name
from core.runs.records import RunRecord
from core.runs.storage import artefacts as stored
from core.runs.storage.artefacts import ArtefactStore
from core.runs.storage.store import RunStore

PHASE = "replicas"  # of a run's events


def make_replicas(
    artefacts: ArtefactStore, run: RunRecord, *, on_event: OnEvent, count: int = COUNT
) -> int:
    """Make the replicas that are missing, on as many processors as torch has; how many there are.

    Args:
      artefacts: of the run, with its model.
      on_event: told how many are done, and asked whether to go on while each is made.

    Raises:
      FitCancelled, FitPaused: the observer's signal was followed; what is complete stays.
      RunStoreError: the run has none, and why.
    """
    made = refitting(artefacts, run)
    missing = sorted(set(range(count)) - set(numbers_kept(artefacts)))
    emitter, telling, done = Emitter(on_event), threading.Lock(), count - len(missing)

    def tell(event: FitEvent | None = None) -> Signal:
        """How many are done, whatever a fit says of itself; observers are told one at a time."""
        with telling:
            return on_event(Progress(step=done, steps=count, phase=PHASE, unit="replicas"))

    emitter.phase(PHASE, Message("Repeating the run on rows of its model, for error bars"))
    tell()
    replicas = in_threads(lambda _: made.replica(secrets.randbits(62), tell), len(missing))
    with closing(replicas):
        for number, replica in zip(missing, replicas, strict=True):
            write_replica(artefacts, number, replica)
            done += 1
            if done == count:
                tell()
                break  # nothing is left to stop
            with telling:
                emitter.send(Progress(step=done, steps=count, phase=PHASE, unit="replicas"))
    _describe(artefacts, run)
    return done


def refitting(artefacts: ArtefactStore, run: RunRecord) -> Refitting:
    """The run's mechanism, to be carried out on other rows.

    Raises:
      RunStoreError: it takes too long, and why.
    """
    reason = no_replicas(run.plan)
    if reason is not None:
        raise RunStoreError(reason)
    learned = stored.load_json(artefacts, stored.LEARNED_DOMAIN, LearnedDomain)
    return Refitting(
        model=synthesizer(run.model),
        fitted=load_fitted(run.model, artefacts.local(stored.MODEL)),
        plan=run.plan,
        schema=run.schema,
        rows=run.rows,
        list_counts={} if learned is None else learned.list_counts,
    )


def _describe(artefacts: ArtefactStore, run: RunRecord) -> None:
    """Keep how far figures of the report for people outside may be off, where intervals hold."""
    if not artefacts.exists(stored.OUTSIDE_REPORT) or run.plan.model in TOO_NARROW:
        return
    with artefacts.open(stored.OUTSIDE_REPORT) as file:
        report = json.load(file)
    with artefacts.readable(stored.SYNTHETIC_TABLE) as table:
        published = pd.read_parquet(table)
    found = report_intervals(report, published, replicas_of(artefacts), run.schema)
    with artefacts.replacing(stored.REPORT_INTERVALS) as out:
        out.write(json.dumps(found).encode())


def attack_again(store: RunStore, run: RunRecord, *, minutes: float, on_event: OnEvent) -> None:
    """Try all attacks again with that one, and put them in place of the report's.

    Raises:
      FitCancelled, FitPaused: the observer's signal was followed; the report stays as it was.
      RunStoreError: no row was attacked before, or the model takes too long to be fitted again.
    """
    # measuring is heavy, as in `reports`
    from core.quality.comparison import TEST_ROWS, Comparison
    from core.quality.metrics.attacks.disclosure import attacks
    from core.quality.metrics.attacks.trained import Refits
    from core.quality.report.types import Report

    artefacts, person, began = store.artefacts(run.id), run.schema.person, time.monotonic()
    report, made = (
        stored.load_json(artefacts, stored.INSIDE_REPORT, Report),
        refitting(artefacts, run),
    )
    if report is None or not report.attacks or (person is not None and person.grouped):
        raise RunStoreError("This attack needs rows kept out, and one row per person.")
    real, kept_out = real_sides(store, run, [c.name for c in run.schema.domain().columns])
    holdout = kept_out.rows.iloc[:TEST_ROWS]  # more would be sampled, and rows lose their place
    both = pd.concat([real.rows, holdout], ignore_index=True)

    def tell(_: FitEvent) -> Signal:
        """Which part of the time has passed, whatever a fit says of itself."""
        percent = min(100, round((time.monotonic() - began) / (0.6 * minutes)))
        return on_event(Progress(step=percent, steps=100, phase=PHASE, unit="%"))

    def release(index: NDArray[np.int64]) -> pd.DataFrame:
        rows = both.iloc[index].reset_index(drop=True)
        return made.released(rows, made.plan_for(len(rows)), secrets.randbits(62), tell)

    Emitter(on_event).phase(PHASE, Message("Attacking the table by refitting its model"))
    synthetic = synthetic_side(artefacts, stored.SYNTHETIC_TABLE).rows
    tables = Comparison.open(real.rows, synthetic, run.schema, test=holdout)
    assert tables.holdout is not None  # there were attacks
    sides = tables.real, tables.holdout, tables.synthetic
    refits = Refits(release, 60.0 * minutes)
    found = attacks(*sides, target=tables.target, seed=tables.seed, refits=refits)
    report = report.model_copy(update={"attacks": found})
    earlier = store.table_artefacts(run.table_id).within("reports")
    for files, name in ((artefacts, stored.INSIDE_REPORT), (earlier, report_name(store, run))):
        stored.save_json(files, name, report)
