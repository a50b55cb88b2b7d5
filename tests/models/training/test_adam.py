"""Adam and its cycle: torch's own steps, without torch's compiler."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
import torch

from core.models.steps.training.adam import Adam, OneCycle


def network() -> torch.nn.Sequential:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1))


def loss(net: torch.nn.Module, step: int) -> torch.Tensor:
    x = torch.randn(32, 5, generator=torch.Generator().manual_seed(step))
    out: torch.Tensor = (net(x) - x.sum(dim=1, keepdim=True)).square().mean()
    return out


@pytest.mark.parametrize(("steps", "warm"), [(60, 0.1), (25, 0.3), (4, 0.5)])
def test_steps_are_those_of_torch(steps: int, warm: float) -> None:
    ours, theirs = network(), network()
    adam = Adam(ours.parameters(), OneCycle(0.02, steps, warm), decays=(0.9, 0.99))
    torchs = torch.optim.Adam(theirs.parameters(), 0.02, betas=(0.9, 0.99), fused=True)
    cycle = torch.optim.lr_scheduler.OneCycleLR(torchs, 0.02, total_steps=steps, pct_start=warm)
    for step in range(steps):
        adam.descend(loss(ours, step))
        torchs.zero_grad()
        loss(theirs, step).backward()
        torchs.step()
        cycle.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)
    assert not torch.equal(next(ours.parameters()), next(network().parameters()))


def test_what_was_kept_goes_on_as_if_it_had_not_stopped() -> None:
    nets, kept = (network(), network()), {}
    for net, pauses in zip(nets, (False, True), strict=True):
        adam = Adam(net.parameters(), OneCycle(0.02, 20, 0.1))
        for step in range(20):
            if pauses and step == 9:
                kept = copy.deepcopy(adam.state_dict())
                adam = Adam(net.parameters(), OneCycle(0.02, 7, 0.5))
                adam.load_state_dict(kept)
            adam.descend(loss(net, step))
    for one, other in zip(*(net.parameters() for net in nets), strict=True):
        assert torch.equal(one, other)


def test_a_rate_of_one_step_and_parameters_without_gradient() -> None:
    moved, still = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
    adam = Adam([moved, still], 0.5)
    adam.descend(moved.sum(), rate=0.1)
    assert torch.allclose(moved, torch.full((3,), -0.1)) and torch.equal(still, torch.ones(3))


def test_no_run_loads_the_compiler() -> None:
    """It takes two seconds of each."""
    code = (
        "import sys, torch\n"
        "from core.models.steps.training.adam import Adam\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "Adam([x], 0.1).descend(x.sum())\n"
        "sys.exit('torch._dynamo' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
