"""The review budget: histograms of real columns for people outside, as a paid phase of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.models.events import Observe
from core.privacy.accounting.split import noise_for_share
from core.privacy.plan import Budget, Phase
from core.quality.report.types import ReleasedHistograms
from core.runs.execution.paid_release import release_once
from core.runs.storage.artefacts import ArtefactStore
from core.table.codec import Codec
from core.table.schema import Domain

if TYPE_CHECKING:
    from core.privacy.guarded import PrivateTable

__all__ = [
    "HISTOGRAMS",
    "REVIEW",
    "noise_of",
    "release_histograms",
    "review_phase",
    "shown_columns",
]

REVIEW = "review"  # name of the phase
HISTOGRAMS = "overlay.json"  # artefact that keeps what was released


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


def release_histograms(
    table: PrivateTable, codec: Codec, artefacts: ArtefactStore, *, observe: Observe
) -> None:
    """Release the histograms; nothing where the plan holds no such phase."""
    from core.privacy.mechanisms.histograms import Histograms  # needs torch, as the fit does

    release_once(
        table,
        REVIEW,
        lambda: Histograms.of(codec, shown_columns(codec.domain)),
        lambda mechanism, counts, noise_std: ReleasedHistograms(
            n=table.plan.n, noise_std=noise_std, counts=mechanism.split(counts)
        ),
        title="Counting rows for people outside, with noise",
        artefacts=artefacts,
        artefact=HISTOGRAMS,
        observe=observe,
    )
