"""The review budget: histograms of real columns for people outside, as a paid phase of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from core.models.events import Emitter, Observe, Wish
from core.privacy.accounting.split import noise_for_share
from core.privacy.plan import Budget, Phase, Plan
from core.runs.storage.workspace import replacing
from core.table.codec import Codec
from core.table.schema import Domain

if TYPE_CHECKING:
    from core.privacy.guarded import PrivateTable

__all__ = [
    "OVERLAY",
    "REVIEW",
    "due",
    "noise_of",
    "release_overlay",
    "review_phase",
    "shown_columns",
]

REVIEW = "review"  # name of the phase
OVERLAY = "overlay.json"  # artefact that keeps what was released


def shown_columns(domain: Domain) -> list[str]:
    """Columns whose histograms may be bought: modelled, and not tagged as hidden."""
    hidden = {name for names in domain.sensitive.values() for name in names}
    return [column.name for column in domain.modelled if column.name not in hidden]


def review_phase(domain: Domain, budget: Budget, share: float, *, attempts: int = 1) -> Phase:
    """The phase that releases the histograms of all columns that may be shown.

    Args:
      domain: whose columns.
      budget: of the whole plan, with ε < ∞.
      share: of it, in (0, ½].
      attempts: of the plan; the release is made once but all attempts are paid for.

    Raises:
      ValueError: a share out of range, or every column is tagged.
    """
    if not 0.0 < share <= 0.5:
        raise ValueError(f"The review budget must be a share in 0 to 0.5, not {share:g}.")
    names = shown_columns(domain)
    if not names:
        raise ValueError("Every column is hidden, so there is none to show to people outside.")
    return Phase(
        name=REVIEW,
        title="Pictures for people outside",
        what=f"Histograms of {len(names)} columns, all at once, with Gaussian noise.",
        share=share,
        noise_multiplier=noise_of(budget, share, attempts=attempts),
    )


def noise_of(budget: Budget, share: float, *, attempts: int = 1) -> float:
    """The noise multiplier of one Gaussian release that takes a share of a budget with ε < ∞."""
    from dp_accounting.gaussian_mechanism import get_sigma_gaussian  # costs 65 MB

    whole = float(get_sigma_gaussian(budget.epsilon, budget.delta))
    return noise_for_share(whole, share, count=attempts)


def due(table: PrivateTable, plan: Plan, name: str, title: str, *, observe: Observe) -> bool:
    """Whether a phase that is released once is still to be released; says that it begins.

    A release that was charged before a crash and not written is not made again.

    Raises:
      FitCancelled: the observer's wish was followed.
    """
    if all(phase.name != name for phase in plan.phases) or table.meter.runs(name):
        return False
    Emitter(observe, obeys=(Wish.CANCEL,)).phase(name, title, private=True)
    return True


def release_overlay(
    table: PrivateTable, plan: Plan, codec: Codec, folder: Path, *, observe: Observe
) -> None:
    """Release the histograms into the run's folder; nothing where the plan holds no such phase."""
    title = "Counting rows for people outside, with noise"
    if not due(table, plan, REVIEW, title, observe=observe):
        return
    from core.privacy.mechanisms.histograms import Histograms
    from core.quality.report.outside import Overlay

    mechanism = Histograms.of(codec, shown_columns(codec.domain))
    released = table.release(REVIEW, mechanism)
    overlay = Overlay(
        n=plan.n,
        noise_std=plan.phase(REVIEW).noise_multiplier * mechanism.sensitivity,
        counts=mechanism.split(released.tolist()),
    )
    with replacing(folder / OVERLAY) as file:
        file.write(overlay.model_dump_json().encode())
