"""Budget, Phase, Plan, Guarantee: what a run will spend, stated before any row is touched.

A plan is a value: it can be shown, stored, hashed and compared with what really ran. What a phase
is to the accountant, `core.privacy.accounting.rdp.event_of` says.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from core.message import Text
from core.schema.person import Person

# Of a run, and of all runs together: at ε = 100 the odds that somebody was in the table may grow
# by a factor of 10⁴³, which is no promise, and hardly any noise is added for it.
LARGEST_EPSILON = 100.0


def default_delta(n: int) -> float:
    """The default δ for n records: min(1e-6, 1 / (10 n)); n ≥ 1.

    >>> default_delta(891)
    1e-06
    """
    return min(1e-6, 1.0 / (10 * n))


class Phase(BaseModel):
    """One private access: a mechanism, how often it runs, and with what noise.

    Attributes:
      name: key that `PrivateTable.release` is called with, unique in the plan.
      mechanism: "gaussian" (optionally Poisson-sampled), "laplace" or "zcdp".
      share: fraction of the budget given to this phase, in (0, 1], for people to read.
      noise_multiplier: σ over sensitivity; 0 when no privacy is claimed. For "laplace" it is
        scale over sensitivity; for "zcdp" it is ignored and `rho` counts.
      count: how many times the mechanism runs, ≥ 1.
      sampling_rate: Poisson rate in (0, 1], or None when every record takes part.
      failure: probability that a run shows what one person alone holds; it is part of δ.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: Text
    what: Text
    mechanism: Literal["gaussian", "laplace", "zcdp"] = "gaussian"
    share: float = Field(gt=0.0, le=1.0)
    noise_multiplier: float = Field(ge=0.0)
    count: int = Field(default=1, ge=1)
    sampling_rate: float | None = Field(default=None, gt=0.0, le=1.0)
    rho: float | None = Field(default=None, gt=0.0)
    failure: float = Field(default=0.0, ge=0.0, lt=1.0)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.mechanism == "zcdp" and self.rho is None:
            raise ValueError(f"phase '{self.name}': a zcdp phase needs rho")
        return self


class Budget(BaseModel):
    """The (ε, δ) a run may spend, under zero-out. ε = inf means no differential privacy."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    epsilon: float = Field(gt=0.0)
    delta: float = Field(gt=0.0, lt=1.0)

    @property
    def private(self) -> bool:
        """Whether any differential privacy is claimed."""
        return math.isfinite(self.epsilon)


def repeated(phases: tuple[Phase, ...], attempts: int) -> tuple[Phase, ...]:
    """The phases, each with `attempts` times its runs."""
    if attempts == 1:
        return phases
    return tuple(p.model_copy(update={"count": p.count * attempts}) for p in phases)


def for_group(phase: Phase, rows: int) -> Phase:
    """The phase with so much noise that `rows` records together cost what one did; rows ≥ 1."""
    if rows == 1:
        return phase
    rho = None if phase.rho is None else phase.rho / rows**2
    return phase.model_copy(update={"noise_multiplier": phase.noise_multiplier * rows, "rho": rho})


class Protection(BaseModel):
    """α-LMDP: what is promised of the distribution of tagged columns, and how it is shown.

    It is no differential privacy: it says that released columns do not follow the real ones, and
    nothing about any person.

    Attributes:
      alpha: level of a group's tests in all attempts together, in (0, 1/2).
      shift: how different: the share of groups of 128 unshifted records that must notice the
        shift, in (0, 1); 0 leaves it to the model.
      certificate: ε of the private certificate of one group, for one attempt; None for an inside
        check alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    groups: dict[str, tuple[str, ...]] = Field(min_length=1)
    alpha: float = Field(default=0.05, gt=0.0, lt=0.5)
    shift: float = Field(default=0.75, ge=0.0, le=0.99)
    certificate: float | None = Field(default=None, gt=0.0, le=10.0)


def certificate_phase(group: str) -> str:
    """Name of the phase that certifies a group."""
    return f"certificate: {group}"


class Guarantee(BaseModel):
    """What is claimed: ε under both neighbouring relations, δ, and on which conditions.

    `epsilon` is under zero-out (one record's contribution removed, n public); `epsilon_replace`
    is under replace-one (one record swapped for any other: a row for one in the same place, a
    person for one under any key, with n as it was). Where the plan's unit is a person, a record is
    all that a person has. inf means no claim.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    epsilon: float
    epsilon_replace: float
    delta: float
    method: Text = ""
    conditions: tuple[Text, ...] = ()

    @property
    def private(self) -> bool:
        """Whether any differential privacy is claimed."""
        return math.isfinite(self.epsilon)


class Plan(BaseModel):
    """Everything a fit may do to private data, with its noise calibrated to the budget.

    Attributes:
      n: number of records (public); of people where rows are put together by person.
      added: how many of the phases are not the model's own.
      attempts: how often everything may be done over; all of them are paid for beforehand.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    model: str
    n: int = Field(ge=1)
    budget: Budget
    phases: tuple[Phase, ...]
    guarantee: Guarantee
    settings: dict[str, Any] = Field(default_factory=dict)
    protection: Protection | None = None
    added: int = Field(default=0, ge=0)
    attempts: int = Field(default=1, ge=1, le=20)
    unit: Person | None = None

    @property
    def shift(self) -> float | None:
        """How far tagged columns are shifted, see `Protection`; None without tags."""
        return None if self.protection is None else self.protection.shift

    def phase(self, name: str) -> Phase:
        """The phase of that name; KeyError when the plan holds none."""
        for phase in self.phases:
            if phase.name == name:
                return phase
        raise KeyError(name)

    @property
    def rows_of_one(self) -> int:
        """How many records, m ≥ 1, count as one, since nobody can tell which are a person's.

        1 where a row is a person, and where rows are put together by person: then a record is a
        person.
        """
        return 1 if self.unit is None or self.unit.grouped else self.unit.rows

    @property
    def most_rows(self) -> int:
        """At most so many rows, m ≥ 1, are put together as one record."""
        return self.unit.most_windows if self.unit is not None and self.unit.grouped else 1

    @property
    def records(self) -> str:
        """What n counts, for people to read: people or rows."""
        return "people" if self.unit is not None and self.unit.grouped else "rows"

    @property
    def charged(self) -> tuple[Phase, ...]:
        """The phases with the runs of all attempts: what the plan costs."""
        return repeated(self.phases, self.attempts)

    @property
    def failure(self) -> float:
        """The probability that any phase shows what one person alone holds; part of δ."""
        return math.fsum(phase.failure * phase.count for phase in self.charged)

    @property
    def attempt_alpha(self) -> float:
        """Level of a group's tests in each attempt, so that all together keep the protection's α.

        The plan must hold a protection.
        """
        assert self.protection is not None
        return self.protection.alpha / self.attempts

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, 64 hex digits; names this plan wherever it is quoted."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
