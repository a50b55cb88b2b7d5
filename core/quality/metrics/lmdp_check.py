"""α-LMDP, looked at from inside: do released columns reveal the real ones?"""

from __future__ import annotations

import numpy as np

from core.encoding.codec import Codec
from core.lmdp.inside import inside_check
from core.quality.aligned_tables import sample_rows
from core.quality.comparison import Comparison
from core.quality.metrics.family import Measured, Step, family
from core.quality.report.types import GroupCheck
from core.schema.column import DomainColumn
from core.schema.schema import Domain

LEAST_ROWS = 32  # of either table: fewer cannot be told apart
ROWS = 40_000


@family(
    text="Testing the tagged columns",
    order=20,
    cost=1.0,
    applies=lambda tables: bool(tables.schema.sensitive),
)
def tagged_groups(tables: Comparison, _: Step) -> Measured:
    """Both tests for every tagged group, of its columns that both tables have, on released rows."""
    schema, seed = tables.schema, tables.seed
    groups = {
        group: tuple(name for name in names if all(name in frame for frame in tables.frames))
        for group, names in schema.sensitive.items()
    }
    tagged = [schema[name] for names in groups.values() for name in names]
    if not tagged or min(len(frame) for frame in tables.frames) < LEAST_ROWS:
        return Measured()
    codec = Codec(Domain(columns=tuple(DomainColumn.of(column) for column in tagged)))
    rng = np.random.default_rng(seed)
    real, released = (
        codec.encode(frame.iloc[sample_rows(len(frame), ROWS, rng)]) for frame in tables.frames
    )
    checks = []
    for group, names in ((group, names) for group, names in groups.items() if names):
        tests = inside_check(
            codec, names, real=real, released=released, level=tables.alpha, seed=seed
        )
        checks.append(
            GroupCheck(
                group=group,
                columns=names,
                alpha=tables.alpha,
                records=tests.records,
                two_sample=tests.two_sample.statistic,
                p_two_sample=tests.two_sample.p_value,
                stein=tests.goodness.statistic,
                p_stein=tests.goodness.p_value,
                differs=tests.rejects(tables.alpha),
            )
        )
    return Measured(parts={"protection": checks})
