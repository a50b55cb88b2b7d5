"""How long a run may take, how far it is, by the newest run like it, and charts of its training."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from core.models.card import Chart
from core.models.registry import cards
from core.privacy.plan import Plan
from core.runs.events import State
from core.runs.records import RunRecord
from core.runs.storage.journal import without_repeated_steps
from core.runs.storage.store import RunStore
from core.services.estimates import forecast
from core.services.runs import REPLICAS, Progress, expected_seconds

# s of a usual run's stages, until one of the model is done; all others count one each
USUAL = {"preliminary": 12.0, "training": 60.0, "report": 25.0}
STEPS = 100  # that a private stage has at least if it is the training
EARLY = 0.03  # below this nobody can tell how long the rest will take
SIZE, TIMES = 256, 40  # of the product that tells a machine's speed; too small to be felt
FILE = "machine_speed.json"
_NO_METRICS = ("seq", "time", "seconds", "step")


def matrix_seconds() -> float:
    """Seconds that a product of two float32 matrices [256, 256] takes here, the best of forty.

    On one thread: several wait for one another where other work runs, fifty times as long was seen.
    """
    square = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)
    took = []
    with threadpool_limits(limits=1):
        for _ in range(TIMES):
            start = time.perf_counter()
            square @ square
            took.append(time.perf_counter() - start)
    return min(took)


def machine_seconds(folder: Path) -> float:
    """The same, timed once a machine and kept in a folder.

    Args:
      folder: of the workspace; one that moves to another machine is timed there anew.
    """
    path, machine = folder / FILE, f"{platform.node()} {platform.machine()}"
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if known["machine"] == machine and known["seconds"] > 0.0:
            return float(known["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not timed yet, or not readable: it takes milliseconds
    seconds = matrix_seconds()
    try:
        path.write_text(json.dumps({"machine": machine, "seconds": seconds}), encoding="utf-8")
    except OSError:
        pass  # a workspace that cannot be written is timed at each look
    return seconds


def whole_progress(store: RunStore, run: RunRecord, now: Progress) -> tuple[float, float | None]:
    """The part of all stages that is done, in [0, 1], and seconds left; None while too early."""
    if now.phase == REPLICAS:  # asked for once all else is done
        return now.fraction, now.eta_seconds
    done = [str(event.data.get("name")) for event in store.journal.events(run.id, kind="phase")]
    took = _seconds(store, run)
    stages = dict.fromkeys([*done, *took, *(phase.name for phase in run.plan.phases)])
    weights = {name: max(0.1, took.get(name, 1.0)) for name in stages}
    part = sum(weights[name] for name in dict.fromkeys(done) if name != now.phase)
    part += weights.get(now.phase, 0.0) * now.fraction
    fraction = min(1.0, part / sum(weights.values()))
    if fraction < EARLY:
        return fraction, None
    return fraction, now.elapsed_seconds * (1.0 - fraction) / fraction


def expected_range(
    store: RunStore, table_id: str, plan: Plan, *, columns: int
) -> tuple[float, float, bool] | None:
    """Least and most seconds until the synthetic table, and whether runs of the table tell so."""
    seconds = expected_seconds(store, table_id, plan)
    measured = seconds is not None
    if seconds is None:
        speed = machine_seconds(store.workspace.home)
        rows = store.table(table_id).n
        seconds = forecast.expected_seconds(plan, columns=columns, speed=speed, table_rows=rows)
    if seconds is None:
        return None
    return (*forecast.seconds_range(seconds, measured=measured), measured)


def _seconds(store: RunStore, run: RunRecord) -> Mapping[str, float]:
    """By stage, what the newest run of this table and model took."""
    for one in store.runs(run.table_id):
        if one.model == run.model and one.state is State.DONE and one.seconds:
            return {name: took for name, took in one.seconds.items() if name != REPLICAS}
    training = [phase.name for phase in run.plan.phases if phase.count >= STEPS]
    other = {"report": USUAL["report"]} | dict.fromkeys(training, USUAL["training"])
    return other if training else USUAL


def training_charts(store: RunStore, run: RunRecord) -> list[tuple[Chart, pd.DataFrame]]:
    """The charts of the model's card that have points, each with its curves by training step.

    One chart of all metrics where the card has none that fits; nothing before the first metric.
    """
    series = store.journal.series(run.id)
    names = [column for column in series.columns if column not in _NO_METRICS]
    if series.empty or not names:
        return []
    declared = next((card.charts for card in cards() if card.id == run.model), ())
    charts = [chart for chart in declared if set(chart.series) & set(names)]
    if not charts:
        charts = [Chart(title="All metrics", caption="", unit="metric value", series=tuple(names))]
    drawn = []
    for chart in charts:
        curves = [name for name in chart.series if name in names]
        steps = without_repeated_steps(series.dropna(subset=curves, how="all"))
        drawn.append((chart, steps.set_index("step")[curves]))
    return drawn
