"""The marginal shift: makes any synthesizer's output show a different marginal of tagged columns.

Each group of tagged columns x′ gets a tilt: a smooth random function f of x′, and records are kept
with a chance proportional to w(x′) = exp(t·f(x′)), held within a factor ρ of 1 either way. What the
other columns are given x′ stays as the model learned it, and no value appears that the model would
not make, or more than ρ² times as often against others. The strength t is found by bisection until
groups of 128 records of the model's own output tell the shifted records apart as often as asked.

Everything here reads synthetic records and nothing else, so after a private fit it costs nothing.

Whoever knew f could undo the tilt, so f comes from a secret key and neither leaves the workspace.
Were each release tilted another way, their average would show the marginal. f also depends on the
records it was found on, through scales and strength, so the one of the first tagged release is kept
and used for all later ones (`core.runs.accounts.settled_shift`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd
import torch
from randomgen import ChaCha
from torch import Tensor

from core.encoding.codec import Codec, Codes, concat_codes
from core.lmdp.discrepancy import KernelPoints, median_bandwidth, rbf
from core.lmdp.level import GROUP, ShiftError
from core.schema.schema import Domain

LARGEST = 4.0  # ρ: no record is made likelier or rarer by more
WAVES = 12  # random cosines a tilt is made of
POOL = 12_000  # synthetic records that a tilt is found on
_TRIALS = 300  # groups of records that a strength is judged by
_LEVEL = 0.05
_STEPS = 14  # of the bisection
_MOST = 12.0  # strength beyond which nothing more happens
_ATTEMPTS = 4  # functions tried before giving up
CERTAIN = 0.995  # records whose weight is above this quantile are always kept
MOST_AT_ONCE = 100_000  # records asked of the model at a time


class Sampler(Protocol):
    """What draws records: a fitted model."""

    @property
    def domain(self) -> Domain:
        """Of the records."""

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """See `core.models.saved_model.Fitted`."""


@dataclass(frozen=True)
class Tilt:
    """One group's tilt.

    Attributes:
      frequencies: float64 [waves, d]; phases, amplitudes: float64 [waves].
      centre, spread: of the wave sum over synthetic records.
      power: share of groups of 128 unshifted records that tell the shifted ones apart.
    """

    group: str
    points: KernelPoints
    frequencies: Tensor
    phases: Tensor
    amplitudes: Tensor
    centre: float
    spread: float
    strength: float
    power: float

    def weights(self, codes: Codes) -> Tensor:
        """w(x′) of records, float64 [n], within [1/ρ, ρ]."""
        return self.log_weights(self.points(codes), self.strength).exp()

    def log_weights(self, points: Tensor, strength: float) -> Tensor:
        """Logarithms of w of points at some strength, float64 [n]."""
        return (strength * self.wave(points)).clamp(*_BOUNDS)

    def wave(self, points: Tensor) -> Tensor:
        """The random function at points, centred and scaled over synthetic records, [n]."""
        waves = (points @ self.frequencies.t() + self.phases).cos() @ self.amplitudes
        return (waves - self.centre) / self.spread


_BOUNDS = (-math.log(LARGEST), math.log(LARGEST))


def find_tilts(
    codec: Codec, groups: Mapping[str, Sequence[str]], synthetic: Codes, *, power: float, key: bytes
) -> tuple[Tilt, ...]:
    """Tilts that make each group's released marginal differ.

    Args:
      power: share of groups of 128 unshifted records that must notice, in (0.05, 1).
      key: secret bytes; equal keys give equal functions for equal groups.
    """
    others = torch.zeros(len(synthetic), dtype=torch.float64)
    tilts = []
    for group, names in groups.items():
        tilts.append(_find(codec, group, names, synthetic, others, power=power, key=key))
        others = others + tilts[-1].weights(synthetic).log()
    return tuple(tilts)


def _find(
    codec: Codec,
    group: str,
    names: Sequence[str],
    synthetic: Codes,
    others: Tensor,
    *,
    power: float,
    key: bytes,
) -> Tilt:
    """One group's tilt, on top of what `others` (log weights) do already."""
    test = _PowerEstimate(KernelPoints.of(codec, names, synthetic), synthetic, others)
    best = 0.0
    for attempt in range(_ATTEMPTS):
        seed = hashlib.sha256(key + f"{sorted(names)}#{attempt}".encode()).digest()
        tilt = _draw(test, group, seed)
        low, high = 0.0, _MOST
        reached = test.power(tilt, high)
        best = max(best, reached)
        if reached < power:
            continue
        for _ in range(_STEPS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if test.power(tilt, middle) >= power else (middle, high)
        return replace(tilt, strength=high, power=test.power(tilt, high))
    raise ShiftError(
        "The columns of group '{group}' ({columns}) have too few values to be shifted that "
        "far: {best:.0%} of groups of {size} records would show the shift, and {power:.0%} "
        "were asked for. Choose a weaker shift, or tag more columns together.",
        group=group,
        columns=", ".join(names),
        best=best,
        size=GROUP,
        power=power,
    )


def _draw(test: _PowerEstimate, group: str, digest: bytes) -> Tilt:
    """A random function of about unit spread over the synthetic records, strength 0.

    All 256 bits of the digest decide it: with a generator that keeps fewer, every function could be
    tried.
    """
    random = np.random.Generator(ChaCha(key=int.from_bytes(digest, "big"), rounds=20))
    d = test.synthetic.shape[1]
    frequencies = torch.from_numpy(random.standard_normal((WAVES, d)))
    tilt = Tilt(
        group=group,
        points=test.points,
        frequencies=frequencies / median_bandwidth(test.synthetic),
        phases=torch.from_numpy(random.random(WAVES)) * 2.0 * math.pi,
        amplitudes=torch.from_numpy(random.standard_normal(WAVES)),
        centre=0.0,
        spread=1.0,
        strength=0.0,
        power=0.0,
    )
    waves = tilt.wave(test.synthetic)
    spread = float(waves.std())
    return replace(tilt, centre=float(waves.mean()), spread=spread if spread > 1e-9 else 1.0)


class _PowerEstimate:
    """How well groups of unshifted records tell shifted ones apart, with common random numbers."""

    def __init__(self, points: KernelPoints, synthetic: Codes, others: Tensor):
        self.points = points
        self.synthetic = points(synthetic)
        self._others = others
        self._bandwidth = median_bandwidth(self.synthetic)
        random = torch.Generator().manual_seed(0)
        n = len(self.synthetic)
        self._reference = torch.randperm(n, generator=random)[: min(2000, n)]
        self._near = rbf(self.synthetic, self.synthetic[self._reference], bandwidth=self._bandwidth)
        self._uniforms = torch.rand((_TRIALS, GROUP), generator=random, dtype=torch.float64)
        self._unshifted = [torch.randperm(n, generator=random)[:GROUP] for _ in range(_TRIALS)]
        self._within = torch.stack([self._inside(chosen) for chosen in self._unshifted])

    def power(self, tilt: Tilt, strength: float) -> float:
        """Share of groups of unshifted records that reject the shifted ones at 5 %."""
        log = tilt.log_weights(self.synthetic, strength) + self._others
        weights = log.exp()
        reference = weights[self._reference]
        near = self._near @ (reference / reference.sum())
        line = weights.cumsum(dim=0)
        drawn = torch.searchsorted(line, self._uniforms * line[-1]).clamp_max(len(line) - 1)
        null = torch.stack([self._inside(chosen) - 2.0 * near[chosen].mean() for chosen in drawn])
        cross = torch.stack([near[chosen].mean() for chosen in self._unshifted])
        rejected = self._within - 2.0 * cross > null.quantile(1.0 - _LEVEL)
        return float(rejected.double().mean())

    def _inside(self, chosen: Tensor) -> Tensor:
        points = self.synthetic[chosen]
        return rbf(points, points, bandwidth=self._bandwidth).mean()


@dataclass(frozen=True)
class Shift:
    """What shifts records, a row transform: each is kept with a chance that its tagged columns say.

    Attributes:
      largest: product of weights from which on every record is kept.
    """

    tilts: tuple[Tilt, ...]
    largest: float
    kind: ClassVar[str] = "shift"  # in a saved model

    @classmethod
    def find(
        cls, inner: Sampler, groups: Mapping[str, Sequence[str]], *, power: float, key: bytes
    ) -> Shift:
        """Find tilts for a model on records that it makes; see `find_tilts`."""
        codec = Codec(inner.domain)
        synthetic = codec.encode(inner.sample(POOL))
        tilts = find_tilts(codec, groups, synthetic, power=power, key=key)
        largest = _product(tilts, synthetic).quantile(CERTAIN)  # the rarest weights would cost most
        return cls(tilts, float(largest))

    def kept_share(self, codes: Any) -> Tensor:
        """The chance that a record is kept, in (0, 1], float64 [n]; a function of it alone."""
        return (_product(self.tilts, codes) / self.largest).clamp_max(1.0)

    def to_json(self) -> str:
        """The whole function, which is as secret as its key."""
        return json.dumps(self._values())

    @classmethod
    def from_json(cls, text: str | bytes, domain: Domain) -> Shift:
        """What `to_json` wrote, for a domain with the same tagged columns."""
        return cls.restored(domain, json.loads(text), {})

    def output(self, domain: Domain) -> Domain:
        """See `core.models.saved_model.RowTransform`."""
        return domain

    def sample(self, before: Sampler, rows: int, seed: int | None = None) -> pd.DataFrame:
        """See `RowTransform`: records of the model, each kept with `kept_share`'s chance."""
        if rows < 1:
            raise ValueError(f"At least one row must be asked for, got {rows}.")
        random, codec = np.random.default_rng(seed), Codec(before.domain)
        batches: list[Codes] = []
        drawn, share = 0, 0.5
        while drawn < rows:
            count = min(MOST_AT_ONCE, int((rows - drawn) / share * 1.1) + 64)
            inner_seed = None if seed is None else int(random.integers(2**62))
            codes = codec.encode(before.sample(count, seed=inner_seed))
            odds = self.kept_share(codes).numpy()
            accepted = codes.take(np.flatnonzero(random.random(count) < odds))
            batches.append(accepted)
            drawn += len(accepted)
            share = max(0.01, len(accepted) / count)
        return codec.decode_codes(concat_codes(batches).slice(0, rows))

    def saved(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """See `RowTransform`; as secret as the key."""
        return self._values(), {}

    @classmethod
    def restored(
        cls, domain: Domain, values: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> Shift:
        """See `RowTransform`."""
        codec = Codec(domain)
        return cls(tuple(_from_json(tilt, codec) for tilt in values["tilts"]), values["largest"])

    def _values(self) -> dict[str, Any]:
        return {"largest": self.largest, "tilts": [_to_json(t) for t in self.tilts]}


def _product(tilts: Sequence[Tilt], codes: Any) -> Tensor:
    total = torch.ones(len(codes), dtype=torch.float64)
    for tilt in tilts:
        total = total * tilt.weights(codes).cpu()
    return total


def _to_json(tilt: Tilt) -> dict[str, Any]:
    arrays = {name: getattr(tilt, name).tolist() for name in _ARRAYS}
    plain = {name: getattr(tilt, name) for name in _PLAIN}
    return {
        **plain,
        **arrays,
        "names": list(tilt.points.names),
        "scaling": list(tilt.points.scaling),
    }


def _from_json(saved: dict[str, Any], codec: Codec) -> Tilt:
    fields = {name: saved[name] for name in _PLAIN}
    fields |= {name: torch.tensor(saved[name], dtype=torch.float64) for name in _ARRAYS}
    return Tilt(points=KernelPoints(codec, saved["names"], saved["scaling"]), **fields)


_ARRAYS = ("frequencies", "phases", "amplitudes")
_PLAIN = ("group", "centre", "spread", "strength", "power")
