"""Noisy scores: counts that a plan bought once, and how near each run's synthetic table is to them.

The release is a phase of a plan. A run's own counts are of synthetic records, so comparing the two
is free post-processing. Runs of one table over the same public cells share what any of them bought;
several releases are averaged by their precision.

Where rows are put together by person, real counts are of people: a person's rows have one vote
together. So have the rows of a synthetic person.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from core.encoding.bins import MOST_PAIRS, PAIR_GROUPS, SINGLE_GROUPS, pairs_of
from core.encoding.codec import Codec
from core.encoding.person_rows import votes
from core.message import Message
from core.quality.metrics.noisy import NoisyCells, SyntheticCells, combined
from core.runs.execution.paid_release import PaidCounts, shown_columns
from core.runs.records import RunRecord
from core.runs.storage.artefacts import load_json
from core.schema.schema import Domain

if TYPE_CHECKING:
    from core.privacy.guarded import PrivateTable
    from core.privacy.mechanisms.histograms import Weight
    from core.runs.storage.store import RunStore


SYNTHETIC_CELLS = "made-cells.json"  # artefact: the same counts of the run's synthetic records
DEFAULT_SHARE = 0.05
_BINS = ("name", "kind", "missing", "low", "high", "step", "scale", "spikes", "categories", "other")


class ScoreCounts(PaidCounts):
    """The release of counts that runs are scored by."""

    name = "score"
    title = Message("Comparing runs without looking")
    label = Message("share for comparing runs must be")
    purpose = Message("compare runs by")
    counting = Message("Counting rows to compare runs by, with noise")
    artefact = "cells.json"

    def what(self, names: Sequence[str], domain: Domain) -> str:
        """See `PaidCounts`."""
        pairs = len(pairs_of(names, domain.target))
        return Message(
            "Counts of public cells of {names} columns and {pairs} pairs of columns, all at once, "
            "with Gaussian noise. Runs of this table are scored by them.",
            names=len(names),
            pairs=pairs,
        )

    def mechanism(self, codec: Codec, names: Sequence[str], weight: Weight | None) -> Any:
        """See `PaidCounts`."""
        from core.privacy.mechanisms.marginals import Marginals  # needs torch, as the fit does

        return Marginals.of(codec, names, codec.domain.target, weight)

    def value(
        self, mechanism: Any, counts: list[float], noise_std: float, table: PrivateTable
    ) -> NoisyCells:
        """See `PaidCounts`."""
        return NoisyCells(
            key=cells_key(table.domain, table.n, table.plan.shift),
            n=table.n,
            noise_std=noise_std,
            sizes=mechanism.sizes,
            counts=tuple(counts),
            shifted=mechanism.weight is not None,
        )


def cells_key(domain: Domain, n: int, shift: float | None = None) -> str:
    """Names the cells and the number of records, 16 hex digits; public facts alone.

    Args:
      domain: of what models see; its columns that may be shown are cut in cells.
      shift: of the columns that the domain tags, by which records count; None without tags.
    """
    names = shown_columns(domain)
    columns = [c.model_dump(mode="json", include=set(_BINS)) for c in domain.columns]
    facts = [
        [column for column in columns if column["name"] in names],
        domain.target,
        n,
        (SINGLE_GROUPS, PAIR_GROUPS, MOST_PAIRS),
        *(() if domain.person is None else (domain.person.model_dump(mode="json"),)),
        *(([sorted(domain.sensitive.values()), shift],) if domain.sensitive else ()),
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def count_synthetic(
    synthetic: pd.DataFrame | Iterable[pd.DataFrame],
    domain: Domain,
    n: int,
    shift: float | None = None,
) -> SyntheticCells | None:
    """The same counts of synthetic records, for the worker; None where no column may be compared.

    Args:
      synthetic: ≥ 1 record, as models see them; all of them or some at a time.
    """
    names = shown_columns(domain)
    if not names:
        return None
    import torch  # pages import this module, and count nothing

    from core.privacy.mechanisms.marginals import Marginals

    codec = Codec(domain)
    mechanism = Marginals.of(codec, names, domain.target)
    parts = [synthetic] if isinstance(synthetic, pd.DataFrame) else synthetic
    if domain.person is not None and domain.person.grouped:
        parts = [pd.concat(parts)]  # whose votes are whose is known only when all have been read
    counts, rows = torch.zeros(sum(mechanism.sizes), dtype=torch.float64), 0.0
    for part in parts:
        each = votes(part, domain.person)
        counts += mechanism.statistic(codec.encode(part), torch.from_numpy(each))
        rows += float(each.sum())
    return SyntheticCells(
        key=cells_key(domain, n, shift), rows=round(rows), counts=tuple(counts.tolist())
    )


def released_cells(store: RunStore, table_id: str, key: str) -> NoisyCells | None:
    """What runs of a table have bought of these cells, as one release; None when none has."""
    releases = [
        load_json(store.artefacts(run.id), ScoreCounts.artefact, NoisyCells)
        for run in store.runs(table_id)
        if run.private
    ]
    same = [cells for cells in releases if cells is not None and cells.key == key]
    return combined(same) if same else None


def synthetic_cells(store: RunStore, runs: Sequence[RunRecord]) -> dict[str, SyntheticCells]:
    """Counts of the synthetic records of those private runs that have them, by run id."""
    counted = {
        run.id: load_json(store.artefacts(run.id), SYNTHETIC_CELLS, SyntheticCells)
        for run in runs
        if run.private
    }
    return {run_id: cells for run_id, cells in counted.items() if cells is not None}
