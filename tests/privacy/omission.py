"""Leaving records out, as sampling does: what one absent record may move, and what it must not.

Masking a record in place shows less: whatever is drawn or counted by place in a batch stays where
it was. Here a record is really gone from the batch, and besides the statistic the state of every
random stream is compared, since a stream that moves with the batch carries its size to whoever uses
the stream next.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from core.privacy.dpsgd import gradient as dpsgd
from core.privacy.dpsgd.gradient import ClippedGradient, NoisyGradient, SampledRelease
from core.privacy.dpsgd.stream import SecretStream
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import Mechanism
from tests.privacy.harness import Caught, size

BATCH = 256  # records of the batch that one is left out of
FLOAT32 = 1e-5 + 1e-7 * BATCH  # what the engine's noise is widened for
EVERY = 7  # steps between two checks of a phase that runs often


class Streams:
    """Every random stream of a fit that a seed or a checkpoint could fix."""

    def __init__(self) -> None:
        self.generators: list[torch.Generator] = []
        self.secret: list[SecretStream] = []

    @classmethod
    @contextmanager
    def watched(cls, patch: pytest.MonkeyPatch) -> Iterator[Streams]:
        """All streams that come to be inside the block."""
        streams, secret = cls(), SecretStream.__init__

        class Known(torch.Generator):
            def __new__(kind, *arguments: Any, **named: Any) -> Known:
                generator = super().__new__(kind, *arguments, **named)
                streams.generators.append(generator)
                return generator

        def begun(self: SecretStream, *arguments: Any, **named: Any) -> None:
            secret(self, *arguments, **named)
            streams.secret.append(self)

        with patch.context() as inside:
            inside.setattr(torch, "Generator", Known)
            inside.setattr(SecretStream, "__init__", begun)
            yield streams

    def states(self) -> list[Any]:
        """The state of each, in the order they came to be, and of the global ones."""
        return [
            torch.get_rng_state(),
            np.random.get_state(),  # noqa: NPY002 what library code may use
            random.getstate(),
            *(generator.get_state() for generator in self.generators),
            *(stream._bits.state for stream in self.secret),
        ]

    def restore(self, states: list[Any]) -> None:
        """Put every stream back to where it was; none may have come to be since."""
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        random.setstate(states[2])
        rest = iter(states[3:])
        for generator in self.generators:
            generator.set_state(next(rest))
        for stream in self.secret:
            stream._bits.state = next(rest)


def same(a: Any, b: Any) -> bool:
    """Whether two states are equal, whatever they are made of."""
    if isinstance(a, Tensor):
        return torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return bool(np.array_equal(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def left_out(n: int) -> list[int]:
    """Which records are left out: the first, which stands before all others, and some more."""
    return sorted({0, 1, n // 2, n - 1} & set(range(n)))


def check_omission(
    total: Callable[[list[int]], Tensor],
    everybody: list[int],
    mechanism: Mechanism,
    streams: Streams,
    tolerance: float,
) -> float:
    """No record's absence moves the total by more than Δ, nor any random stream.

    Args:
      total: the statistic of the records at these positions.
      everybody: all positions.
      mechanism: whose Δ and norm count.
      streams: compared before and after.
      tolerance: what rounding may add, as a share of Δ.

    Returns:
      The largest move, as a share of Δ.
    """
    worst, before = 0.0, streams.states()
    full = total(everybody).clone()
    after = streams.states()
    for i in left_out(len(everybody)):
        streams.restore(before)
        less = total([j for k, j in enumerate(everybody) if k != i]).clone()
        if not same(streams.states(), after):
            raise Caught(f"leaving record {i} out moves a random stream")
        moved = size(full - less, mechanism.noise) / mechanism.sensitivity
        worst = max(worst, moved)
        if not moved <= 1.0 + tolerance:
            raise Caught(f"leaving record {i} out moves the statistic by {moved:.3f} Δ")
    streams.restore(before)
    return worst


class OmittingRelease(SampledRelease):
    """A sampled release that leaves records out of a batch before each few of its steps."""

    streams: Streams
    skip_parts = False  # whether the engine's own refusal is switched off, for mutants
    checks, worst = 0, 0.0

    def step(self, mechanism: ClippedGradient) -> NoisyGradient:
        if self.skip_parts:
            self._checked = True
        self.turn = getattr(self, "turn", -1) + 1
        if self.turn % EVERY == 0:
            positions = list(range(min(BATCH, self._n)))
            moved = check_omission(
                lambda chosen: self._sum(mechanism, np.asarray(chosen, dtype=np.int64)),
                positions,
                mechanism,
                self.streams,
                FLOAT32,
            )
            type(self).checks += 1
            type(self).worst = max(self.worst, moved)
        return super().step(mechanism)


class OmittingTable(PrivateTable):
    """A table that leaves records out before each release."""

    streams: Streams
    checked: set[str]

    def release(self, phase_name: str, mechanism: Mechanism, **named: Any) -> Tensor:
        rows = self._PrivateTable__codes.to("cpu")  # type: ignore[attr-defined]
        group_size, everybody = mechanism.group_size, list(range(len(rows)))

        def total(present: list[int]) -> Tensor:
            if group_size == 1:  # really gone
                return mechanism.statistic(
                    rows.take(torch.tensor(present)), torch.ones(len(present))
                )
            mask = torch.zeros(len(rows))  # a place in a pair or group is public and stays
            mask[present] = 1.0
            return mechanism.statistic(rows, mask)

        check_omission(total, everybody, mechanism, self.streams, 1e-6)
        self.checked.add(phase_name)
        return super().release(phase_name, mechanism, **named)

    def sampled(self, phase_name: str, **named: Any) -> SampledRelease:
        self.checked.add(phase_name)
        return super().sampled(phase_name, **named)

    def selection(self, phase_name: str, scores: Any, **named: Any) -> Any:
        rows = self._PrivateTable__codes.to("cpu")  # type: ignore[attr-defined]

        class Summed:
            noise, sensitivity = "gaussian", float(np.sqrt(scores.options))  # each within [0, 1]

            @staticmethod
            def of(present: list[int]) -> Tensor:
                found: Tensor = scores.scores(rows.take(torch.tensor(present)))
                assert bool(((found >= -1e-6) & (found <= 1.0 + 1e-6)).all())
                return found.double().sum(dim=0)

        check_omission(Summed.of, list(range(len(rows))), Summed, self.streams, 1e-6)  # type: ignore[arg-type]
        self.checked.add(phase_name)
        return super().selection(phase_name, scores, **named)


@contextmanager
def leaving_out(
    patch: pytest.MonkeyPatch, *, skip_parts: bool = False
) -> Iterator[tuple[Streams, type[OmittingRelease]]]:
    """Inside the block `PrivateTable.sampled` leaves records out; see `OmittingRelease`."""
    with Streams.watched(patch) as streams, patch.context() as inside:
        kind = type("Omitting", (OmittingRelease,), {"streams": streams, "skip_parts": skip_parts})
        inside.setattr(dpsgd, "SampledRelease", kind)
        yield streams, kind
