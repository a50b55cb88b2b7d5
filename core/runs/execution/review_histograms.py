"""The review budget: histograms of real columns for people outside, as a paid phase of a plan.

Where tagged columns are hidden, every record counts as much as the shift keeps of such records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.encoding.codec import Codec
from core.models.events import OnEvent
from core.quality.report.types import ReleasedHistograms
from core.runs.execution.paid_release import PaidCounts, shown_columns
from core.runs.storage.artefacts import ArtefactStore

if TYPE_CHECKING:
    from core.privacy.guarded import PrivateTable
    from core.privacy.mechanisms.histograms import Weight

__all__ = ["REVIEW", "release_histograms"]

REVIEW = PaidCounts(
    name="review",
    title="Pictures for people outside",
    what=lambda names, _: f"Histograms of {len(names)} columns, all at once, with Gaussian noise.",
    label="review budget must be a share",
    purpose="show to people outside",
    counting="Counting rows for people outside, with noise",
    artefact="overlay.json",
)


def release_histograms(
    table: PrivateTable,
    codec: Codec,
    artefacts: ArtefactStore,
    *,
    weight: Weight | None,
    on_event: OnEvent,
) -> None:
    """Release the histograms that a plan bought; see `PaidCounts.release`.

    Args:
      weight: what a record counts: as much as the shift of tagged columns keeps of such records,
        since real shares of other columns would undo it; None where nothing is shifted.
    """
    from core.privacy.mechanisms.histograms import Histograms  # needs torch, as the fit does

    REVIEW.release(
        table,
        lambda: Histograms.of(codec, shown_columns(codec.domain), weight),
        lambda mechanism, counts, noise_std: ReleasedHistograms(
            n=table.plan.n,
            noise_std=noise_std,
            counts=mechanism.split(counts),
            shifted=weight is not None,
        ),
        artefacts=artefacts,
        on_event=on_event,
    )
