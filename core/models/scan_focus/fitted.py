"""Scan and focus as a trained model: a mixture, the columns' cells and the relations rows keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.models.events import Interaction
from core.models.scan_focus.plan import ScanFocus
from core.models.shared.counting.design import SumCandidate
from core.models.shared.counting.placing import add_up, placed
from core.models.shared.counting.relations import Determined
from core.models.shared.counting.scales import ColumnScale
from core.models.shared.fitted import FittedGenerator
from core.table.codec import Codec, Codes

__all__ = ["FILE", "fitted_mixture", "fitted_of"]

FILE = "scan_focus.json"  # name of the JSON description


def fitted_mixture(
    codec: Codec,
    settings: dict[str, Any],
    mixture: tuple[Tensor, Tensor],
    scales: Sequence[ColumnScale],
    *,
    follows: Sequence[Determined],
    sums: Sequence[SumCandidate],
    stood_out: Sequence[Interaction] = (),
) -> FittedGenerator:
    """The model of a trained mixture.

    Args:
      codec: of the domain.
      settings: of the model, JSON values.
      mixture: weights [components] and shares [components, cells].
      scales: of all columns.
      follows, sums: what every row is made to keep.
      stood_out: what went together in the scan, for whoever reads the description.
    """
    weights = {"weights": mixture[0].detach().cpu(), "shares": mixture[1].detach().cpu()}
    for i, scale in enumerate(scales):
        if scale.grid.cells:
            weights[f"places.{i}"] = torch.from_numpy(scale.grid.centres)
            weights[f"keys.{i}"] = torch.from_numpy(scale.keys)
    for relation in follows:
        weights[f"cells.{relation.result}"] = relation.cells
    constants = {
        "sizes": [scale.size for scale in scales],
        "lines": [scale.line for scale in scales],
        "widths": [scale.grid.width for scale in scales],
        "follows": [[relation.source, relation.result] for relation in follows],
        "sums": [[one.total, one.left, one.right, one.unit] for one in sums],
        "stood_out": [one.model_dump(mode="json") for one in stood_out],
    }
    return fitted_of(codec, settings, weights, constants)


def fitted_of(
    codec: Codec, settings: dict[str, Any], weights: dict[str, Tensor], constants: dict[str, Any]
) -> FittedGenerator:
    """The model of what is stored.

    Args:
      codec: of the domain.
      settings: of the model, JSON values.
      weights: all tensors that drawing reads, by name; see `fitted_mixture`.
      constants: further JSON values of it.
    """
    return FittedGenerator(
        codec,
        model=ScanFocus.card.id,
        settings=settings,
        weights=weights,
        draw_chunk=lambda rows, random: _draw(codec, weights, constants, rows, random),
        file=FILE,
        constants=constants,
    )


def _draw(
    codec: Codec, weights: dict[str, Tensor], constants: dict[str, Any], rows: int,
    random: torch.Generator,
) -> Codes:  # fmt: skip
    """Records in random order; each component and each of its cells comes up as evenly as can be.

    Draws are stratified: that changes no record's distribution and takes most of the sampling
    error off every count.
    """
    share = weights["weights"].double()
    spread = (torch.arange(rows) + torch.rand(rows, generator=random)) / rows
    component = torch.searchsorted(share.cumsum(0) / share.sum(), spread.double())
    component = component.clamp_max(len(share) - 1)[torch.randperm(rows, generator=random)]
    states = np.zeros((rows, len(codec.blocks)), dtype=np.int32)
    values = np.zeros((rows, codec.numbers), dtype=np.float64)
    parts = torch.split(weights["shares"], constants["sizes"], dim=1)
    cells = [_stratified(part, component, random) for part in parts]
    for source, result in constants["follows"]:
        cells[result] = weights[f"cells.{result}"][cells[source]]
    for i, block in enumerate(codec.blocks):
        cell = cells[i].numpy()
        if block.number is None:
            states[:, i] = cell
            continue
        states[:, i], values[:, block.number] = placed(
            cell,
            line=constants["lines"][i],
            keys=weights[f"keys.{i}"].numpy(),
            places=weights[f"places.{i}"].numpy(),
            width=constants["widths"][i],
            random=random,
        )
    codes = Codes(states, values)
    for total, left, right, unit in constants["sums"]:
        add_up(codec, codes, SumCandidate(total, left, right, unit))
    return codes


def _stratified(shares: Tensor, component: Tensor, random: torch.Generator) -> Tensor:
    """A cell for each row by its component's shares, spread evenly over the component's rows."""
    rows = len(component)
    shuffled = torch.randperm(rows, generator=random)
    order = shuffled[torch.sort(component[shuffled], stable=True).indices]
    count = torch.bincount(component, minlength=len(shares))
    first = count.cumsum(0) - count
    rank = torch.empty(rows, dtype=torch.float64)
    rank[order] = torch.arange(rows, dtype=torch.float64)
    rank -= first[component]
    uniform = (rank + torch.rand(rows, generator=random).double()) / count[component]
    cumulative = shares.double().cumsum(dim=1)[component]  # [rows, cells]
    goal = (uniform * cumulative[:, -1])[:, None]
    return torch.searchsorted(cumulative, goal)[:, 0].clamp_max(shares.shape[1] - 1)
