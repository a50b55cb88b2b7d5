"""Scan and focus as a trained model: a mixture, the columns' cells and the relations rows keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codec, Codes
from core.models.base_sampler import FittedGenerator
from core.models.scan_focus.balancing import balanced, even_totals
from core.models.scan_focus.conditionals import MixtureConditionals
from core.models.scan_focus.events_shown import never_missing, without_far_numbers
from core.models.scan_focus.mending import mended, stored_zeros
from core.models.scan_focus.plan import ScanFocus, ScanFocusSettings
from core.models.scan_focus.population import draw_population
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.placing import Placing
from core.models.steps.counting.relations import determined
from core.models.steps.counting.releases import Releases
from core.models.steps.counting.within_cells import dependences
from core.models.steps.counting.zeros.structural_zeros import StructuralZero

FILE = "scan_focus.json"  # name of the JSON description
ROWS_AT_ONCE = 65_536  # the more, the nearer their counts can come


def fitted_mixture(
    known: Releases,
    counted: Sequence[PairTarget],
    settings: ScanFocusSettings,
    mixture: tuple[Tensor, Tensor],
    hidden: Mapping[str, Tensor],
) -> FittedGenerator:
    """The model of a trained mixture.

    Args:
      mixture: weights [components] and shares [components, cells].
      hidden: see `unseen`; empty of a preview.
    """
    scales = known.scales
    follows = determined(counted, scales, known.shares, known.design.condition)
    found, barred = known.zeros, tuple[StructuralZero, ...]()
    if known.codec.domain.roles:  # walks draw what may be, and mend nothing
        of_rules = chain.from_iterable(one.zeros(scales) for one in follows)
        found, barred = (), (*known.zeros, *of_rules)
    shares = without_far_numbers(known, mixture[1].detach().cpu())
    mixed = {"weights": mixture[0].detach().cpu(), "shares": shares}
    parts = torch.split(mixed["shares"], [scale.size for scale in scales], dim=1)
    lines = [scale.line for scale in scales]
    together = dependences(mixed["weights"], parts, lines, [pair.columns for pair in counted])
    kept = (known.compared, known.differences)
    placing = Placing.of(scales, follows, known.totals, found, together, *kept)
    constants = {
        "sizes": [scale.size for scale in scales],
        "group": known.group,
        "never_missing": never_missing(known),
        "limits": [[known.codec.blocks[i].column.name for i in limit] for limit in known.limits],
        **placing.values,
        "significant_sets": [one.model_dump(mode="json") for one in known.significant_sets],
    }
    zeros = {"zeros": stored_zeros(found, scales), "barred": stored_zeros(barred, scales)}
    weights = {**mixed, **zeros, **placing.tensors, **hidden}
    return fitted_of(known.codec, settings.model_dump(), weights, constants)


def fitted_of(
    codec: Codec, settings: dict[str, Any], weights: dict[str, Tensor], constants: dict[str, Any]
) -> FittedGenerator:
    """The model of what is stored.

    Args:
      weights: all tensors that drawing reads, by name; see `fitted_mixture`.
    """
    placing, sizes = Placing.stored(weights, constants), constants["sizes"]

    def draw_chunk(rows: int, random: torch.Generator) -> Codes:
        cells = _cells(weights, sizes, constants["group"], rows, random)
        return placing.codes(codec, cells, random)

    return FittedGenerator(
        codec,
        model=ScanFocus.card.id,
        settings=settings,
        weights=weights,
        draw_chunk=draw_chunk,
        draw_population=partial(draw_population, codec, weights, constants),
        file=FILE,
        rows_at_once=ROWS_AT_ONCE,
        constants=constants,
        conditionals=lambda: MixtureConditionals(
            codec,
            placing,
            weights,
            sizes,
            frozenset(constants["never_missing"]),
            tuple((until, wait) for until, wait in constants["limits"]),
        ),
        placing=placing,
    )


def _cells(
    weights: dict[str, Tensor],
    sizes: list[int],
    group: int | None,
    rows: int,
    random: torch.Generator,
) -> list[NDArray[np.int64]]:
    """Cells of every column, int64 [rows], in random order.

    Draws are stratified, so that each component and each of its cells comes up as evenly as can be,
    and balanced: that hardly changes a record's distribution and takes the sampling error off
    counts of columns, and some off those of pairs.
    """
    share = weights["weights"].double()
    spread = (torch.arange(rows) + torch.rand(rows, generator=random)) / rows
    component = torch.searchsorted(share.cumsum(0) / share.sum(), spread.double())
    component = component.clamp_max(len(share) - 1)[torch.randperm(rows, generator=random)]
    parts = torch.split(weights["shares"], sizes, dim=1)
    drawn = torch.stack([_stratified(part, component, random) for part in parts])
    drawn = even_totals(drawn, component, weights["weights"], parts, random)
    drawn = balanced(drawn, component, weights["weights"], parts, group, random)
    return list(mended(drawn, component, parts, weights["zeros"], random).numpy())


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
    cumulative = shares.double().cumsum(dim=1)
    cumulative = cumulative / cumulative[:, -1:] + torch.arange(len(shares))[:, None]
    cell = torch.searchsorted(cumulative.flatten(), uniform + component)
    return (cell - component * shares.shape[1]).clamp(0, shares.shape[1] - 1)
