"""Synthetic rows that break a rule which every real row follows."""

from __future__ import annotations

import numpy as np

from core.encoding.layout.invariants import invariants
from core.quality.comparison import Comparison
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.report.types import BrokenRule

IMPOSSIBLE = Metric(
    key="impossible_rows",
    title="Rows that break a rule of the real table",
    goal="lower",
    meaning="Share of synthetic rows that break a rule every real row follows: a column determined "
    "by another, two columns in order, or a sum.",
    source="rules that hold in all real rows and that at least 20 rows would break if a column "
    "were shuffled",
)


@family(IMPOSSIBLE, text="Checking rules of the real table", order=15, cost=0.6)
def impossible_rows(tables: Comparison, _: Step) -> Measured:
    """Rules of the real rows that the synthetic ones break; nothing where there are no rules."""
    real, synthetic = tables.frames
    hidden = {name for names in tables.schema.sensitive.values() for name in names}
    columns = [
        feature.column
        for feature in tables.features.items
        if feature.name in synthetic.columns and feature.name not in hidden
    ]
    known = invariants(real, columns, seed=tables.seed)
    if not known:
        return Measured()
    by_name = {column.name: column for column in columns}
    masks = [one.broken(synthetic, by_name) for one in known]
    broken = [
        BrokenRule(text=one.rule.text, columns=one.rule.columns, rows=int(mask.sum()))
        for one, mask in zip(known, masks, strict=True)
        if mask.any()
    ]
    share = float(np.logical_or.reduce(masks).mean())
    ordered = sorted(broken, key=lambda one: -one.rows)
    return Measured([IMPOSSIBLE.score(share, ceiling=0.0)], {"broken_rules": ordered})
