"""The attack that fits a model again: copies are found, fresh rows and few fits say nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from core.quality.aligned_tables import Features
from core.quality.metrics.attacks.disclosure import attacks
from core.quality.metrics.attacks.trained import FEWEST, Refits
from tests.quality.conftest import make

pytestmark = pytest.mark.slow
Release = Callable[[pd.DataFrame], pd.DataFrame]


def half_copied(rows: pd.DataFrame) -> pd.DataFrame:
    """A model that releases half of what it learns from, among fresh rows."""
    return pd.concat([rows.sample(frac=0.5, random_state=1), make(len(rows), 9)])


def tried(schema, train, holdout, synthetic, release: Release, seconds: float = 60.0):
    both = pd.concat([train, holdout], ignore_index=True)
    heard: list[np.ndarray] = []

    def fitted(index: np.ndarray) -> pd.DataFrame:
        heard.append(index)
        assert len(index) == len(both) // 2 == len(np.unique(index))
        return release(both.iloc[index])

    _, tables = Features.fit(schema, train, holdout, synthetic)
    refits = Refits(fitted, seconds if seconds < 1 else 1e9)
    return {one.key: one for one in attacks(*tables, target="job", refits=refits)}, heard


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.quality.metrics.attacks.trained.MOST", FEWEST + 2)


@pytest.mark.usefixtures("few")
def test_refitting_finds_a_model_that_copies(schema):
    train, holdout = make(600, 1), make(600, 2)
    found, heard = tried(schema, train, holdout, half_copied(train), half_copied)
    assert found["refitted"].exposed and found["refitted"].value > 0.6
    assert len(heard) == FEWEST + 2 and any(index.max() >= len(train) for index in heard)


@pytest.mark.usefixtures("few")
def test_fresh_rows_are_not_accused_by_refitting(schema):
    found, _ = tried(schema, make(600, 1), make(600, 2), make(600, 3), half_copied)
    assert not any(attack.exposed for attack in found.values())


def test_too_short_a_time_tries_no_refitting(schema):
    found, heard = tried(schema, make(90, 1), make(90, 2), make(90, 3), half_copied, 1e-9)
    assert "refitted" not in found and len(heard) < FEWEST
