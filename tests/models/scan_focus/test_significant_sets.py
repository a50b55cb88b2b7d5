"""What a scan tells of columns that go together: parities are named, noise and tags are not."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.encoding.codec import Codec
from core.models.base_sampler import read_generator
from core.models.events import FitEvent, PhaseStarted, Signal, SignificantSets
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.step import FitContext
from core.models.steps.counting.scan import normal_score
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget, Protection
from core.schema.column import Column, Kind
from core.schema.schema import Schema
from tests.privacy.deterministic_noise import DeterministicNoise

pytestmark = pytest.mark.slow

N = 6_000
SETTINGS = {"steps": 10, "preliminary_steps": 40, "components": 64, "hidden": 16, "latent": 4}
FLAGS = ("a", "b", "c", "d", "e", "twin")


@dataclass
class Ear:
    heard: list[SignificantSets] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)

    def __call__(self, event: FitEvent) -> Signal:
        if isinstance(event, PhaseStarted):
            self.phases.append(event.data["name"])
        if isinstance(event, SignificantSets):
            self.heard.append(event)
        return Signal.GO_ON


def fit(folder: Path, *, parity: bool, epsilon: float = 2.0, tagged: str = "",
        most_together: int = 4) -> Ear:  # fmt: skip
    """A table where `twin` follows from `e`, and, if asked, `class` is the parity of a, b and c."""
    rng = np.random.default_rng(0)
    cells = {name: rng.integers(0, 2, N) for name in FLAGS}
    cells["twin"] = cells["e"] ^ (rng.random(N) < 0.1)
    other = cells["a"] ^ cells["b"] ^ cells["c"] if parity else rng.integers(0, 2, N)
    cells["class"] = other ^ (rng.random(N) < 0.05)
    budget = Budget(epsilon=epsilon, delta=1e-5)
    return fit_flags(folder, cells, budget, tagged=tagged, most_together=most_together)


def fit_flags(folder: Path, cells: dict[str, Any], budget: Budget, *, tagged: str = "",
              most_together: int = 4, seed: int = 3) -> Ear:  # fmt: skip
    """A fit of columns of zeros and ones, `class` the target where there is one."""
    columns = tuple(Column(name=name, kind=Kind.CATEGORY, categories=("0", "1")) for name in cells)
    codec = Codec(Schema(columns=columns, target="class" if "class" in cells else None).domain())
    rows = pd.DataFrame({name: values.astype(int).astype(str) for name, values in cells.items()})
    model, ear = synthesizer("scan_focus"), Ear()
    settings = SETTINGS | {"most_together": most_together}
    plan = plan_fit(model, codec.domain, len(rows), budget, settings)
    if tagged:
        plan = plan.model_copy(update={"protection": Protection(groups={"g": (tagged,)})})
    noise = DeterministicNoise(seed)
    table = PrivateTable(codec.encode(rows), codec.domain, plan, noise_source=noise)
    fitted = model.fit(table, plan, FitContext(on_event=ear, folder=folder, seed=0))
    fitted.save(folder / "model")
    return ear


@pytest.fixture(scope="module")
def parity(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ear, Path]:
    folder = tmp_path_factory.mktemp("parity")
    return fit(folder, parity=True), folder


def sets(ear: Ear) -> dict[frozenset[str], bool]:
    return {frozenset(one.columns): one.target for one in ear.heard[-1].sets}


def test_a_parity_and_a_twin_are_named_and_nothing_else(parity: tuple[Ear, Path]) -> None:
    told = sets(parity[0])
    triple, twins = frozenset("abc"), frozenset({"e", "twin"})
    assert told[triple] and not told[twins]  # only the parity says anything of the class
    pairs = {one for one in told if len(one) == 2}
    assert pairs == {twins} and all(triple <= one for one in told if len(one) > 2)


def test_without_a_parity_no_larger_set_is_named(tmp_path: Path) -> None:
    assert set(sets(fit(tmp_path, parity=False))) == {frozenset({"e", "twin"})}


@pytest.mark.parametrize("target", [False, True])
def test_columns_that_are_mostly_one_value_stand_out_of_nothing(
    target: bool, tmp_path: Path
) -> None:
    """What is expected of a pair is as noisy as the columns' own means, which are far from zero."""
    rng = np.random.default_rng(1)
    cells = {f"rare {i}": rng.random(20_000) < 0.05 for i in range(12)}
    if target:
        cells["class"] = rng.random(20_000) < 0.2
    for seed in range(3):
        ear = fit_flags(
            tmp_path, cells, Budget(epsilon=1.0, delta=1e-6), most_together=2, seed=seed
        )
        assert sets(ear) == {}


def test_luck_is_judged_by_how_many_squares_there_are() -> None:
    """A sum of few squares is often five of its standard deviations above its mean."""
    drawn = np.random.default_rng(0).chisquare(4, 200_000)
    naive = ((drawn - 4.0) / np.sqrt(8.0) > 4.0).mean()
    told = (normal_score(drawn, np.ones((4, 1))) > 4.0).mean()
    assert naive > 1e-3 and told < 1e-4  # of a normal number, 3e-5


def test_a_preliminary_model_is_trained_only_for_larger_sets(
    parity: tuple[Ear, Path], tmp_path: Path
) -> None:
    assert "preliminary" in parity[0].phases
    pairs_alone = fit(tmp_path, parity=True, most_together=2)
    assert "preliminary" not in pairs_alone.phases and "training" in pairs_alone.phases


def test_a_tagged_column_is_in_no_set(tmp_path: Path) -> None:
    told = sets(fit(tmp_path, parity=True, tagged="b"))
    assert frozenset({"e", "twin"}) in told and not any("b" in one for one in told)


def test_of_a_tagged_target_nothing_is_said(tmp_path: Path) -> None:
    told = sets(fit(tmp_path, parity=True, tagged="class"))
    assert told[frozenset({"e", "twin"})] is False and not any(told.values())


def test_without_noise_nothing_is_said_to_be_above_it(tmp_path: Path) -> None:
    assert fit(tmp_path, parity=True, epsilon=float("inf")).heard[-1].sets == ()


def test_the_model_file_says_the_same(parity: tuple[Ear, Path]) -> None:
    ear, folder = parity
    stored = read_generator(folder / "model", "scan_focus.json")[1]["significant_sets"]
    assert stored == ear.heard[-1].data["sets"]
