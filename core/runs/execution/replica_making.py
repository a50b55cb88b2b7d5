"""Replicas of a finished run: made after it, several at once, kept one by one.

Nothing of the table is read, and nothing is charged: see `core.inference.refitting`. A maker that
stops leaves those that are complete; the next one makes the others.
"""

from __future__ import annotations

import json
import secrets
import threading
from contextlib import closing

import pandas as pd

from core.inference.refitting import Refitting
from core.inference.replicas import (
    COUNT,
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
from core.runs.records import RunRecord
from core.runs.storage.artefacts import (
    LEARNED_DOMAIN,
    MODEL,
    OUTSIDE_REPORT,
    REPORT_INTERVALS,
    SYNTHETIC_TABLE,
    ArtefactStore,
    load_json,
)

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
    reason = no_replicas(run.plan)
    if reason is not None:
        raise RunStoreError(reason)
    learned = load_json(artefacts, LEARNED_DOMAIN, LearnedDomain)
    made = Refitting(
        model=synthesizer(run.model),
        fitted=load_fitted(run.model, artefacts.local(MODEL)),
        plan=run.plan,
        schema=run.schema,
        rows=run.rows,
        list_counts={} if learned is None else learned.list_counts,
    )
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


def _describe(artefacts: ArtefactStore, run: RunRecord) -> None:
    """Keep how far the figures of the report for people outside may be off."""
    if not artefacts.exists(OUTSIDE_REPORT):
        return
    with artefacts.open(OUTSIDE_REPORT) as file:
        report = json.load(file)
    with artefacts.readable(SYNTHETIC_TABLE) as table:
        published = pd.read_parquet(table)
    found = report_intervals(report, published, replicas_of(artefacts), run.schema)
    with artefacts.replacing(REPORT_INTERVALS) as out:
        out.write(json.dumps(found).encode())
