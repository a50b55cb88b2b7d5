"""The review budget: histograms of real columns for people outside, as a paid phase of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.models.events import Observe
from core.privacy.plan import Budget, Phase
from core.quality.report.types import ReleasedHistograms
from core.runs.execution.paid_release import paid_phase, release_once, shown_columns
from core.runs.storage.artefacts import ArtefactStore
from core.table.codec import Codec
from core.table.schema import Domain

if TYPE_CHECKING:
    from core.privacy.guarded import PrivateTable

__all__ = [
    "HISTOGRAMS",
    "REVIEW",
    "release_histograms",
    "review_phase",
]

REVIEW = "review"  # name of the phase
HISTOGRAMS = "overlay.json"  # artefact that keeps what was released


def review_phase(domain: Domain, budget: Budget, share: float, *, attempts: int = 1) -> Phase:
    """The phase that releases the histograms of all columns that may be shown; see `paid_phase`.

    Args:
      domain: whose columns; tagged ones are left out.
      budget: of the whole plan, with ε < ∞.
      share: of it, in (0, ½].
      attempts: of the plan; the release is made once but all attempts are paid for.
    """
    return paid_phase(
        domain,
        budget,
        share,
        name=REVIEW,
        title="Pictures for people outside",
        what=lambda names: f"Histograms of {len(names)} columns, all at once, with Gaussian noise.",
        label="review budget must be a share",
        purpose="show to people outside",
        attempts=attempts,
    )


def release_histograms(
    table: PrivateTable, codec: Codec, artefacts: ArtefactStore, *, observe: Observe
) -> None:
    """Release the histograms; nothing where the plan holds no such phase.

    Args:
      table: the door to the rows; charged for the release.
      codec: of the table.
      artefacts: of the run, where the release is kept.
      observe: told of the phase.
    """
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
