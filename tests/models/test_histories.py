"""Histories that are drawn event by event, from a small trained mixture."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records
from core.encoding.windows import CountBins
from core.models import histories, in_parts
from core.models.histories import numbers_of
from core.models.in_parts import sampled
from core.models.layout_rows import laid_out
from core.models.planning import plan_fit
from core.models.registry import load_fitted, synthesizer
from core.models.saved_model import LAYOUT, SavedModel
from core.models.step import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget
from tests.histories import MOST, schema, visits
from tests.models.tables import Watcher

pytestmark = pytest.mark.slow
PEOPLE = 1500
QUICK = {
    "steps": 300, "members": 2, "trainings": 1, "components": 60, "hidden": 32,
    "preliminary_steps": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> SavedModel:
    declared = schema()
    layout = Layout(declared.domain())
    codes, people = encoded_records(visits(PEOPLE), layout, declared.person)
    budget = Budget(epsilon=50.0, delta=1e-5)
    method = synthesizer("scan_focus")
    plan = plan_fit(method, layout.domain, PEOPLE, budget, QUICK, unit=declared.person)
    table = PrivateTable(codes, layout.domain, plan, people=people)
    folder = tmp_path_factory.mktemp("fit")
    fitted = method.fit(table, plan, FitContext(on_event=Watcher(), folder=folder, seed=1))
    return laid_out(SavedModel.of(fitted), layout)


def follows(table: pd.DataFrame) -> float:
    """How often "b" comes after "a"; always in the real table."""
    events = table[table["key"].notna()]
    after = events.groupby("who")["kind"].shift(-1)
    return float((after == "b")[(events["kind"] == "a") & after.notna()].mean())


def test_people_have_their_events_in_order(model: SavedModel) -> None:
    table = model.sample(PEOPLE, 3)
    assert table["who"].nunique() == PEOPLE
    events = table[table["key"].notna()]
    assert (events["key"] == events["who"]).all() and events.notna().all().all()
    assert (events.groupby("who")["day"].diff().dropna() >= 0).all()
    nobody = table[table["key"].isna()]
    assert nobody["who"].is_unique and not nobody["who"].isin(events["who"]).any()
    assert nobody[["day", "kind"]].isna().all().all() and nobody["sex"].notna().all()
    real = visits(PEOPLE)
    real = real[real["key"].notna()]
    for counted in (1, 2, 3, MOST):
        wanted, made = (
            float((rows["who"].value_counts().clip(upper=MOST) == counted).sum()) / PEOPLE
            for rows in (real, events)
        )
        assert made == pytest.approx(wanted, abs=0.03)
    assert follows(table) > 0.9


def test_walks_that_forget_the_event_before_are_caught(
    model: SavedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = histories.NextEvent.of

    def forgetful(mixture, windows, missing):
        made = honest(mixture, windows, missing)
        known = [name for name in made.known if not name.startswith("now")]
        return dataclasses.replace(made, known=known, twins={})

    monkeypatch.setattr(histories.NextEvent, "of", forgetful)
    plain = laid_out(model.without(LAYOUT), Layout(schema().domain()))
    assert follows(plain.sample(PEOPLE, 3)) < 0.7


def test_saved_histories_come_again(model: SavedModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    again = load_fitted("scan_focus", tmp_path)
    pd.testing.assert_frame_equal(again.sample(200, 5), model.sample(200, 5))
    assert not model.sample(200, 6).equals(model.sample(200, 5))


def test_many_people_keep_keys_of_their_own(
    model: SavedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_parts, "PART_PEOPLE", 40)
    table = sampled(model, 100, 5)
    assert table["who"].nunique() == 100
    events = table[table["key"].notna()]
    assert (events["key"] == events["who"]).all()
    assert (events.groupby("who").size() <= MOST).all()
    assert 0.1 < 1.0 - events["who"].nunique() / 100 < 0.35


def test_labels_of_many_numbers_give_some_of_each() -> None:
    bins = CountBins.of(0, 100)
    states = np.repeat(np.arange(len(bins.bins)), 500).astype(np.int32)
    numbers = numbers_of(states, bins, torch.Generator().manual_seed(1))
    for state, (first, last) in enumerate(bins.bins):
        own = numbers[states == state]
        assert (own.min(), own.max()) == (first, last)
