"""Range queries: what share of rows lies in a box? Asked of both tables, a thousand times.

A query takes up to three columns at random: of a number a random interval of the real range, of a
list a random half of its labels. Every table of one kind is asked the same.

Source: PEARL (ICLR 2022) appendix, 1,000 range queries of three attributes, average L1 error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.quality.aligned_tables import AlignedTable, Feature, Features
from core.quality.comparison import Comparison
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.metrics.marginals import TRIPLE_ROWS

# what must hold of each column: both ends of a number's interval, or codes of a list's labels
Query = dict[str, tuple[float, float] | frozenset[int]]

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


def draw_queries(features: Features, *, seed: int = 0) -> list[Query]:
    """Random queries over the columns, the same for the same features and seed."""
    rng = np.random.default_rng(seed)
    width = min(COLUMNS, len(features))
    queries = []
    for _ in range(QUERIES):
        chosen = rng.choice(len(features), size=width, replace=False)
        items = sorted((features.items[i] for i in chosen), key=lambda item: not item.numeric)
        queries.append({item.name: _condition(item, rng) for item in items})
    return queries


def _condition(item: Feature, rng: np.random.Generator) -> tuple[float, float] | frozenset[int]:
    if item.numeric:
        low, high = item.low + (item.high - item.low) * np.sort(rng.random(2))
        return float(low), float(high)
    labels = len(item.labels)
    return frozenset(rng.permutation(labels)[: max(1, labels // 2)].tolist())


def shares(table: AlignedTable, queries: list[Query]) -> NDArray[np.float64]:
    """Share of rows inside each query's box, [len(queries)]; missing values lie in no box."""
    out = np.zeros(len(queries))
    for i, query in enumerate(queries):
        inside = np.ones(table.n, dtype=np.bool_)
        for name, condition in query.items():
            x = table.values[name]
            if isinstance(condition, tuple):
                number = x.astype(np.float64)
                inside &= (number >= condition[0]) & (number <= condition[1])  # false for NaN
            else:
                asked = np.zeros(len(table.features[name].labels) + 1, dtype=np.bool_)
                asked[list(condition)] = True  # never the last, which is -1, missing
                inside &= asked[x.astype(np.int64)]
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
