"""What the best attack could find at each share accused wrongly, and what real attacks found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.figures.elements import BLUE, LINE, VERMILION, Dumped, Figure, diagonal, figure, square
from core.message import Message, joined
from core.privacy.accounting.attacker import BestAttack

AT = (*np.geomspace(1e-3, 0.1, 25), *np.linspace(0.12, 1.0, 45))


def attack_figure(bound: BestAttack, tried: Sequence[Dumped]) -> Figure:
    """The bound as a curve over the diagonal of guessing, and a point for each attack.

    Args:
      tried: `core.quality.report.types.Attack`s as dicts; those that chance explains are grey.
    """
    found = [bound.found(share) for share in AT]
    curve = {
        "type": "scatter",
        "mode": "lines",
        "name": Message("best possible attack"),
        "x": [0.0, *AT],
        "y": [bound.found(0.0), *found],
        "line": {"color": BLUE, "width": 2},
        "fill": "tozeroy",
        "fillcolor": "rgba(0,114,178,0.08)",
        "hovertemplate": Message("%{{x:.1%}} accused wrongly: at most %{{y:.1%}} found"),
    }
    placed = [attack for attack in tried if attack.get("found") is not None]
    points = {
        "type": "scatter",
        "mode": "markers",
        "name": Message("attacks on this table"),
        "x": [attack["accused"] for attack in placed],
        "y": [attack["found"] for attack in placed],
        "marker": {"size": 10, "color": [VERMILION if a["exposed"] else LINE for a in placed]},
        "hovertext": [joined([attack["title"]]) for attack in placed],
        "hovertemplate": "%{hovertext}: %{x:.1%}, %{y:.1%}<extra></extra>",
    }
    layout = square(Message("accused wrongly"), Message("found"), low=0.0, high=1.0)
    for axis in ("xaxis", "yaxis"):
        layout[axis]["tickformat"] = ".0%"
    guessing = diagonal(0.0, 1.0) | {"name": Message("guessing")}
    return figure([guessing, curve, *([points] if placed else [])], layout)
