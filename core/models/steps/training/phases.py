"""Private phases that several models plan; needs no torch."""

from __future__ import annotations

from core.message import Message
from core.models.card import Chart
from core.privacy.accounting.scale_search import noise_for_share
from core.privacy.plan import Phase

CRITIC = "critic"  # name of a GAN's private phase, and of its critic among networks
CLIPPED = Chart(
    title="Records whose influence was limited",
    caption="Share of the real records in a batch whose gradients were clipped. The share is "
    "released with noise. High values, up to 100%, are normal.",
    unit="% of records",
    series=("records clipped, %",),
)


def gradient_phase(
    name: str,
    title: str,
    *,
    scale: float,
    n: int,
    batch: int,
    count: int,
    share: float = 1.0,
    of: str = "",
) -> Phase:
    """DP-SGD on random batches, as a phase of a plan.

    Args:
      scale: of all noise, ≥ 0.
      batch: records a step expects, ≥ 1; all of them at most.
      share: of the budget, in (0, 1].
      of: what the gradients are of, as in " of a critic"; or nothing.
    """
    rate = min(1.0, batch / n)
    return Phase(
        name=name,
        title=title,
        what=Message(
            "Gradients{of} on random batches of about {n:,} records. Each record's "
            "gradient is clipped, and Gaussian noise is added to every sum.",
            of=of,
            n=min(batch, n),
        ),
        share=share,
        noise_multiplier=noise_for_share(scale, share, count=count, sampling_rate=rate),
        count=count,
        sampling_rate=rate,
    )
