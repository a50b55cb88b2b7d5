"""The histograms people outside may see: honest bins, no hidden column, paid with the rest."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding.bins import MAX_LABELS
from core.encoding.codec import Codec
from core.privacy.mechanisms.histograms import Histograms
from core.privacy.plan import Budget
from core.runs.execution.paid_release import ReviewHistograms, shown_columns
from core.runs.request import RunRequest
from core.schema.column import Column, Kind
from core.schema.schema import Domain
from core.services.planning import make_plan
from tests.models.tables import rows, schema

DOMAIN = schema().domain()
CODEC = Codec(DOMAIN)
NAMES = [column.name for column in DOMAIN.modelled]


def test_every_record_lies_in_the_bin_that_pandas_says():
    frame = rows(3000, 4)
    mechanism = Histograms.of(CODEC, NAMES)
    found = mechanism.split(
        mechanism.statistic(CODEC.encode(frame).to("cpu"), torch.ones(3000)).tolist()
    )
    by_name = {one.block.column.name: one for one in mechanism.bins}
    assert all(sum(counts) == 3000 for counts in found.values())
    # a stepped column on a line
    edges = np.array(by_name["age"].edges)
    assert found["age"] == np.histogram(frame["age"], bins=edges)[0].tolist()
    # a heavy tail with an atom at 0 and gaps
    cost, edges = frame["cost"], by_name["cost"].edges
    assert edges[0] == edges[1] == 0.0
    assert found["cost"][0] == (cost == 0).sum()
    assert found["cost"][-1] == cost.isna().sum()
    present = cost.dropna().astype(float).to_numpy()
    rest = present[present > 0]
    expected = np.bincount(
        np.clip(np.searchsorted(edges, rest, side="right") - 1, 0, len(edges) - 2),
        minlength=len(edges) - 1,
    )
    assert found["cost"][1:-1] == expected[1:].tolist()
    # lists
    counted = frame["ward"].value_counts()
    assert found["ward"] == [counted["a"], counted["b"], counted["c"], frame["ward"].isna().sum()]


def test_long_lists_and_constants_have_bins_too():
    labels = tuple(f"v{i:02}" for i in range(MAX_LABELS + 5))
    domain = Domain(
        columns=(
            Column(name="list", kind=Kind.CATEGORY, categories=labels),
            Column(name="one", kind=Kind.NUMBER, low=3, high=3, dtype="float64"),
        )
    )
    codec = Codec(domain)
    mechanism = Histograms.of(codec, ["list", "one"])
    frame = pd.DataFrame({"list": list(labels), "one": 3.0})
    counts = mechanism.statistic(codec.encode(frame).to("cpu"), torch.ones(len(frame)))
    found = mechanism.split(counts.tolist())
    assert found["list"] == [1.0] * MAX_LABELS + [5.0]
    assert found["one"] == [len(frame)]


def test_the_bins_do_not_depend_on_any_row():
    assert Histograms.of(Codec(DOMAIN), NAMES) == Histograms.of(Codec(DOMAIN), NAMES)
    with pytest.raises(ValueError, match="no column"):
        Histograms.of(CODEC, [])


def test_hidden_columns_are_not_shown_and_share_is_of_precision():
    assert shown_columns(DOMAIN) == ["cost", "ill"]
    budget = Budget(epsilon=1.0, delta=1e-5)
    half, tenth = (
        ReviewHistograms(budget, share).phases(DOMAIN, 1, 1.0)[0] for share in (0.4, 0.1)
    )
    assert tenth.noise_multiplier == pytest.approx(2 * half.noise_multiplier)
    with pytest.raises(ValueError, match="share"):
        ReviewHistograms(budget, 0.9).phases(DOMAIN, 1, 1.0)[0]
    hidden = DOMAIN.model_copy(update={"sensitive": {"all": tuple(NAMES)}})
    with pytest.raises(ValueError, match="Every column is hidden"):
        ReviewHistograms(budget, 0.05).phases(hidden, 1, 1.0)[0]


def test_certificates_attempts_and_the_release_are_paid_together():
    more = {"certificate": 0.05, "attempts": 2, "review": 0.1}
    plan = make_plan(schema(), 4000, RunRequest(model="pearl", epsilon=2.0, delta=1e-6, **more))
    names = [phase.name for phase in plan.phases]
    assert "review" in names and sum(name.startswith("certificate") for name in names) == 2
    assert plan.guarantee.epsilon <= 2.0
    alone = make_plan(
        schema(), 4000, RunRequest(model="pearl", epsilon=2.0, delta=1e-6, review=0.1)
    )
    ratio = plan.phase("review").noise_multiplier / alone.phase("review").noise_multiplier
    assert ratio == pytest.approx(math.sqrt(2))  # charged once an attempt
