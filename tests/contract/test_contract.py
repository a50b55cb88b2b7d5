"""What every registered model must do; one body for all of them."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest

from core.models.events import FitCancelled, FitPaused, Wish
from core.models.planning import plan_fit
from core.models.registry import cards, load_fitted, synthesizer
from core.models.shared import training_loop as conduct
from core.models.synthesizer import FitContext
from core.privacy.accounting.accountant import guarantee
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.noise import DeterministicNoise
from core.privacy.meter import Meter
from core.privacy.plan import Budget
from tests.models.tables import Watcher, coded, domain, door, rows

SMALL_GAME = {
    "critic_steps": 2, "batch": 64, "fakes": 32, "hidden": 16, "latent": 4, "critic_hidden": 16,
    "snapshots": 3, "rate": 1e-2,
}  # fmt: skip
QUICK: dict[str, dict[str, object]] = {
    "pearl": {"steps": 40, "frequencies": 200, "batch": 64, "hidden": 16, "latent": 4},
    "dp_gan": {"steps": 20, **SMALL_GAME},
    "dp_auto_gan": {"steps": 20, "encoder_steps": 20, "encoder_hidden": 16, "noise": 4,
                    **SMALL_GAME},
    "p3gm": {"steps": 30, "batch": 64, "hidden": 16, "em_steps": 3, "dimensions": 4},
    "pgb": {"steps": 20, "rounds": 20, "candidates": 16, **SMALL_GAME},
    "ppem": {"marginal_steps": 15, "steps": 20, "energy_steps": 2, "batch": 64, "fakes": 32,
             "hidden": 16, "latent": 4, "energy_hidden": 16, "rate": 1e-2},
}  # fmt: skip
# long enough to be stopped in the middle, when the clock runs `TICK` seconds at every look
LONG: dict[str, dict[str, object]] = {
    "pearl": {"steps": 60},
    "dp_gan": {"steps": 60},
    "dp_auto_gan": {"steps": 60},
    "p3gm": {"steps": 60},
    "ppem": {"steps": 60},
    "pgb": {"rounds": 60},
}
TICK = 0.3
# enough to learn the small table when there is no noise
LEARN: dict[str, dict[str, object]] = {
    "pearl": {"steps": 600, "frequencies": 2000, "batch": 256, "hidden": 64},
    "dp_gan": {"steps": 1200, "critic_steps": 10, "batch": 256, "fakes": 128, "hidden": 64,
               "latent": 16, "critic_hidden": 64, "rate": 3e-4, "box": 1.0},
    "pgb": {"steps": 600, "critic_steps": 10, "batch": 256, "fakes": 128, "hidden": 64,
            "latent": 16, "critic_hidden": 64, "rate": 3e-4, "box": 1.0, "rounds": 200,
            "snapshots": 16, "candidates": 256},
    "dp_auto_gan": {"steps": 700, "critic_steps": 10, "batch": 256, "fakes": 128, "hidden": 64,
                    "noise": 16, "critic_hidden": 64, "rate": 3e-4, "box": 1.0, "latent": 6,
                    "encoder_steps": 2000, "encoder_hidden": 32},
    "p3gm": {"steps": 2000, "batch": 256, "hidden": 64, "dimensions": 8, "weight": 0.3},
    "ppem": {"marginal_steps": 600, "steps": 1200, "energy_steps": 5, "batch": 128, "fakes": 128,
             "hidden": 64, "latent": 16, "energy_hidden": 64, "penalty": 0.0},
}  # fmt: skip
# how near the learnt table must come: years between the ill and the well, shares, spread of costs
NEAR = {
    "pearl": (5, 0.04, 0.25),
    "p3gm": (10, 0.1, 0.5),
    "dp_gan": (14, 0.15, 0.5),
    "dp_auto_gan": (16, 0.2, 0.5),
    "ppem": (14, 0.15, 0.6),
    "pgb": (14, 0.15, 0.5),
}
IDS = [card.id for card in cards()]
N = 400


def quick_plan(model: str, epsilon: float = 1.0, target: str | None = "ill"):
    budget = Budget(epsilon=epsilon, delta=1e-5)
    return plan_fit(synthesizer(model), domain(target), N, budget, QUICK[model])


@pytest.mark.parametrize("model", IDS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_plan_meets_the_budget_and_uses_it(model, epsilon):
    plan = quick_plan(model, epsilon)
    assert plan.guarantee.epsilon <= epsilon
    assert plan.guarantee.epsilon > 0.98 * epsilon  # nothing is wasted
    assert plan.guarantee.epsilon_replace >= plan.guarantee.epsilon
    assert type(plan).model_validate_json(plan.model_dump_json()) == plan


@pytest.mark.parametrize("model", IDS)
def test_plan_refuses_a_delta_that_permits_leaking_a_record(model):
    with pytest.raises(ValueError, match="1/n"):
        plan_fit(synthesizer(model), domain(), N, Budget(epsilon=1.0, delta=1 / N))


@pytest.mark.parametrize("model", IDS)
def test_unknown_settings_are_refused(model):
    with pytest.raises(ValueError, match="nonsense"):
        plan_fit(synthesizer(model), domain(), N, Budget(epsilon=1, delta=1e-5), {"nonsense": 1})


@pytest.mark.parametrize("model", IDS)
@pytest.mark.parametrize("target", ["ill", "age", None])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_fit_executes_its_plan_and_writes_the_inputs_columns(model, target, epsilon, tmp_path):
    plan = quick_plan(model, epsilon, target)
    table = door(plan, target=target)
    watcher = Watcher()
    fitted = synthesizer(model).fit(
        table, plan, FitContext(observe=watcher, folder=tmp_path, seed=1)
    )
    assert table.meter.executed == plan.phases
    claim = guarantee(table.meter.executed, plan.budget.delta)
    assert claim.epsilon == plan.guarantee.epsilon
    assert math.isinf(claim.epsilon) == math.isinf(epsilon)
    assert {"phase", "progress", "metrics", "preview"} <= watcher.kinds()
    for event in watcher.events:
        json.dumps(event.data, allow_nan=False)
    real, synthetic = rows(N), fitted.sample(300, seed=2)
    assert list(synthetic.columns) == list(real.columns)
    assert (synthetic.dtypes == real.dtypes).all()
    assert len(synthetic) == 300
    assert synthetic["age"].between(0, 99).all()
    assert synthetic["ward"].dropna().isin(["a", "b", "c"]).all()
    assert not synthetic["key"].isin(real["key"]).any()


@pytest.mark.parametrize("model", IDS)
def test_saved_model_samples_the_same_rows(model, tmp_path):
    plan = quick_plan(model)
    fitted = synthesizer(model).fit(
        door(plan), plan, FitContext(observe=Watcher(), folder=tmp_path / "c")
    )
    fitted.save(tmp_path / "model")
    again = load_fitted(model, tmp_path / "model")
    pd.testing.assert_frame_equal(fitted.sample(50, seed=5), again.sample(50, seed=5))
    names = {path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert names <= {".safetensors", ".json"}  # nothing that runs code when it is read


@pytest.fixture
def fast_clock(monkeypatch):
    """Events and checkpoints come by the clock; here it runs with the steps alone."""
    looks = itertools.count()
    monkeypatch.setattr(conduct.time, "monotonic", lambda: TICK * next(looks))


@pytest.mark.parametrize("model", IDS)
@pytest.mark.parametrize(("wish", "stop"), [(Wish.PAUSE, FitPaused), (Wish.CANCEL, FitCancelled)])
def test_resumed_fit_releases_nothing_twice_and_claims_the_same(
    model, wish, stop, tmp_path, fast_clock
):
    settings = {**QUICK[model], **LONG[model]}
    last = synthesizer(model).card.stages[-1].name
    plan = plan_fit(synthesizer(model), domain(), N, Budget(epsilon=1, delta=1e-5), settings)
    table = door(plan)
    with pytest.raises(stop):
        watcher = Watcher(wish, phase=last, step=1)
        synthesizer(model).fit(table, plan, FitContext(observe=watcher, folder=tmp_path, seed=1))
    meter = Meter.from_json(table.meter.to_json(), plan)
    codec, codes = coded(N)
    later = PrivateTable(codes, codec.domain, plan, meter=meter)
    watcher = Watcher()
    fitted = synthesizer(model).fit(
        later, plan, FitContext(observe=watcher, folder=tmp_path, seed=1, resume=True)
    )
    assert later.meter.executed == plan.phases  # not one release more
    first = next(e for e in watcher.events if e.kind == "progress")
    assert first.data["phase"] == last and first.data["step"] > 1
    assert len(fitted.sample(10)) == 10


class Killed(BaseException):
    """The process ends here: nothing is written after it."""


@pytest.mark.parametrize("model", IDS)
@pytest.mark.parametrize("at", [0, 10, 40])
def test_a_fit_goes_on_after_a_kill_and_claims_what_an_undisturbed_one_does(
    model, at, tmp_path, fast_clock
):
    """Only what lies on disk survives: the checkpoint and the meter as it was written down."""
    settings = {**QUICK[model], **LONG[model]}
    plan = plan_fit(synthesizer(model), domain(), N, Budget(epsilon=1, delta=1e-5), settings)
    last = synthesizer(model).card.stages[-1].name
    disk: list[str] = []
    codec, codes = coded(N)
    meter = Meter(plan, on_charge=lambda m: disk.append(m.to_json()))
    table = PrivateTable(codes, codec.domain, plan, meter=meter)
    watcher = Watcher()

    def observe(event):
        wish = watcher(event)
        if event.kind == "progress" and event.data["phase"] == last and event.data["step"] > at:
            raise Killed
        return wish

    with pytest.raises(Killed):
        synthesizer(model).fit(table, plan, FitContext(observe=observe, folder=tmp_path, seed=1))
    written = Meter.from_json(disk[-1], plan)
    for phase in plan.phases:
        assert meter.runs(phase.name) <= written.runs(phase.name)  # nothing is forgotten
    later = PrivateTable(codes, codec.domain, plan, meter=written)
    fitted = synthesizer(model).fit(
        later, plan, FitContext(observe=Watcher(), folder=tmp_path, seed=1, resume=True)
    )
    claim = guarantee(later.meter.executed, plan.budget.delta)
    assert later.meter.executed == plan.phases
    assert claim.epsilon == plan.guarantee.epsilon
    assert len(fitted.sample(10)) == 10


@pytest.mark.parametrize("model", IDS)
def test_two_fits_with_one_seed_differ_because_noise_never_repeats(model, tmp_path):
    plan = quick_plan(model)
    frames = []
    for name in "ab":
        fitted = synthesizer(model).fit(
            door(plan), plan, FitContext(observe=Watcher(), folder=tmp_path / name, seed=1)
        )
        frames.append(fitted.sample(200, seed=1))
    assert not frames[0].equals(frames[1])


@pytest.mark.parametrize("model", IDS)
def test_learns_the_dependence_without_noise(model, tmp_path):
    settings = {**QUICK[model], **LEARN[model]}
    plan = plan_fit(
        synthesizer(model), domain(), 4000, Budget(epsilon=math.inf, delta=1e-5), settings
    )
    table = door(plan, noise_source=DeterministicNoise(1))  # the same batches each time
    fitted = synthesizer(model).fit(
        table, plan, FitContext(observe=Watcher(), folder=tmp_path, seed=1)
    )
    synthetic, real = fitted.sample(4000, seed=1), rows(4000)
    years, share, spread = NEAR[model]
    gap = [f.groupby("ill")["age"].mean().diff().iloc[-1] for f in (real, synthetic)]
    assert gap[1] == pytest.approx(gap[0], abs=years)  # the ill are 25 years older
    zeros = [(f["cost"] == 0).mean() for f in (real, synthetic)]
    assert zeros[1] == pytest.approx(zeros[0], abs=share)
    gaps = [f["cost"].isna().mean() for f in (real, synthetic)]
    assert gaps[1] == pytest.approx(gaps[0], abs=share)
    tail = [
        np.log(f["cost"].dropna()[f["cost"] > 0].astype(float)).std() for f in (real, synthetic)
    ]
    assert tail[1] == pytest.approx(tail[0], rel=spread)


def test_ids_are_those_of_the_cards():
    assert len(set(IDS)) == len(IDS) and set(QUICK) == set(IDS)
    with pytest.raises(KeyError, match="there are: .*pearl"):
        synthesizer("nobody")
