"""The review budget: histograms of real columns for people outside, as a paid phase of a plan.

Where tagged columns are hidden, every record counts as much as the shift keeps of such records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from core.encoding.codec import Codec
from core.message import Message
from core.quality.report.types import ReleasedHistograms
from core.runs.execution.paid_release import PaidCounts
from core.schema.schema import Domain

if TYPE_CHECKING:
    from core.privacy.guarded import PrivateTable
    from core.privacy.mechanisms.histograms import Weight


class ReviewHistograms(PaidCounts):
    """See the module."""

    name = "review"
    title = Message("Pictures for people outside")
    label = Message("review budget must be a share")
    purpose = Message("show to people outside")
    counting = Message("Counting rows for people outside, with noise")
    artefact = "overlay.json"

    def what(self, names: Sequence[str], domain: Domain) -> str:
        """See `PaidCounts`."""
        return Message(
            "Histograms of {names} columns, all at once, with Gaussian noise.", names=len(names)
        )

    def mechanism(self, codec: Codec, names: Sequence[str], weight: Weight | None) -> Any:
        """See `PaidCounts`."""
        from core.privacy.mechanisms.histograms import Histograms  # needs torch, as the fit does

        return Histograms.of(codec, names, weight)

    def value(
        self, mechanism: Any, counts: list[float], noise_std: float, table: PrivateTable
    ) -> ReleasedHistograms:
        """See `PaidCounts`."""
        return ReleasedHistograms(
            n=table.n,
            noise_std=noise_std,
            counts=mechanism.split(counts),
            shifted=mechanism.weight is not None,
        )
