"""Replicas hold the mechanism's noise and the sample's chance, and nothing of the real rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.inference import refitting
from core.inference.refitting import Refitting
from core.inference.replicas import Replica, no_replicas, replicas_of, write_replica
from core.models.events import FitEvent, Signal
from core.models.planning import plan_fit
from core.models.registry import cards, synthesizer
from core.models.saved_model import SavedModel
from core.models.step import FitContext
from core.privacy.plan import Budget, Plan, Protection
from core.runs.storage.artefacts import LocalArtefacts
from core.schema.person import Person
from tests.models.tables import door, schema

pytestmark = pytest.mark.slow

ROWS, COUNT = 600, 12
SETTINGS = {
    "scan_focus": {"steps": 60, "preliminary_steps": 20, "members": 2, "components": 20,
                   "hidden": 16},
    "pearl": {"steps": 80, "frequencies": 200, "batch": 64, "hidden": 16},
}  # fmt: skip


def go_on(event: FitEvent) -> Signal:
    return Signal.GO_ON


def planned(model: str, epsilon: float = 0.5) -> Plan:
    budget = Budget(epsilon=epsilon, delta=1e-6)
    return plan_fit(synthesizer(model), schema().domain(), ROWS, budget, SETTINGS[model])


@pytest.fixture(scope="module", params=sorted(SETTINGS))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Refitting:
    model, plan = synthesizer(request.param), planned(request.param)
    context = FitContext(on_event=go_on, folder=tmp_path_factory.mktemp("fit"), seed=1)
    fitted = SavedModel.of(model.fit(door(plan), plan, context))
    return Refitting(model=model, fitted=fitted, plan=plan, schema=schema(), rows=ROWS)


def several(made: Refitting, seeds: Sequence[int] = range(COUNT)) -> list[Replica]:
    return [made.replica(seed, go_on) for seed in seeds]


def ill(table: pd.DataFrame) -> float:
    return float(table["ill"].mean())


class NoNoise:
    """A broken twin: a generator of zeros."""

    private = False

    def generator(self) -> np.random.Generator:
        return self  # type: ignore[return-value]

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.zeros(shape)


class Even(SavedModel):
    """A broken twin: sources are drawn as evenly as synthetic tables are."""

    def population(self) -> SavedModel:
        return self


def noise(replicas: Sequence[Replica]) -> float:
    """Spread of the error of a figure that noise alone causes in the main: geometric mean of four.

    One figure's spread over a dozen replicas is itself off by a third now and then.
    """
    errors = [figures(one.drawn) - figures(one.source) for one in replicas]
    return float(np.exp(np.log(np.std(errors, axis=0, ddof=1) + 1e-6).mean()))


def figures(table: pd.DataFrame) -> np.ndarray:
    """A share, a label's share, a share of missing cells, a mean: float64 [4]."""
    ward = table["ward"]
    shares = [ill(table), (ward == "a").mean(), ward.isna().mean(), table["age"].mean()]
    return np.array(shares, dtype=np.float64)


def test_replicas_hold_noise(made: Refitting) -> None:
    silent = several(replace(made, noise=NoNoise()))
    assert noise(several(made)) > 1.5 * noise(silent)


def test_replicas_hold_sampling(made: Refitting, monkeypatch: pytest.MonkeyPatch) -> None:
    if made.model.card.id != "scan_focus":
        pytest.skip("draws of this model are independent anyway")
    share = np.mean([ill(made.fitted.sample(ROWS, seed)) for seed in range(10)])
    chance = np.sqrt(share * (1 - share) / ROWS)

    def spread(one: Refitting) -> float:
        drawn = [ill(one.fitted.population().sample(ROWS, seed)) for seed in range(40)]
        return float(np.std(drawn, ddof=1) / chance)

    assert spread(made) > 1.2  # sources differ by what noise leaves possible too
    monkeypatch.delitem(made.fitted.base.weights, "unseen.mean")
    assert 0.7 < spread(made) < 1.3
    even = Even(made.fitted.base, made.fitted.transforms)
    assert spread(replace(made, fitted=even)) < 0.5


def differ(replicas: Sequence[Replica]) -> bool:
    return all(
        not one.source.equals(two.source) and not one.drawn.equals(two.drawn)
        for one, two in zip(replicas, replicas[1:], strict=False)
    )


def test_replicas_differ_and_those_of_one_seed_do_not(made: Refitting) -> None:
    assert differ(several(made, range(3)))
    assert not differ(several(made, [5, 5, 5]))


def test_replicas_have_the_table_s_columns(made: Refitting) -> None:
    one = made.replica(1, go_on)
    published = made.fitted.sample(ROWS, 0)
    for table in (one.source, one.drawn):
        assert table.dtypes.equals(published.dtypes) and len(table) == ROWS


def test_a_replica_of_many_rows_is_smaller_with_the_same_noise(
    made: Refitting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refitting, "MOST_ROWS", ROWS // 4)
    smaller = made.plan_for(ROWS // 4, 1 / 4)
    assert smaller.n == ROWS // 4
    for before, after in zip(made.plan.phases, smaller.phases, strict=True):
        assert after.noise_multiplier == pytest.approx(before.noise_multiplier / 4)
    one = made.replica(1, go_on)
    assert len(one.source) == len(one.drawn) == ROWS // 4


def test_what_is_kept_is_read_again(made: Refitting, tmp_path: Path) -> None:
    files, one = LocalArtefacts(tmp_path), made.replica(1, go_on)
    assert replicas_of(files) == ()
    write_replica(files, 0, one)
    (again,) = replicas_of(files)
    pd.testing.assert_frame_equal(again.source, one.source)
    pd.testing.assert_frame_equal(again.drawn, one.drawn)
    (few,) = replicas_of(files, ["age"])
    assert list(few.drawn) == ["age"]


def test_who_has_no_replicas_says_so() -> None:
    with_them = {card.id for card in cards() if card.replicas}
    assert with_them == set(SETTINGS)
    plan = planned("pearl")
    assert no_replicas(plan) is None
    assert "takes too long" in str(no_replicas(plan.model_copy(update={"model": "p3gm"})))
    hidden = Protection(groups={"hidden": ("age",)})
    assert "on purpose" in str(no_replicas(plan.model_copy(update={"protection": hidden})))


@pytest.mark.parametrize(("rows_each", "most"), [(3, 3), (2, 10)])
def test_a_source_of_people_has_as_many_as_the_run(rows_each, most):
    """A run of people counts people, and its model draws rows."""

    def sample(rows: int, seed: int) -> pd.DataFrame:
        return pd.DataFrame({"who": [f"p{i // rows_each}" for i in range(rows)]})

    fitted = SimpleNamespace(population=lambda: SimpleNamespace(sample=sample))
    people = SimpleNamespace(person=Person(columns=("who",), rows=most))
    made: Any = SimpleNamespace(fitted=fitted, schema=people)
    source = Refitting._source(made, 50, 1)
    assert source["who"].nunique() == 50 and len(source) >= 50 * rows_each - 1
