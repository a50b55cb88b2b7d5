"""Statistics that are computed for many sets or places at once are what their definitions say."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.steps.counting.design import SET_SNR_THRESHOLD, Design
from core.models.steps.counting.scales import (
    ColumnScale,
    FineHistograms,
    fine_grids,
)
from core.models.steps.counting.scan import Scan, draw_signs
from core.models.steps.counting.zeros.structural_zeros import BrokenZeros, everywhere
from core.privacy.plan import Budget
from tests.models.tables import coded, scales_of

CODEC, CODES = coded(60, target="ill")
ROWS, MASK = CODES.to("cpu"), torch.linspace(0.1, 0.9, 60, dtype=torch.float64)


def scales() -> tuple[ColumnScale, ...]:
    """Of the small table's columns."""
    histograms = FineHistograms(fine_grids(CODEC, 1.0, 4000))
    release = histograms.statistic(ROWS, torch.ones(60))
    return scales_of(histograms.grids, histograms.split(release), 1e-3)


def test_a_scan_sums_the_products_of_each_sets_signs():
    columns, design = scales(), Design.of(CODEC, 4)
    signs = draw_signs(columns, [s.shares(s.counts) for s in columns], design.signs, seed=3)
    own = torch.stack(
        [pattern[scale.index(ROWS)] for scale, pattern in zip(columns, signs, strict=True)]
    )  # [columns, rows, G]
    products = torch.stack([own[list(some)].prod(dim=0) for sets in design.sets for some in sets])
    state = ROWS.states[:, design.condition]
    sums = [
        (products * (MASK * (state == y))[:, None]).sum(dim=1).t() for y in range(design.classes)
    ]
    assert {len(some) for sets in design.sets for some in sets} == {1, 2, 3, 4}
    statistic = Scan(columns, signs, design).statistic(ROWS, MASK)
    assert torch.allclose(statistic, torch.stack(sums).flatten(), atol=1e-12)


def test_sets_that_noise_hides_are_not_scanned():
    """A parity of all n records, which no set can outdo, would not stand clear of the noise."""
    design = Design.of(CODEC, 4)
    assert design.sizes == 4
    clear = SET_SNR_THRESHOLD * np.sqrt(2.0 * design.signs * design.classes)
    for n, kept in ((100, 2), (1000, None), (2000, None), (10**6, 4)):
        plan = plan_fit(synthesizer("scan_focus"), CODEC.domain, n, Budget(epsilon=1.0, delta=1e-7))
        fewer = design.within_noise(plan)
        assert kept in (None, fewer.sizes)
        for sizes in range(3, 5):
            scan = Scan(scales(), (), dataclasses.replace(design, sizes=sizes))
            noise = plan.phase("scan").noise_multiplier * scan.sensitivity / n
            assert (sizes <= fewer.sizes) == (1.0 / noise**2 >= clear)


def test_a_row_in_k_places_adds_one_over_the_root_of_k_to_each():
    columns = scales()
    places = [everywhere(pair, columns) for pair in ((0, 1), (2, 3), (0, 3))]
    half = np.arange(len(places[0].left)) < len(places[0].left) // 2
    places.append(dataclasses.replace(places[0], left=torch.from_numpy(half)))
    places.append(dataclasses.replace(places[2], right=places[2].right & False))
    inside = torch.stack(
        [
            place.left[columns[place.columns[0]].grid.index(ROWS)]
            & place.right[columns[place.columns[1]].index(ROWS)]
            for place in places
        ]
    ).double()
    assert set(inside.sum(dim=0).tolist()) == {3.0, 4.0}
    statistic = BrokenZeros(columns, tuple(places)).statistic(ROWS, MASK)
    assert torch.allclose(statistic, (inside / inside.sum(dim=0).sqrt()) @ MASK, atol=1e-12)
