"""The charts of a run, from what its model reported while it trained."""

from __future__ import annotations

import pandas as pd

from core.models.card import Chart
from core.models.registry import cards
from core.runs.records import RunRecord
from core.runs.storage.journal import without_repeated_steps
from core.runs.storage.store import RunStore

_NO_METRICS = ("seq", "time", "seconds", "step")


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
