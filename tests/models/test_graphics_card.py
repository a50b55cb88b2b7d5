"""Training on a graphics card, as far as a machine without one can tell; see `tests.models.card`.

What needs a real card is skipped without one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from core.models.events import FitPaused, Signal
from core.models.registry import synthesizer
from core.models.steps.training import training_loop
from core.models.steps.training.draws import normals
from core.privacy.dpsgd.gradient import LEAST_AT_ONCE, SampledRelease
from core.privacy.dpsgd.gradient import ClippedGradient as Gradient
from core.privacy.dpsgd.stream import Draws, SecretStream
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import Mechanism
from core.privacy.mechanisms.noise import SecureNoise
from core.privacy.meter import Meter
from core.privacy.plan import Budget, Guarantee, Phase, Plan
from core.privacy.summation import LEAST_ROWS
from tests.contract.fits import IDS, fit, planned
from tests.models.card import Card, TwoDevicesError, on_card
from tests.models.tables import Watcher, coded, door
from tests.privacy.deterministic_noise import DeterministicNoise

pytestmark = pytest.mark.slow

REAL = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no graphics card here")


@pytest.mark.parametrize("model", IDS)
def test_every_model_makes_the_same_rows_on_one_device(model: str, tmp_path: Path) -> None:
    """Every tensor of every phase is where the others are, and no draw depends on the device."""
    plan = planned(model)
    noise = [DeterministicNoise(3) for _ in range(2)]
    here = fit(door(plan, noise_source=noise[0]), plan, tmp_path / "cpu")
    table = door(plan, noise_source=noise[1])
    with Card() as card:
        there = fit(table, plan, tmp_path / "cuda", device="cuda")
    assert card.made > 500, "the card was used"
    assert [p.count for p in table.meter.executed] == [p.count for p in plan.phases]
    first, second = (one.sample(60, seed=2) for one in (here, there))
    assert first.equals(second)


def test_the_card_refuses_what_a_driver_would() -> None:
    with Card():
        x = torch.zeros(3, device="cuda")
        assert on_card(x) and x.is_cuda and x.device.type == "cuda" and on_card((x + 1.0)[1:])
        with pytest.raises(TwoDevicesError):
            x + torch.ones(3)
        with pytest.raises(TwoDevicesError):
            x.numpy()
        with pytest.raises(TwoDevicesError):
            torch.rand(3, generator=torch.Generator(), device="cuda")
        assert not on_card(x.cpu()) and on_card(torch.nn.Linear(3, 2).to("cuda").weight)


def test_noise_and_draws_for_a_gpu_are_secure() -> None:
    """The card's own generator draws nothing: it is not a cryptographic one."""
    with Card(), pytest.MonkeyPatch.context() as watch:
        for name in ("normal_", "uniform_"):
            watch.setattr(Tensor, name, refused)
        stream = SecretStream(SecureNoise(), device="cuda")
        noise = stream.add_normals(torch.zeros(9, device="cuda"), 1.0)
        draws = stream.draws(np.arange(4), 10, Draws(normals=2, uniforms=1))
        assert on_card(noise) and on_card(draws) and noise.std() > 0
        assert on_card(normals((2,), torch.Generator(), "cuda"))
    twice = [SecretStream(DeterministicNoise(3), device=d) for d in ("cpu", "cpu:0")]
    assert torch.equal(*(one.add_normals(torch.zeros(9), 1.0) for one in twice))


def refused(*_: Any, **__: Any) -> None:
    raise AssertionError("drawn by torch's own generator")


# -- too little memory --------------------------------------------------------------------------


class Sums(Mechanism):
    """Sums of expanded rows, and how many came at once, by device."""

    sensitivity, noise = 10.0, "gaussian"

    def __init__(self, codec: Any) -> None:
        self.codec, self.seen = codec, []

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        expanded = self.codec.expand(rows)
        self.seen.append((len(rows), on_card(expanded)))
        return mask.double() @ expanded.double()


def one_sum(n: int) -> Plan:
    phase = Phase(name="sum", title="Sum", what="A sum.", share=1.0, noise_multiplier=1.0)
    claim = Guarantee(epsilon=1.0, epsilon_replace=2.0, delta=1e-6)
    budget = Budget(epsilon=1.0, delta=1e-6)
    return Plan(model="toy", n=n, budget=budget, phases=(phase,), guarantee=claim)


@pytest.mark.parametrize(
    ("rows_on_card", "smallest"), [(3000, True), (600, True), (LEAST_ROWS // 2, False)]
)
def test_a_release_goes_on_in_halves_and_then_on_the_processor(
    rows_on_card: int, smallest: bool
) -> None:
    n = 3000
    codec, codes = coded(n)
    plan = one_sum(n)

    def release(device: str) -> tuple[Tensor, Sums, PrivateTable]:
        table = PrivateTable(codes, codec.domain, plan, noise_source=DeterministicNoise(1))
        sums = Sums(codec)
        return table.release("sum", sums, device=device), sums, table

    whole, _, _ = release("cpu")
    with Card(room=rows_on_card * codec.width) as card:
        halved, sums, table = release("cuda")
    assert torch.allclose(whole, halved, rtol=0, atol=1e-6)
    assert table.meter.runs("sum") == 1, "it is charged once, however often it was tried"
    assert bool(card.refused) == (rows_on_card < n)
    assert any(there for _, there in sums.seen[-3:]) == smallest


def test_a_processor_without_memory_is_not_tried_again() -> None:
    codec, codes = coded(600)
    table = PrivateTable(codes, codec.domain, one_sum(600))
    sums = Sums(codec)
    sums.statistic = full  # type: ignore[method-assign]
    with pytest.raises(torch.OutOfMemoryError):
        table.release("sum", sums)


def full(*_: Any, **__: Any) -> Tensor:
    raise torch.OutOfMemoryError("no room")


@pytest.mark.parametrize(("most", "fits"), [(40, True), (LEAST_AT_ONCE // 2, False)])
def test_a_private_step_goes_on_in_smaller_parts(
    most: int, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that does not fit is summed in parts; where none fits the fit ends."""
    plan, sums, real, summed = planned("dp_gan"), [], Gradient.statistic, SampledRelease._sum

    def narrow(self: Any, rows: Tensor, mask: Tensor, **more: Any) -> Tensor:
        if len(rows) > most:
            raise torch.OutOfMemoryError("no room")
        return real(self, rows, mask, **more)

    def watched(self: Any, *arguments: Any) -> Tensor:
        sums.append(summed(self, *arguments).clone())
        return sums[-1]

    monkeypatch.setattr(SampledRelease, "_sum", watched)
    fit(door(plan, noise_source=DeterministicNoise(3)), plan, tmp_path / "whole")
    first, table = sums[0], door(plan, noise_source=DeterministicNoise(3))
    sums.clear()
    monkeypatch.setattr(Gradient, "statistic", narrow)
    if not fits:
        with pytest.raises(torch.OutOfMemoryError):
            fit(table, plan, tmp_path / "parts")
        return
    fit(table, plan, tmp_path / "parts")
    assert torch.allclose(sums[0], first, rtol=1e-4, atol=1e-5) and first.abs().max() > 0.01
    assert [p.count for p in table.meter.executed] == [p.count for p in plan.phases]


# -- with a card --------------------------------------------------------------------------------


@REAL
@pytest.mark.parametrize("model", IDS)
def test_a_real_card_makes_about_the_same_model(model: str, tmp_path: Path) -> None:
    plan, noise = planned(model), [DeterministicNoise(3) for _ in range(2)]
    here = fit(door(plan, noise_source=noise[0]), plan, tmp_path / "cpu")
    there = fit(door(plan, noise_source=noise[1]), plan, tmp_path / "cuda", device="cuda")
    first, second = (one.sample(2000, seed=2) for one in (here, there))
    assert abs(first["age"].mean() - second["age"].mean()) < 1.0
    assert abs((first["ill"] == True).mean() - (second["ill"] == True).mean()) < 0.02  # noqa: E712


@REAL
@pytest.mark.parametrize("model", IDS)
def test_a_paused_fit_goes_on_with_the_other_device(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint is of no device."""
    looks = itertools.count()
    monkeypatch.setattr(training_loop.time, "monotonic", lambda: 1.5 * next(looks))
    plan = planned(model, long=True)
    last, (codec, codes) = synthesizer(model).card.stages[-1].name, coded(plan.n)
    for first, second in (("cuda", "cpu"), ("cpu", "cuda")):
        table, folder = door(plan), tmp_path / first
        with pytest.raises(FitPaused):
            fit(table, plan, folder, Watcher(Signal.PAUSE, last, 1), device=first)
        meter = Meter.from_json(table.meter.to_json(), plan)
        later = PrivateTable(codes, codec.domain, plan, meter=meter)
        fitted = fit(later, plan, folder, resume=True, device=second)
        assert later.meter.executed == plan.phases and len(fitted.sample(10)) == 10


@pytest.fixture
def little_room() -> Iterator[int]:
    """Bytes that this process may take of the card: 256 MiB, and no more."""
    room, whole = 2**28, torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(room / whole)
    yield room
    torch.cuda.set_per_process_memory_fraction(1.0)


@REAL
def test_a_release_goes_on_in_halves_on_a_full_card(little_room: int) -> None:
    """Every record of a group is summed at once; the driver itself says that there is no room."""
    codec, codes = coded(3000)
    plan, copies = one_sum(3000), little_room // 3000 // codec.width // 4

    class Wide(Sums):
        """Each record so wide that all of them together do not fit on the card."""

        def statistic(self, rows: Any, mask: Tensor) -> Tensor:
            wide = self.codec.expand(rows).repeat(1, copies)
            self.seen.append((len(rows), wide.is_cuda))
            return mask.to(wide) @ wide

    def release(device: str) -> tuple[Tensor, Sums]:
        table = PrivateTable(codes, codec.domain, plan, noise_source=DeterministicNoise(1))
        sums = Wide(codec)
        return table.release("sum", sums, device=device), sums

    (whole, _), (halved, sums) = release("cpu"), release("cuda")
    assert torch.allclose(whole, halved, rtol=1e-4, atol=1e-2)
    assert sums.seen[-1] == (1500, True), "it went on in halves, on the card"
