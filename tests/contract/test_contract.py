"""What every registered model must do; one body for all of them."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest

from core.models.events import FitCancelled, FitPaused, Signal
from core.models.planning import plan_fit
from core.models.registry import load_fitted, synthesizer
from core.models.saved_model import Fitted
from core.models.steps.training import training_loop
from core.privacy.accounting.accountant import guarantee
from core.privacy.guarded import PrivateTable
from core.privacy.meter import Meter
from core.privacy.plan import Budget
from tests.contract.fits import IDS, LEARN_N, QUICK, N, fit, learnt, planned, quick_fit
from tests.models.tables import Watcher, coded, domain, door, rows

pytestmark = pytest.mark.slow

TICK = 1.5  # seconds that pass at every look at the clock: a checkpoint each 14 steps

# how near the learnt table must come: years between the ill and the well, shares, spread of costs
NEAR = {
    "pearl": (5, 0.04, 0.25),
    "scan_focus": (5, 0.04, 0.25),
    "p3gm": (10, 0.1, 0.5),
    "dp_gan": (14, 0.15, 0.5),
    "dp_auto_gan": (16, 0.2, 0.5),
    "ppem": (14, 0.15, 0.6),
    "pgb": (14, 0.15, 0.5),
}


@pytest.mark.parametrize("model", IDS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])  # the accountant's tests have larger ones
def test_plan_meets_the_budget_and_uses_it(model, epsilon):
    plan = planned(model, epsilon)
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
@pytest.mark.parametrize(
    ("epsilon", "target"), [(1.0, "ill"), (1.0, "age"), (1.0, None), (math.inf, None)]
)
def test_fit_executes_its_plan_and_writes_the_inputs_columns(model, target, epsilon):
    done = quick_fit(model, epsilon, target)
    assert done.meter.executed == done.plan.phases
    claim = guarantee(done.meter.executed, done.plan.budget.delta)
    assert claim.epsilon == done.plan.guarantee.epsilon
    assert math.isinf(claim.epsilon) == math.isinf(epsilon)
    assert {"phase", "progress", "metrics", "preview"} <= done.watcher.kinds()
    for event in done.watcher.events:
        json.dumps(event.data, allow_nan=False)
    real, synthetic = rows(N), done.fitted.sample(300, seed=2)
    assert list(synthetic.columns) == list(real.columns)
    assert (synthetic.dtypes == real.dtypes).all()
    assert len(synthetic) == 300
    assert synthetic["age"].between(0, 99).all()
    assert synthetic["ward"].dropna().isin(["a", "b", "c"]).all()
    assert not synthetic["key"].isin(real["key"]).any()


@pytest.mark.parametrize("model", IDS)
def test_saved_model_samples_the_same_rows(model, tmp_path):
    fitted = quick_fit(model).fitted
    fitted.save(tmp_path / "model")
    again = load_fitted(model, tmp_path / "model")
    pd.testing.assert_frame_equal(fitted.sample(50, seed=5), again.sample(50, seed=5))
    names = {path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert names <= {".safetensors", ".json"}  # nothing that runs code when it is read


@pytest.fixture
def fast_clock(monkeypatch):
    """Events and checkpoints come by the clock; here it runs with the steps alone."""
    looks = itertools.count()
    monkeypatch.setattr(training_loop.time, "monotonic", lambda: TICK * next(looks))


@pytest.mark.parametrize("model", IDS)
@pytest.mark.parametrize(
    ("signal", "stop"), [(Signal.PAUSE, FitPaused), (Signal.CANCEL, FitCancelled)]
)
def test_resumed_fit_releases_nothing_twice_and_claims_the_same(
    model, signal, stop, tmp_path, fast_clock
):
    last = synthesizer(model).card.stages[-1].name
    plan = planned(model, long=True)
    table = door(plan)
    with pytest.raises(stop):
        fit(table, plan, tmp_path, Watcher(signal, phase=last, step=1))
    meter = Meter.from_json(table.meter.to_json(), plan)
    codec, codes = coded(N)
    later = PrivateTable(codes, codec.domain, plan, meter=meter)
    watcher = Watcher()
    fitted = fit(later, plan, tmp_path, watcher, resume=True)
    assert later.meter.executed == plan.phases  # not one release more
    first = next(e for e in watcher.events if e.kind == "progress")
    assert first.data["phase"] == last and first.data["step"] > 1
    assert len(fitted.sample(10)) == 10


@pytest.mark.parametrize("model", IDS)
def test_a_pause_anywhere_loses_no_paid_release(model, tmp_path):
    """Each private phase is asked to pause when it begins and at its progress, until it does."""
    plan, (codec, codes) = planned(model), coded(N)
    private = {phase.name for phase in plan.phases}
    followed, asked = set(), []

    def on_event(event):
        name = event.data.get("name") or event.data.get("phase")
        asked[:] = [(event.kind, name)] if name in private else []
        return Signal.PAUSE if asked and not followed.issuperset(asked) else Signal.GO_ON

    meter, fitted = Meter(plan), None
    while fitted is None:
        table = PrivateTable(codes, codec.domain, plan, meter=meter)
        try:
            fitted = fit(table, plan, tmp_path, on_event, resume=bool(followed))
        except FitPaused:
            followed |= set(asked)
            meter = Meter.from_json(table.meter.to_json(), plan)
    assert table.meter.executed == plan.phases
    assert followed or model == "pearl"  # whose releases are kept together


class Killed(BaseException):
    """The process ends here: nothing is written after it."""


@pytest.mark.parametrize("model", IDS)
@pytest.mark.parametrize("at", [0, 20])  # before and behind a checkpoint of its own
def test_a_killed_fit_resumes_with_the_same_claim(model, at, tmp_path, fast_clock):
    """Only what lies on disk survives: the checkpoint and the meter as it was written down."""
    plan = planned(model, long=True)
    last = synthesizer(model).card.stages[-1].name
    disk: list[str] = []
    codec, codes = coded(N)
    meter = Meter(plan, on_charge=lambda m: disk.append(m.to_json()))
    table = PrivateTable(codes, codec.domain, plan, meter=meter)
    watcher = Watcher()

    def on_event(event):
        signal = watcher(event)
        if event.kind == "progress" and event.data["phase"] == last and event.data["step"] > at:
            raise Killed
        return signal

    with pytest.raises(Killed):
        fit(table, plan, tmp_path, on_event)
    written = Meter.from_json(disk[-1], plan)
    for phase in plan.phases:
        assert meter.runs(phase.name) <= written.runs(phase.name)  # nothing is forgotten
    later = PrivateTable(codes, codec.domain, plan, meter=written)
    fitted = fit(later, plan, tmp_path, resume=True)
    claim = guarantee(later.meter.executed, plan.budget.delta)
    assert later.meter.executed == plan.phases
    assert claim.epsilon == plan.guarantee.epsilon
    assert len(fitted.sample(10)) == 10


@pytest.mark.parametrize("model", IDS)
def test_noise_differs_between_fits_with_one_seed(model, tmp_path):
    first = quick_fit(model)
    second = fit(door(first.plan), first.plan, tmp_path)
    assert not first.fitted.sample(200, seed=1).equals(second.sample(200, seed=1))


@pytest.mark.parametrize("model", [model for model in IDS if model != "dp_gan"])
def test_learns_the_dependence_without_noise(model):
    if model == "pgb":  # a fit of DP-GAN and its boosting; trained once, both are looked at
        boosted = learnt(model)
        assert boosted.baseline is not None
        assert_learnt("dp_gan", boosted.baseline)
        assert_learnt(model, boosted)
    else:
        assert_learnt(model, learnt(model))


def assert_learnt(model: str, fitted: Fitted) -> None:
    synthetic, real = fitted.sample(LEARN_N, seed=1), rows(LEARN_N)
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
