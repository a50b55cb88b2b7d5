"""What one private training step costs, side by side with Opacus and with training without privacy.

    python benchmarks/dpsgd.py [--device cpu] [--nets critic autoencoder decoder energy]
        [--batches 64 128 512 1100] [--rounds 15] [--threads 2] [--profile] [--json]

Every variant does one full step on the same 32,561 records: draw a batch, clip every record's
gradient, add noise, update. They take turns in one process, and medians are compared.

  engine        this product: `SampledRelease.step` (Poisson batch, secure noise) and a plain update
  hooks         Opacus, per-sample gradients by hooks, with its Poisson loader
  functorch     Opacus, per-sample gradients by torch.func, with its Poisson loader
  ghost         Opacus, ghost clipping, with its Poisson loader
  ghost, ready  the same on batches drawn beforehand: no loader, and batch sizes all alike
  not private   the ordinary step: torch.nn, autograd, torch.optim.SGD, a uniform random batch
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as the product's own processes do
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from core.privacy.dpsgd.dense import SLOPE, Dense, GradFactor
from core.privacy.dpsgd.gradient import ClippedGradient, SampledRelease
from core.privacy.dpsgd.stream import SecretStream
from core.privacy.mechanisms.noise import SecureNoise

ROWS = 32_561
CLIP, NOISE, RATE = 1.0, 1.0, 0.01
NETS = {
    "critic": (106, 70, 35, 1),
    "autoencoder": (106, 60, 15, 60, 106),
    "decoder": (10, 1000, 106),
    "energy": (106, 256, 256, 256, 1),
}
VARIANTS = ("engine", "hooks", "functorch", "ghost", "ghost, ready", "not private")
Step = Callable[[], object]


@dataclass(frozen=True)
class Cell:
    """One net at one batch size on one device."""

    net: str
    batch: int
    device: str

    @property
    def widths(self) -> tuple[int, ...]:
        """From input to output."""
        return NETS[self.net]

    def data(self) -> tuple[Tensor, Tensor]:
        """Inputs and targets, the same for all variants."""
        random = torch.Generator().manual_seed(0)
        x = torch.rand((ROWS, self.widths[0]), generator=random)
        y = (
            x
            if self.net == "autoencoder"
            else torch.rand((ROWS, self.widths[-1]), generator=random)
        )
        return x.to(self.device), y.to(self.device)

    def module(self) -> nn.Sequential:
        """The net as a user would write it."""
        layers: list[nn.Module] = []
        for i, (a, b) in enumerate(zip(self.widths, self.widths[1:], strict=False)):
            layers += [nn.Linear(a, b)]
            if i + 2 < len(self.widths):
                layers += [nn.LeakyReLU(SLOPE)]
        return nn.Sequential(*layers).to(self.device)


class Loss(nn.Module):
    """Mean over the batch: minus the output, or binary cross-entropy summed over coordinates."""

    def __init__(self, reduction: str = "mean"):
        super().__init__()
        self.reduction = reduction

    def forward(self, out: Tensor, y: Tensor) -> Tensor:
        """Scalar, or one value a record."""
        if out.shape[1] == 1:
            each = -out.squeeze(1)
        else:
            each = functional.binary_cross_entropy_with_logits(out, y, reduction="none").sum(1)
        return each.mean() if self.reduction == "mean" else each


def engine(cell: Cell) -> Step:
    """This product's step."""
    x, y = cell.data()
    both = torch.cat([x, y], dim=1) if cell.net != "autoencoder" else x
    networks = Dense({"net": cell.widths}, device=cell.device)
    inputs = cell.widths[0]

    def grad_factors(rows: Tensor) -> list[GradFactor]:
        tape = networks["net"].forward(rows[:, :inputs])
        if cell.widths[-1] == 1:
            gradient = torch.full_like(tape.out, -1.0)
        else:
            target = rows if cell.net == "autoencoder" else rows[:, inputs:]
            gradient = torch.sigmoid(tape.out).sub_(target)
        return networks["net"].backward(tape, gradient)[0]

    def read_rows(chosen: np.ndarray) -> Tensor:
        return both.index_select(0, torch.from_numpy(chosen).to(cell.device, non_blocking=True))

    release = SampledRelease(
        n=ROWS,
        rate=cell.batch / ROWS,
        noise_multiplier=NOISE,
        read_rows=read_rows,
        charge=lambda: None,
        source=SecureNoise(),
        device=cell.device,
    )
    mechanism = ClippedGradient(networks=networks, grad_factors=grad_factors, clip_norm=CLIP)
    flat = networks.flat.detach()
    return lambda: flat.add_(release.step(mechanism).mean, alpha=-RATE)


def not_private(cell: Cell) -> Step:
    """The ordinary step."""
    x, y = cell.data()
    module, loss = cell.module(), Loss()
    optimiser = torch.optim.SGD(module.parameters(), lr=RATE)

    def step() -> None:
        index = torch.randint(ROWS, (cell.batch,), device=cell.device)
        optimiser.zero_grad()
        loss(module(x[index]), y[index]).backward()
        optimiser.step()

    return step


def opacus(cell: Cell, mode: str, *, ready: bool = False) -> Step:
    """Opacus's step, as its documentation has it."""
    from opacus import PrivacyEngine

    x, y = cell.data()
    module = cell.module()
    optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
    loader = DataLoader(TensorDataset(x, y), batch_size=cell.batch)
    ghost = mode == "ghost"
    made = PrivacyEngine().make_private(
        module=module,
        optimizer=optimiser,
        data_loader=loader,
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
        poisson_sampling=True,
        grad_sample_mode=mode,
        **({"criterion": Loss()} if ghost else {}),
    )
    loss = Loss()
    if ghost:
        module, optimiser, loss, loader = made
    else:
        module, optimiser, loader = made
    batches = endless(loader)
    if ready:
        random = torch.Generator().manual_seed(1)
        drawn = [torch.randperm(ROWS, generator=random)[: cell.batch] for _ in range(8)]
        batches = cycle([(x[i], y[i]) for i in drawn])

    def step() -> None:
        a, b = next(batches)
        optimiser.zero_grad()
        loss(module(a), b).backward()
        optimiser.step()

    return step


def endless(loader: DataLoader) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield from loader


def cycle(batches: list[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield from batches


def variants(cell: Cell) -> dict[str, Step]:
    return {
        "engine": engine(cell),
        "hooks": opacus(cell, "hooks"),
        "functorch": opacus(cell, "functorch"),
        "ghost": opacus(cell, "ghost"),
        "ghost, ready": opacus(cell, "ghost", ready=True),
        "not private": not_private(cell),
    }


def measure(cell: Cell, rounds: int) -> dict[str, float]:
    """Median milliseconds a step by variant, taken in turns."""
    steps = variants(cell)
    several = {}
    for name, step in steps.items():  # warm up, and see how many fit a 20 ms block
        for _ in range(3):
            step()
        several[name] = max(1, min(20, int(0.02 / max(timed(step, 2, cell.device), 1e-6))))
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            seconds[name].append(timed(step, several[name], cell.device))
    return {name: 1e3 * statistics.median(found) for name, found in seconds.items()}


def timed(step: Step, times: int, device: str) -> float:
    """Mean seconds of a block of steps."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        step()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / times


def profile(cell: Cell) -> str:
    """Where the engine's step goes: drawing the batch, drawing noise, the rest."""
    stream = SecretStream(SecureNoise(), device=cell.device)
    networks = Dense({"net": cell.widths}, device=cell.device)
    buffer = torch.zeros(networks.size + 1, device=cell.device)
    whole = timed(engine(cell), 50, cell.device)
    batch = timed(lambda: stream.batch(ROWS, cell.batch / ROWS), 50, cell.device)
    noise = timed(lambda: stream.add_normals(buffer, 1.0), 50, cell.device)
    rest = max(0.0, whole - batch - noise)
    shares = (f"{name} {part / whole:.0%}" for name, part in
              (("batch", batch), ("noise", noise), ("passes, clipping, update", rest)))  # fmt: skip
    return f"{cell.net} at {cell.batch}: {1e3 * whole:.2f} ms: " + ", ".join(shares)


def geometric(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def summary(cells: list[dict[str, object]], device: str) -> dict[str, object]:
    """Geometric means over the cells."""

    def over(other: str) -> float:
        return geometric([c["ms"][other] / c["ms"]["engine"] for c in cells])  # type: ignore[index]

    found = {name: over(name) for name in VARIANTS[1:]}
    return {
        "speedup_vs_opacus_geomean": found["hooks"],
        "speedup_vs_ghost_geomean": found["ghost"],
        "cost_vs_nonprivate_geomean": 1.0 / found["not private"],
        "speedup_vs_functorch_geomean": found["functorch"],
        "speedup_vs_ghost_without_loader_geomean": found["ghost, ready"],
        "device": device,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "cells": cells,
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure, print. Exit code 0."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--nets", nargs="*", choices=tuple(NETS), default=list(NETS))
    parser.add_argument("--batches", nargs="*", type=int, default=[64, 128, 512, 1100])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--profile", action="store_true", help="where the engine's step goes")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    options = parser.parse_args(arguments)
    device = options.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if options.threads is not None:
        torch.set_num_threads(options.threads)

    print(
        f"{'net':<12}{'batch':>6}" + "".join(f"{name:>14}" for name in VARIANTS) + "   (ms a step)"
    )
    cells: list[dict[str, object]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus warns of secure_mode and of its own hooks
        for net in options.nets:
            for batch in options.batches:
                cell = Cell(net, batch, device)
                ms = measure(cell, options.rounds)
                cells.append({"net": net, "batch": batch, "ms": ms})
                print(f"{net:<12}{batch:>6}" + "".join(f"{ms[v]:>14.3f}" for v in VARIANTS))
                ratios = "".join(f"{ms[v] / ms['engine']:>13.2f}×" for v in VARIANTS)
                print(f"{'':<18}{ratios}", flush=True)
                if options.profile:
                    print("  " + profile(cell))
    total = summary(cells, device)
    for key, value in total.items():
        if isinstance(value, float):
            print(f"{key}: {value:.2f}")
    if options.json:
        print(json.dumps(total))
    return 0


if __name__ == "__main__":
    sys.exit(main())
