"""Synthetic rows that break a rule of the real table, or hold two values that never go together.

Two values never go together where chance would have shown them in at least 30 real rows and none
has them; and where chance would have shown 30 other values of one column beside a value of the
other, but only one occurs there. Of numbers with more than 100 values, 20 quantile bins are taken.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.encoding.layout.invariants import invariants
from core.encoding.layout.violations import violates
from core.message import Message, to_say
from core.quality.aligned_tables import Coded
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
INCONSISTENT = Metric(
    key="inconsistent_rows",
    title="Rows that contradict themselves",
    goal="lower",
    meaning="Share of synthetic rows that break a declared rule, or that hold two values which no "
    "real row holds together although chance would have shown them in 30 rows.",
    source="declared rules, and pairs of values with none of 30 expected real rows; as NIST "
    "SDNist 2.5 counts inconsistencies of the census",
)
EXPECTED = 30  # real rows that chance alone would show
WORST = to_say(
    "Most often by {first} and {second}, in {n:,} rows: for example {first} = {a} with {second} = "
    "{b}."
)
OWN_VALUES = 100  # numbers that stay as they are
MOST_CELLS = 1_000_000  # pairs of values of two columns; longer lists are not looked at


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


@family(INCONSISTENT, text="Looking for impossible pairs of values", order=16, cost=0.3)
def inconsistent_rows(tables: Comparison, _: Step) -> Measured:
    """Rows that break a declared rule or hold a pair of values that no real row holds."""
    others = [table for table in (tables.synthetic, tables.holdout) if table is not None]
    hidden = {name for names in tables.schema.sensitive.values() for name in names}
    columns = {
        feature.name: Coded.of(feature, [tables.real, *others], own=OWN_VALUES)
        for feature in tables.features.items
        if feature.name not in hidden
    }
    masks = [np.zeros(table.n, dtype=bool) for table in others]
    masks[0] |= _declared(tables)
    most, words = 0, Message("")
    for first, second in combinations(columns, 2):
        a, b = columns[first], columns[second]
        if (shape := (len(a.names), len(b.names)))[0] * shape[1] > MOST_CELLS:
            continue
        real, *keys = (np.ravel_multi_index(at, shape) for at in zip(a.codes, b.codes, strict=True))
        never = never_together(np.bincount(real, minlength=math.prod(shape)).reshape(shape)).ravel()
        for mask, key in zip(masks, keys, strict=True):
            mask |= never[key]
        rows = np.bincount(keys[0][never[keys[0]]], minlength=1)
        if (n := int(rows.sum())) > most:
            x, y = divmod(int(rows.argmax()), shape[1])
            worst = {"first": first, "a": a.names[x], "second": second, "b": b.names[y]}
            most, words = n, Message(WORST, n=n, **worst)
    ceiling = float(masks[1].mean()) if masks[1:] else 0.0
    return Measured([INCONSISTENT.score(float(masks[0].mean()), ceiling=ceiling, note=words)])


def _declared(tables: Comparison) -> NDArray[np.bool_]:
    """Which synthetic rows break a declared rule; none of tables of which a sample is looked at."""
    frame, broken = tables.frames[1], np.zeros(tables.synthetic.n, dtype=bool)
    rules = tuple(r for r in tables.schema.rules if r.settled and {*r.columns} <= {*frame.columns})
    if not rules or len(frame) > len(broken):
        return broken
    domain = tables.schema.as_proposed().model_copy(update={"rules": rules}).domain()
    by_name = {column.name: column for column in domain.columns}
    for rule in domain.rules:
        broken |= violates(rule, frame, by_name, domain.person)
    return broken


def never_together(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which values of two columns never go together, by their counts in real rows [a, b]."""
    rows, columns = counts.sum(axis=1, keepdims=True), counts.sum(axis=0, keepdims=True)
    expected = np.where(counts == 0, rows * (columns / max(1, counts.sum())), 0.0)
    found = expected >= EXPECTED
    for axis in (0, 1):
        single = (counts > 0).sum(axis=axis, keepdims=True) == 1
        found |= single & (expected > 0) & (expected.sum(axis=axis, keepdims=True) >= EXPECTED)
    return found
