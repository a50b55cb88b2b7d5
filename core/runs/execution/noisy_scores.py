"""Noisy scores: counts that a plan bought once, and how near each run's synthetic table is to them.

The release is a phase of a plan. A run's own counts are of synthetic records, so comparing the two
is free post-processing. Runs of one table over the same public cells share what any of them bought;
several releases are averaged by their precision.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from core.models.events import Observe
from core.privacy.plan import Budget, Phase, Plan
from core.quality.metrics.noisy import MadeCells, NoisyCells, combined
from core.runs.execution.review_histograms import due, noise_of, shown_columns
from core.runs.storage.records import RunRecord
from core.runs.storage.workspace import replacing
from core.table.codec import Codec
from core.table.marginals import MOST_PAIRS, PAIR_GROUPS, SINGLE_GROUPS, pairs_of
from core.table.schema import Domain

if TYPE_CHECKING:
    from core.privacy.guarded import PrivateTable
    from core.runs.storage.store import RunStore

__all__ = [
    "DEFAULT_SHARE",
    "MADE",
    "RELEASED",
    "SCORE",
    "cells_key",
    "count_made",
    "made_cells",
    "release_cells",
    "released_cells",
    "score_phase",
]

SCORE = "score"  # name of the phase
RELEASED = "cells.json"  # artefact: what was released of real records
MADE = "made-cells.json"  # artefact: the same counts of the run's synthetic records
DEFAULT_SHARE = 0.05
_BINS = ("name", "kind", "missing", "low", "high", "step", "scale", "spikes", "categories", "other")


def score_phase(domain: Domain, budget: Budget, share: float, *, attempts: int = 1) -> Phase:
    """The phase that releases the counts that runs are compared by.

    Args:
      domain: whose columns; tagged ones are left out.
      budget: of the whole plan, with ε < ∞.
      share: of it, in (0, ½].
      attempts: of the plan; the release is made once but all attempts are paid for.

    Raises:
      ValueError: a share out of range, or every column is tagged.
    """
    if not 0.0 < share <= 0.5:
        raise ValueError(f"The share for comparing runs must be in 0 to 0.5, not {share:g}.")
    names = shown_columns(domain)
    if not names:
        raise ValueError("Every column is hidden, so there is none to compare runs by.")
    pairs = len(pairs_of(names, domain.target))
    return Phase(
        name=SCORE,
        title="Comparing runs without looking",
        what=f"Counts of public cells of {len(names)} columns and {pairs} pairs of columns, all at "
        "once, with Gaussian noise. Runs of this table are scored by them.",
        share=share,
        noise_multiplier=noise_of(budget, share, attempts=attempts),
    )


def cells_key(domain: Domain, n: int) -> str:
    """Names the cells and the number of records, 16 hex digits; public facts alone.

    Args:
      domain: whose columns that may be shown are cut in cells.
      n: records that are trained on.
    """
    names = shown_columns(domain)
    columns = [c.model_dump(mode="json", include=set(_BINS)) for c in domain.columns]
    facts = [
        [column for column in columns if column["name"] in names],
        domain.target,
        n,
        (SINGLE_GROUPS, PAIR_GROUPS, MOST_PAIRS),
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def release_cells(
    table: PrivateTable, plan: Plan, codec: Codec, folder: Path, *, observe: Observe
) -> None:
    """Release the counts into the run's folder; nothing where the plan holds no such phase."""
    title = "Counting rows to compare runs by, with noise"
    if not due(table, plan, SCORE, title, observe=observe):
        return
    from core.privacy.mechanisms.marginals import Marginals

    domain = codec.domain
    mechanism = Marginals.of(codec, shown_columns(domain), domain.target)
    cells = NoisyCells(
        key=cells_key(domain, plan.n),
        n=plan.n,
        noise_std=plan.phase(SCORE).noise_multiplier * mechanism.sensitivity,
        sizes=mechanism.sizes,
        counts=tuple(table.release(SCORE, mechanism).tolist()),
    )
    with replacing(folder / RELEASED) as file:
        file.write(cells.model_dump_json().encode())


def count_made(synthetic: pd.DataFrame, domain: Domain, n: int) -> MadeCells | None:
    """The same counts of synthetic records, for the worker; None where no column may be compared.

    Args:
      synthetic: ≥ 1 record.
      domain: of the run.
      n: records the run was trained on.
    """
    names = shown_columns(domain)
    if not names:
        return None
    import torch

    from core.privacy.mechanisms.marginals import Marginals

    codec = Codec(domain)
    mechanism = Marginals.of(codec, names, domain.target)
    counts = mechanism.statistic(codec.encode(synthetic), torch.ones(len(synthetic)))
    return MadeCells(key=cells_key(domain, n), rows=len(synthetic), counts=tuple(counts.tolist()))


def released_cells(store: RunStore, table_id: str, key: str) -> NoisyCells | None:
    """What runs of a table have bought of these cells, as one release; None when none has."""
    found = []
    for run in store.runs(table_id):
        path = store.artefact(run.id, RELEASED)
        if run.private and path.exists():
            cells = NoisyCells.model_validate_json(path.read_bytes())
            found += [cells] if cells.key == key else []
    return combined(found) if found else None


def made_cells(store: RunStore, runs: Sequence[RunRecord]) -> dict[str, MadeCells]:
    """Counts of the synthetic records of those private runs that have them, by run id."""
    return {
        run.id: MadeCells.model_validate_json(store.artefact(run.id, MADE).read_bytes())
        for run in runs
        if run.private and store.has_artefact(run.id, MADE)
    }
