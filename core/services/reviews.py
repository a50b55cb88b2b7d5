"""Reviews: reports, choosing among runs (by paid noisy scores, or by eye), what certificates say.

A certificate is made when its run ends, the choice comes later. So the certificate that is shown
and downloaded is made here, from the stored one and what is known at that moment, and nowhere else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.encoding.layout.layout import Layout
from core.message import Message, from_json
from core.privacy.ledger.units import units_of
from core.quality.metrics.noisy import NoisyScore, difference, ranked
from core.quality.report.types import View
from core.runs.errors import RunStoreError
from core.runs.execution.noisy_scores import (
    SYNTHETIC_CELLS,
    cells_key,
    released_cells,
    synthetic_cells,
)
from core.runs.records import RunRecord
from core.runs.storage.artefacts import (
    INSIDE_REPORT,
    OUTSIDE_REPORT,
    PRIVACY_CERTIFICATE,
    REPORT_INTERVALS,
)
from core.runs.storage.reviews import notes
from core.runs.storage.reviews.inside_views import viewed_runs
from core.runs.storage.reviews.notes import ScorePick
from core.runs.storage.store import RunStore
from core.schema.rounding_up import round_up
from core.schema.schema import Domain


def report(store: RunStore, run_id: str, view: View = "inside") -> dict[str, Any] | None:
    """The run's report (`core.quality.report.types.Report` as a dict), or None while there is none.

    Args:
      view: "inside" shows real data without noise; "outside" shows none, or what was paid for.

    Beside what was measured, "significant_sets" holds what the fit found in its scan and
    "intervals" how far figures may be off; see `core.inference.report_intervals`.
    """
    made = _read_json(store, run_id, INSIDE_REPORT if view == "inside" else OUTSIDE_REPORT)
    told = significant_sets(store, run_id)
    if made is not None:
        known = intervals(store, run_id)
        if known and view == "inside":  # whose pictures have other bins
            columns = known["columns"].items()
            known = {"columns": {name: {"figures": one["figures"]} for name, one in columns}}
        made |= {"intervals": known} if known else {}
    return made | {"significant_sets": told} if made is not None and told else made


def intervals(store: RunStore, run_id: str) -> dict[str, Any]:
    """How far figures of the outside report may be off; empty before that was worked out."""
    return _read_json(store, run_id, REPORT_INTERVALS) or {}


def significant_sets(store: RunStore, run_id: str) -> list[dict[str, Any]]:
    """`core.models.events.Interaction`s as dicts, from a fit's releases; none where none scans.

    Columns are named as the model sees them. Free to show in both views.
    """
    newest = store.journal.latest(run_id, "significant_sets")
    return [] if newest is None else list(newest.data["sets"])


def attacks(store: RunStore, run_id: str) -> list[dict[str, Any]]:
    """What attacks on a run reached, for inside; none where none was tried (yet)."""
    return list((report(store, run_id) or {}).get("attacks", ()))


def alarming(store: RunStore, run_id: str) -> list[dict[str, Any]]:
    """The attacks that work better on the table than on strangers, beyond a 99 % interval."""
    return [attack for attack in attacks(store, run_id) if attack["exposed"]]


def waits_for(store: RunStore, run: RunRecord) -> str:
    """Why a run's download must wait for people, in a sentence; "" where it need not."""
    alarm = bool(alarming(store, run.id))
    return notes.missing(store, table_id=run.table_id, run_id=run.id, alarm=alarm)


def privacy_certificate(store: RunStore, run_id: str) -> dict[str, Any] | None:
    """The run's privacy certificate as it is true now, or None while there is none.

    Where a choice was made among runs, "conditions" holds a sentence on it and "selection" its
    facts; a run without differential privacy claims nothing, so nothing is added.
    """
    stored = _read_json(store, run_id, PRIVACY_CERTIFICATE)
    words = "" if stored is None else selection_words(store, store.run(run_id))
    if stored is None or not words:
        return stored
    return stored | {"conditions": [*stored.get("conditions", ()), words], "selection": words}


def disputed(store: RunStore, run_id: str) -> str:
    """What a run's certificate says where Opacus's accountants disagree on ε; "" where not."""
    opinion = (_read_json(store, run_id, PRIVACY_CERTIFICATE) or {}).get("second_opinion") or {}
    return str(opinion["statement"]) if opinion.get("agrees") is False else ""


def refused_groups(store: RunStore, run: RunRecord) -> list[str]:
    """Groups of tagged columns whose certificate or check said no; all where it is not there."""
    if run.plan.protection is None:
        return []
    certificate = privacy_certificate(store, run.id)
    if certificate is None:
        return list(run.plan.protection.groups)
    results = (certificate.get("lmdp") or {}).get("verdicts", [])
    return [result["group"] for result in results if not result["granted"]]


def _read_json(store: RunStore, run_id: str, name: str) -> dict[str, Any] | None:
    try:
        with store.artefacts(run_id).open(name) as file:
            content: dict[str, Any] = json.load(file, object_hook=from_json)
    except FileNotFoundError:
        return None
    return content


def selection_words(store: RunStore, run: RunRecord) -> str:
    """How this run came to be chosen, as far as ε is concerned; "" where nothing is to be said."""
    if not run.private:
        return ""
    looked = inside_view_words(store, run.account_id, run_id=run.id)
    if looked:
        return looked
    last = notes.picked_by_scores(store, run.table_id)
    if last is None or last[0] != run.id:
        return ""
    how = last[1]
    epsilon, delta = round_up(how.epsilon, ".4g"), round_up(how.delta, ".3g")
    return Message(
        "Chosen among {runs} runs by noisy scores that ε covers: all releases about these people "
        "up to that choice cost at most ε = {epsilon:.4g}, δ = {delta:.3g} together. The ε of this "
        "run alone does not count the other runs.",
        runs=how.runs,
        epsilon=epsilon,
        delta=delta,
    )


def inside_view_words(store: RunStore, account_id: str, *, run_id: str | None = None) -> str:
    """The condition on a choice after inside views were open; "" while no other run was seen.

    A run that is released counts among the runs it was chosen from, whether it was seen or not:
    it may have been made, or taken, because of what another one showed.

    Args:
      account_id: ledger account of the run that is released.
      run_id: the run; None for one that the store does not hold.
    """
    others = viewed_runs(store, account_id) - {run_id}
    if not others:
        return ""
    return Message(
        "Chosen among {n} runs after looking at real data; the choice is not covered by ε.",
        n=len(others) + 1,
    )


# -- noisy scores -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranking:
    """Runs of one table by their noisy scores, the closest first.

    Attributes:
      scores: by run id, in that order, at least two.
      lead: how much farther the second is than the first, ≥ 0, with its standard error.
    """

    scores: dict[str, NoisyScore]
    lead: NoisyScore

    @property
    def best(self) -> str:
        """Id of the closest run."""
        return next(iter(self.scores))


def bought(
    store: RunStore, table_id: str, domain: Domain, n: int, shift: float | None = None
) -> bool:
    """Whether some run of a table has bought noisy counts of a domain's cells over n records.

    Args:
      n: number of records (public), ≥ 1.
    """
    key = cells_key(Layout(domain).domain, n, shift)
    return released_cells(store, table_id, key) is not None


def comparable(store: RunStore, run: RunRecord) -> bool:
    """Whether a private run was counted, and noisy counts to score it by were bought."""
    counted = run.private and store.artefacts(run.id).exists(SYNTHETIC_CELLS)
    return counted and bought(store, run.table_id, run.schema.domain(), run.plan.n, run.plan.shift)


def ranking(store: RunStore, runs: Sequence[RunRecord]) -> Ranking | None:
    """The runs that can be compared without looking, or None when there are fewer than two.

    They must be private, of one table, over the same public cells, and those cells must have been
    bought by some run of that table.
    """
    synthetic = synthetic_cells(store, runs)
    keys = {cells.key for cells in synthetic.values()}
    tables = {run.table_id for run in runs if run.id in synthetic}
    if len(synthetic) < 2 or len(keys) != 1 or len(tables) != 1:
        return None
    released = released_cells(store, tables.pop(), keys.pop())
    if released is None:
        return None
    scores = ranked(released, synthetic)
    first, second = list(scores)[:2]
    return Ranking(scores, difference(released, synthetic[second], synthetic[first]))


def pick_by_scores(
    store: RunStore, runs: Sequence[RunRecord], *, author: str
) -> tuple[str, Ranking]:
    """Pick the run with the lowest noisy score; opens no real row and no inside view.

    Returns:
      The picked run's id, and the ranking it comes from.

    Raises:
      RunStoreError: fewer than two of these runs can be compared; nothing was picked.
    """
    compared = ranking(store, runs)
    if compared is None:
        raise RunStoreError(
            "Fewer than two of these runs have noisy scores over the same columns. Nothing was "
            "picked. Switch on “let runs be compared without looking” in a plan of this table."
        )
    best = next(run for run in runs if run.id == compared.best)
    how = _paid(store, best.account_id, [run for run in runs if run.id in compared.scores])
    notes.pick(store, table_id=best.table_id, run_id=best.id, author=author, scores=how)
    return best.id, compared


def _paid(store: RunStore, account_id: str, compared: Sequence[RunRecord]) -> ScorePick:
    """What everything that the choice can depend on cost, by adding up ε and δ.

    All private releases about these people are counted, not only the runs compared: which runs
    were compared may depend on what the others showed.
    """
    entries = store.ledger.entries(account_id)
    if len(units_of(entries)) > 1:
        raise RunStoreError(
            "Releases about these people protect different units, so the cost of the choice "
            "cannot be added up. Nothing was picked."
        )
    costs = {
        entry.run: (entry.limit, entry.delta)
        for entry in entries
        if entry.kind == "release" and entry.private
    }
    for run in compared:
        claim = run.guarantee or run.plan.guarantee
        costs.setdefault(run.debit_key, (claim.epsilon, claim.delta))
    return ScorePick(
        runs=len(compared),
        epsilon=math.fsum(epsilon for epsilon, _ in costs.values()),
        delta=math.fsum(delta for _, delta in costs.values()),
    )
