"""Range queries: what share of rows lies in a box? Asked of both tables, a thousand times.

A query takes up to three columns at random; of a number it asks for a random interval of the real
range, of a list for a random half of its labels. Its error is the difference of the two shares of
rows. The queries depend on the columns' ranges and labels and a seed, so every table of one kind is
asked the same.

Source: PEARL (ICLR 2022) appendix, 1,000 range queries of three attributes, average L1 error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.quality.aligned_tables import AlignedTable, Feature, Features
from core.quality.comparison import Comparison
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.metrics.marginals import TRIPLE_ROWS

__all__ = ["Query", "draw_queries", "range_error", "shares"]

Bools = NDArray[np.bool_]

QUERIES = 1_000
COLUMNS = 3  # of one query

RANGE_ERROR = Metric(
    key="range_error",
    title="Range queries: error",
    goal="lower",
    meaning="A thousand questions such as “What share of rows has an age from 30 to 50 and one of "
    "these occupations?”: the average error of the synthetic table's answers.",
    source="PEARL (ICLR 2022): 1,000 range queries of three columns",
)


@dataclass(frozen=True)
class Query:
    """A box: a condition on each of a few columns, all to hold at once.

    Attributes:
      intervals: (column, low, high) for numbers, both ends included.
    """

    intervals: tuple[tuple[str, float, float], ...]
    labels: tuple[tuple[str, frozenset[int]], ...]


def draw_queries(features: Features, *, seed: int = 0) -> list[Query]:
    """Random queries over the columns, the same for the same features and seed."""
    rng = np.random.default_rng(seed)
    width = min(COLUMNS, len(features))
    queries = []
    for _ in range(QUERIES):
        chosen = rng.choice(len(features), size=width, replace=False)
        items = [features.items[i] for i in chosen]
        queries.append(
            Query(
                tuple(_interval(item, rng) for item in items if item.numeric),
                tuple(_half_of_labels(item, rng) for item in items if not item.numeric),
            )
        )
    return queries


def shares(table: AlignedTable, queries: list[Query]) -> NDArray[np.float64]:
    """Share of rows inside each query's box, [len(queries)]; missing values lie in no box."""
    out = np.zeros(len(queries))
    for i, query in enumerate(queries):
        inside: Bools = np.ones(table.n, dtype=np.bool_)
        for name, low, high in query.intervals:
            x = table.values[name].astype(np.float64)
            inside &= (x >= low) & (x <= high)  # false for NaN
        for name, codes in query.labels:
            inside &= np.isin(table.values[name], list(codes))  # -1, missing, is never asked for
        out[i] = inside.mean() if table.n else 0.0
    return out


def range_error(real: AlignedTable, synthetic: AlignedTable, *, seed: int = 0) -> float:
    """Mean absolute difference of the shares over random queries, in [0, 1]."""
    queries = draw_queries(real.features, seed=seed)
    return float(np.abs(shares(real, queries) - shares(synthetic, queries)).mean())


@family(RANGE_ERROR, text="Answering range queries", order=50, cost=0.3)
def range_queries(tables: Comparison, _: Step) -> Measured:
    """Range queries asked of both tables."""
    real, synthetic, resampled = tables.samples(TRIPLE_ROWS, 7)
    error = range_error(real, synthetic, seed=tables.seed)
    ceiling = range_error(real, resampled, seed=tables.seed)
    return Measured([RANGE_ERROR.score(error, ceiling=ceiling)])


def _interval(item: Feature, rng: np.random.Generator) -> tuple[str, float, float]:
    """A random interval of a number's real range."""
    ends = np.sort(rng.random(2))
    span = item.high - item.low
    return item.name, float(item.low + span * ends[0]), float(item.low + span * ends[1])


def _half_of_labels(item: Feature, rng: np.random.Generator) -> tuple[str, frozenset[int]]:
    labels = len(item.labels)
    chosen = rng.permutation(labels)[: max(1, labels // 2)]
    return item.name, frozenset(int(code) for code in chosen)
