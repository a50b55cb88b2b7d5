"""A private step of a penalised energy, against vectorised differentiation.

    python benchmarks/penalised.py [--rounds 7] [--batch 128] [--hidden 256] [--width 128] [--json]

One step: real records and a Lipschitz penalty at points between them, each record's gradient
clipped over all uses of all layers, summed. Ours goes through closed forms; the other is
vmap(grad) of the same loss with a double backward, which lays every gradient out. Both answers are
compared before anything is timed. Interleaved; medians and their ratio.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.runs.execution.threads import limit_threads

limit_threads()

import torch  # noqa: E402 - threads are set first
from torch import Tensor, nn  # noqa: E402

from core.models.ppem.energy import Energy, lipschitz, shapes  # noqa: E402
from core.privacy.dpsgd.clipping import clipped_sum  # noqa: E402
from core.privacy.dpsgd.dense import Dense  # noqa: E402
from tests.privacy.functional_gradient import functional_clipped_sum  # noqa: E402

WEIGHT = 1.0  # of the Lipschitz penalty


class Step:
    """One energy and two ways to its clipped gradient."""

    def __init__(self, *, batch: int, hidden: int, width: int, parts: int):
        widths = [width // parts] * parts
        self.networks = Dense(
            shapes("e", widths, hidden), generator=torch.Generator().manual_seed(0)
        )
        starts = [sum(widths[:i]) for i in range(parts)]
        columns = [torch.arange(s, s + w) for s, w in zip(starts, widths, strict=True)]
        self.energy = Energy(self.networks, "e", columns)
        self.module = _module(self.networks, widths)
        self.first = widths[0]
        self.x = torch.randn(batch, width)
        self.between = torch.randn(batch, width)
        self.mask = torch.ones(batch)
        self.total = torch.zeros(self.networks.size)

    def closed(self) -> Tensor:
        """By gradient factors of layers."""
        energy = self.energy
        tape, inner = energy.forward(self.x), energy.forward(self.between)
        gradient, inner_factors = energy.input_gradient(inner)
        factors = energy.backward(tape, torch.ones_like(tape.out))
        factors += energy.double_backward(inner, inner_factors, lipschitz(gradient, WEIGHT))
        clipped_sum(factors, clip_norm=1.0, mask=self.mask, views=self.networks.views(self.total))
        return self.total

    def functional(self) -> Tensor:
        """By vmap(grad)."""
        rows = torch.cat([self.x, self.between], dim=1)
        total, _ = functional_clipped_sum(
            self.module, self._loss, rows, clip_norm=1.0, mask=self.mask, at_once=len(rows)
        )
        return total

    def _loss(self, call, row: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        x, between = row.chunk(2, dim=1)
        slope = torch.func.grad(lambda b: call(b).sum())(between)[:, : self.first]
        return call(x).sum() + WEIGHT * (slope.square().sum().sqrt() - 1.0).square()


def _module(networks: Dense, widths: list[int]) -> nn.Module:
    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flat = nn.Parameter(networks.flat.detach().clone())

        def forward(self, x: Tensor) -> Tensor:
            hidden = []
            for layer, piece in zip(networks.layers, torch.split(x, widths, 1), strict=False):
                weight, bias = layer.views(self.flat)
                hidden.append(nn.functional.linear(piece, weight, bias))
            h = nn.functional.leaky_relu(torch.cat(hidden, 1), 0.2)
            rest = networks.layers[len(widths) :]
            for i, layer in enumerate(rest):
                weight, bias = layer.views(self.flat)
                h = nn.functional.linear(h, weight, bias)
                h = nn.functional.leaky_relu(h, 0.2) if i + 1 < len(rest) else h
            return h

    return Flat()


def measure(step: Step, rounds: int) -> dict[str, float]:
    """Milliseconds a step, medians, and how many times faster ours is."""
    ours, theirs = step.closed().clone(), step.functional()
    # the flat module has the parameters in another order only if layers were; they are not
    error = float((ours - theirs).norm() / theirs.norm())
    if error > 1e-4:
        raise AssertionError(f"the two ways disagree by {error:.1e}")
    found: dict[str, list[float]] = {"closed": [], "vmap": []}
    for _ in range(rounds):
        for name, call, times in (("closed", step.closed, 20), ("vmap", step.functional, 3)):
            start = time.perf_counter()
            for _ in range(times):
                call()
            found[name].append((time.perf_counter() - start) / times * 1e3)
    closed, vmap = (statistics.median(found[name]) for name in ("closed", "vmap"))
    return {"closed_ms": closed, "vmap_ms": vmap, "ratio": vmap / closed, "disagreement": error}


def main() -> int:
    """Print one line a network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    results = {}
    for name, parts in (("marginal, one part", 1), ("conditional, two parts", 2)):
        step = Step(batch=options.batch, hidden=options.hidden, width=options.width, parts=parts)
        results[name] = measure(step, options.rounds)
        words = results[name]
        print(
            f"{name}: ours {words['closed_ms']:.2f} ms, vmap(grad) {words['vmap_ms']:.2f} ms, "
            f"{words['ratio']:.1f} times as fast (answers differ by {words['disagreement']:.0e})"
        )
    ratios = [result["ratio"] for result in results.values()]
    print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.1f}")
    if options.json:
        print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
