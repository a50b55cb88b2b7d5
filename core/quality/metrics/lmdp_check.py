"""α-LMDP, looked at from inside: do released columns betray the real ones?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.lmdp.inside import inside_check
from core.quality.aligned_tables import sample_rows
from core.quality.report.types import GroupCheck
from core.table.codec import Codec
from core.table.schema import Domain, DomainColumn, Schema

__all__ = ["LEAST_ROWS", "protection_checks"]

LEAST_ROWS = 32  # of either table: fewer cannot be told apart
ROWS = 40_000


def protection_checks(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, *, alpha: float, seed: int = 0
) -> list[GroupCheck]:
    """Both tests for every tagged group, on the rows that are released.

    Args:
      real, synthetic: with the schema's columns.
      schema: names the groups; the domains of their columns must be declared.
      alpha: level of the tests, in (0, 1/2).
      seed: of subsamples and permutations.

    Returns:
      One check a group; none where a table is too short to be tested.
    """
    if min(len(real), len(synthetic)) < LEAST_ROWS:
        return []
    names_of = [name for names in schema.sensitive.values() for name in names]
    tagged = tuple(DomainColumn.of(schema[name]) for name in names_of)
    codec = Codec(Domain(columns=tagged))
    rng = np.random.default_rng(seed)
    left, right = (
        codec.encode(frame.iloc[sample_rows(len(frame), ROWS, rng)]) for frame in (real, synthetic)
    )
    checks = []
    for group, names in schema.sensitive.items():
        found = inside_check(codec, names, real=left, released=right, seed=seed)
        checks.append(
            GroupCheck(
                group=group,
                columns=names,
                alpha=alpha,
                records=found.records,
                two_sample=found.two_sample.statistic,
                p_two_sample=found.two_sample.p_value,
                stein=found.goodness.statistic,
                p_stein=found.goodness.p_value,
                differs=found.rejects(alpha),
            )
        )
    return checks
