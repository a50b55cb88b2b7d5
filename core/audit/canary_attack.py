"""Two attacks on a model's private phases, by somebody who sees every release.

He knows both tables, the code, the plan and the user's seed, and sees every noisy gradient and sum,
since the claim covers all of them. He does not see who was in which batch, the noise, and what is
drawn for records.

`one_run`: one fit of a table whose canaries were each put in by a fair coin; all coins are guessed.
`prepare_leave_one_out`: one record is left out; each release is repeated in both worlds, and told
apart by what the same code releases there without noise.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.audit.bounds import Guesses, guess
from core.audit.watched_table import (
    FixedReleases,
    ObservedRelease,
    WatchedTable,
    altered,
    each_alone,
    together,
)
from core.encoding.codec import Codec, Codes
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import PersonRows
from core.encoding.window_rows import windows_of
from core.models.events import Signal
from core.models.registry import synthesizer
from core.models.step import FitContext
from core.privacy.plan import Plan
from core.schema.column import Kind, SchemaColumn
from core.schema.person import History, Person
from core.schema.schema import Domain, Schema

Floats = NDArray[np.float64]
COLUMNS = ("first", "second", "third")
USUAL = 4  # labels that ordinary records hold
ASSUMED_NOISE = 1 / 3  # of the planned noise: the attacker reckons with less than was promised
SURVEYED = 128  # ordinary records whose sampling noise stands for that of all
DRAWS = 32  # own draws for a record, averaged
PRIOR = 4.0  # inverse variance of a fair coin


@dataclass(frozen=True)
class AuditTable:
    """A table made by code.

    Attributes:
      codes: a row of each record, or, of histories, the windows of `people`.
      rows: so many equal rows of each record.
    """

    domain: Domain
    codes: Codes
    canaries: int
    rows: int = 1
    people: PersonRows | None = None

    @property
    def n(self) -> int:
        """How many records there are."""
        return len(self.codes) if self.people is None else self.people.n

    def part(self, first: int, last: int) -> tuple[Codes, PersonRows | None]:
        """Some records, as `each_alone` takes them."""
        if self.people is None:
            return self.codes.slice(first, last), None
        offsets = self.people.offsets[first : last + 1]
        return self.codes.slice(int(offsets[0]), int(offsets[-1])), PersonRows(offsets - offsets[0])

    def written_out(self) -> tuple[Codes, PersonRows | None]:
        """All rows of all records, and where each one's lie; None where it has one."""
        if self.people is not None or self.rows == 1:
            return self.codes, self.people
        offsets = np.arange(len(self.codes) + 1, dtype=np.int64) * self.rows
        everybody = np.repeat(np.arange(len(self.codes)), self.rows)
        return self.codes.take(everybody), PersonRows(offsets)


def audit_table(canaries: int, others: int, *, rows: int = 1, history: bool = False) -> AuditTable:
    """A table made by code, always the same; no person is in it.

    Args:
      history: whether rows of a record are events that differ, seen as windows.
    """
    random = np.random.default_rng(20240229)
    own = [f"own {i}" for i in range(canaries)]
    labels = tuple([f"usual {i}" for i in range(USUAL)] + own)
    schema = Schema(
        sensitive={"hidden": (COLUMNS[0],)},  # models without α-LMDP ignore it
        columns=(
            *(SchemaColumn(name=name, kind=Kind.CATEGORY, categories=labels) for name in COLUMNS),
            SchemaColumn(name="number", kind=Kind.NUMBER, low=0.0, high=1.0, dtype="float64"),
        ),
    )
    if history:
        return _histories(schema, own, others, rows, random)
    usual = {name: [labels[k] for k in random.integers(0, USUAL, others)] for name in COLUMNS}
    frame = pd.DataFrame({name: pd.Series(own + usual[name], dtype="str") for name in COLUMNS})
    frame["number"] = random.random(canaries + others)
    domain = schema.domain()
    if rows > 1:  # the column that says who is no part of what models see
        person = Person(columns=("who",), rows=rows)
        domain = domain.model_copy(update={"person": person})
    return AuditTable(domain, Codec(domain).encode(frame), canaries, rows)


def _histories(
    schema: Schema, own: list[str], others: int, rows: int, random: np.random.Generator
) -> AuditTable:
    """People with so many events each, in windows: a canary's hold labels that nobody else's do."""
    person = Person(columns=("who",), rows=rows, order="number", history=History())
    who = SchemaColumn(name="who", kind=Kind.IDENTIFIER)
    declared = Schema(columns=(*schema.columns, who), person=person)
    layout, n = Layout(declared.domain()), len(own) + others
    number = np.repeat(np.arange(n), rows)
    usual = [f"usual {k}" for k in range(USUAL)]
    frame = pd.DataFrame({"who": number, "number": random.random(len(number))})
    for name in COLUMNS:
        some = random.choice(usual, others * rows).tolist()
        frame[name] = pd.Series([*np.repeat(own, rows).tolist(), *some], dtype="str")
    codes, offsets = windows_of(frame, layout, number, person)
    domain = layout.domain.model_copy(update={"person": person})
    return AuditTable(domain, codes, len(own), rows, PersonRows(offsets))


def _fit(table: WatchedTable, plan: Plan, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="audit-") as folder:
        context = FitContext(on_event=lambda _: Signal.GO_ON, folder=Path(folder), seed=seed)
        synthesizer(plan.model).fit(table, plan, context)


def one_run(
    plan: Plan, attacked: AuditTable, *, seed: int, noise: float = 1.0, guessed: int, every: int = 1
) -> Guesses:
    """Guess some coins of all canaries from one fit with a share of the noise."""
    coins = np.array([secrets.randbits(1) for _ in range(attacked.canaries)], dtype=bool)
    present = np.concatenate([coins, np.ones(attacked.n - attacked.canaries, dtype=bool)])
    coin_scores = _CoinScores(plan, attacked, every)
    codes, people = attacked.written_out()
    table = WatchedTable(
        codes,
        attacked.domain,
        altered(plan, noise=noise),
        people=people,
        present=present,
        watch=coin_scores,
    )
    _fit(table, plan, seed)
    return guess(coin_scores.scores(), coins, guessed)


class _CoinScores:
    """The best linear guess of all coins: releases are sums of what is known, coins and noise.

    With G the canaries' own shares (of which a batch holds q), the noise σ² and the sampling of all
    records q(1 - q) make one covariance M of a release y, whose mean with all coins at one half is
    subtracted; precisions q² Gᵀ M⁻¹ G and scores q Gᵀ M⁻¹ y add up over releases.
    """

    def __init__(self, plan: Plan, attacked: AuditTable, every: int):
        m, n = attacked.canaries, attacked.n
        self._plan, self._every = plan, every
        known = min(n, m + SURVEYED)
        self._known = attacked.part(0, known)
        self._rest = attacked.part(known, n) if n > known else None
        self._canaries = m
        self._share = torch.ones(known, dtype=torch.float64)
        self._share[:m] = 0.5
        self._weight = self._share.clone()
        self._weight[m:] *= (n - m) / max(1, known - m)
        self._precision = PRIOR * torch.eye(m, dtype=torch.float64)
        self._score = torch.zeros(m, dtype=torch.float64)

    def __call__(self, observed: ObservedRelease) -> None:
        if observed.call % self._every:
            return
        q, m = observed.rate, self._canaries
        shares = each_alone(observed, *self._known)  # [b, k]
        rest = observed.released.float() - q * (self._share.float() @ shares)
        if self._rest is not None:
            rest -= q * together(observed, *self._rest)
        gram = (shares @ shares.T).double()  # [b, b]
        whitened = _Whitened(gram, q * (1.0 - q) * self._weight, _assumed_std(self._plan, observed))
        self._precision += q**2 * whitened(gram[:, :m], gram[:m])
        self._score += q * whitened((shares @ rest).double().unsqueeze(1), gram[:m]).squeeze(1)

    def scores(self) -> Floats:
        """Float64 [m], higher where a canary looks present."""
        return np.asarray(torch.linalg.solve(self._precision, self._score).numpy())


class _Whitened:
    """Products Gᵀ M⁻¹ x of M = s² + Σᵢ hᵢ gᵢ gᵢᵀ, from products with the gᵢ alone (Woodbury)."""

    def __init__(self, gram: Tensor, variances: Tensor, std: float):
        self._root = variances.sqrt().unsqueeze(1)  # [b, 1]
        inner = self._root * gram * self._root.T
        self._inner = inner + std**2 * torch.eye(len(gram), dtype=gram.dtype)
        self._variance = std**2

    def __call__(self, with_x: Tensor, of_g: Tensor) -> Tensor:
        """Products of all records with x [b, c], and of the first a with all [a, b] → [a, c]."""
        pulled = torch.linalg.solve(self._inner, self._root * with_x)  # [b, c]
        left: Tensor = with_x[: len(of_g)] - (of_g * self._root.T) @ pulled
        return left / self._variance


def _assumed_std(plan: Plan, observed: ObservedRelease) -> float:
    noise = plan.phase(observed.phase.name).noise_multiplier
    return ASSUMED_NOISE * noise * float(observed.mechanism.sensitivity)


@dataclass
class LeaveOneOut:
    """The second attack, prepared: what to look for in each release.

    Attributes:
      alone: whether all other records are ⊥ in both worlds, so that nothing hides the one.
      directions: by call; float32 [repeats or 1, k] over the noise's variance.
      middles: by call; float32 [repeats or 1], a direction's product half way between the worlds.
    """

    plan: Plan
    attacked: AuditTable
    seed: int
    repeats: int
    alone: bool = False
    fixed: FixedReleases = field(default_factory=FixedReleases)
    directions: dict[int, Tensor] = field(default_factory=dict)
    middles: dict[int, Tensor] = field(default_factory=dict)

    def scores(self, *, noise: float = 1.0) -> tuple[Floats, Floats]:
        """Scores of all repetitions with the record, and without; higher looks more like with."""
        return self._world(True, noise), self._world(False, noise)

    def _world(self, inside: bool, noise: float) -> Floats:
        scores = np.zeros(self.repeats)

        def watch(observed: ObservedRelease) -> None:
            which = observed.repetition % len(self.directions[observed.call])
            along = self.directions[observed.call][which] @ observed.released.float()
            scores[observed.repetition] += float(along - self.middles[observed.call][which])

        self.run(inside, watch, noise=noise, repeats=self.repeats)
        return scores

    def run(
        self,
        inside: bool,
        watch: Callable[[ObservedRelease], None],
        *,
        noise: float = 0.0,
        repeats: int,
    ) -> None:
        """One fit in one of the worlds."""
        present = np.full(self.attacked.n, not self.alone)
        present[0] = inside
        codes, people = self.attacked.written_out()
        table = WatchedTable(
            codes,
            self.attacked.domain,
            altered(self.plan, repeats=repeats, noise=noise),
            people=people,
            present=present,
            watch=watch,
            repeats=repeats,
            fixed=self.fixed,
        )
        _fit(table, self.plan, self.seed)

    def silent(self, inside: bool, repeats: int) -> dict[int, Tensor]:
        """What is released in a world without noise: by call, float32 [repeats, k]."""
        sums: dict[int, list[Tensor]] = {}

        def watch(observed: ObservedRelease) -> None:
            sums.setdefault(observed.call, []).append(observed.released.float().clone())

        self.run(inside, watch, repeats=repeats)
        return {call: torch.stack(parts) for call, parts in sums.items()}


def prepare_leave_one_out(
    plan: Plan, attacked: AuditTable, *, seed: int, repeats: int, alone: bool = False
) -> LeaveOneOut:
    """Find out, without noise, how the two worlds differ at each release; the first record goes.

    Where every record takes part, the code is run twice at the same seed. If it does the same both
    times, whatever it draws can be predicted, and the difference of the worlds is known to the last
    digit. Else the record's own share is looked for.
    """
    attack = LeaveOneOut(plan, attacked, seed, repeats, alone)
    variances: dict[int, float] = {}
    own: dict[int, tuple[Tensor, Tensor]] = {}

    def survey(observed: ObservedRelease) -> None:
        variances[observed.call] = _assumed_std(plan, observed) ** 2
        own[observed.call] = _own_share(plan, observed, attacked)

    probes = [attack.silent(True, 2) for _ in range(2)]
    attack.run(True, survey, repeats=1)
    for call, (direction, middle) in own.items():
        attack.directions[call] = direction.float().unsqueeze(0)
        attack.middles[call] = middle.float().unsqueeze(0)
    if any(phase.sampling_rate not in (None, 1.0) for phase in plan.phases):
        return attack
    predictable = [call for call, sums in probes[0].items() if torch.equal(sums, probes[1][call])]
    constant = all(torch.equal(probes[0][call][0], probes[0][call][1]) for call in predictable)
    inside, outside = (attack.silent(world, 1 if constant else repeats) for world in (True, False))
    for call in predictable:
        gap = (inside[call] - outside[call]) / variances[call]
        attack.directions[call] = gap
        attack.middles[call] = (gap * (inside[call] + outside[call])).sum(dim=1) / 2.0
    return attack


def _own_share(
    plan: Plan, observed: ObservedRelease, attacked: AuditTable
) -> tuple[Tensor, Tensor]:
    """The first record's share g over the noise's variance, and its product with half of it."""
    drawn = [each_alone(observed, *attacked.part(0, 1))[0] for _ in range(DRAWS)]
    mine = observed.rate * torch.stack(drawn).mean(dim=0)
    direction = mine / _assumed_std(plan, observed) ** 2
    return direction, direction @ mine / 2.0
