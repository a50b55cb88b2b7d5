"""Meter: the count of what really ran, which every claim is made from."""

from __future__ import annotations

import json
from collections.abc import Callable

from core.privacy.plan import Phase, Plan

AHEAD = 64  # runs of a phase that `step` writes down before they happen


class UnplannedReleaseError(RuntimeError):
    """A private access the plan does not hold; nothing was computed and nothing released."""


class Meter:
    """Counts executed mechanisms by phase and refuses what the plan does not hold.

    Its JSON goes into checkpoints, so that a resumed fit claims the same ε and cannot release a
    phase twice.

    Args:
      on_charge: called after each charge and before the data is read; a place to write `to_json`
        to disk, so that not even a crash between the two forgets a charge.
    """

    def __init__(self, plan: Plan, *, on_charge: Callable[[Meter], None] | None = None):
        self._plan = plan
        self._counts = dict.fromkeys((phase.name for phase in plan.phases), 0)
        self._written = dict(self._counts)  # never less than what ran
        self._note = ""
        self._on_charge = on_charge

    @property
    def private(self) -> bool:
        """Whether all noise so far came from a secure generator."""
        return not self._note

    @property
    def note(self) -> str:
        """Why nothing may be claimed, or an empty string."""
        return self._note

    @property
    def executed(self) -> tuple[Phase, ...]:
        """The phases that ran, in plan order, with the counts that really ran.

        When noise was repeatable they carry a noise multiplier of 0 (and no "zcdp" claim), so that
        every ε made from them is infinite.
        """
        ran = [p for p in self._plan.phases if self._counts[p.name]]
        done = [p.model_copy(update={"count": self._counts[p.name]}) for p in ran]
        if self.private:
            return tuple(done)
        void = {"noise_multiplier": 0.0, "mechanism": "gaussian", "rho": None}
        return tuple(p.model_copy(update=void) for p in done)

    def runs(self, name: str) -> int:
        """How often the phase of that name ran; KeyError when the plan holds none."""
        return self._counts[name]

    def forfeit(self, note: str) -> None:
        """Give up every claim, for the reason given; cannot be undone."""
        self._note = note

    def charge(self, name: str, times: int = 1) -> Phase:
        """Count `times` ≥ 1 runs of a phase, before its data is read.

        Raises:
          UnplannedReleaseError: the plan has no such phase, or fewer runs of it are left.
        """
        if name not in self._counts:
            raise UnplannedReleaseError(
                f"The plan has no phase '{name}'. Nothing was released; plan it first."
            )
        phase = self._plan.phase(name)
        if times < 1 or self._counts[name] + times > phase.count:
            raise UnplannedReleaseError(
                f"Phase '{name}' is planned {phase.count} time(s), ran {self._counts[name]} and "
                f"was asked for {times} more. Nothing more was released."
            )
        self._counts[name] += times
        self._write(name, self._counts[name])
        return phase

    def step(self, name: str) -> None:
        """`charge` once, for phases that run thousands of times.

        What is written down runs up to `AHEAD` ahead of what ran, so that the disk is not asked at
        every run: a crash forgets nothing, and at worst counts runs that never were.
        """
        if self._counts.get(name, 0) < self._written.get(name, 0):
            self._counts[name] += 1
            return
        planned = self.charge(name).count
        self._write(name, min(planned, self._counts[name] + AHEAD))

    def settle(self) -> None:
        """Write down exactly what ran; to be called with each checkpoint and when a fit stops."""
        self._written = dict(self._counts)
        if self._on_charge is not None:
            self._on_charge(self)

    def _write(self, name: str, count: int) -> None:
        self._written[name] = count
        if self._on_charge is not None:
            self._on_charge(self)

    def to_json(self) -> str:
        """The counts (those of `step` ahead of what ran, until `settle`) and their plan."""
        state = {"plan": self._plan.digest, "counts": self._written, "note": self._note}
        return json.dumps(state, sort_keys=True)

    @classmethod
    def from_json(
        cls, text: str, plan: Plan, *, on_charge: Callable[[Meter], None] | None = None
    ) -> Meter:
        """The meter that `to_json` wrote.

        Raises:
          ValueError: it belongs to another plan, or counts what that plan does not hold.
        """
        state = json.loads(text)
        meter = cls(plan, on_charge=on_charge)
        if state["plan"] != plan.digest:
            raise ValueError(
                "This checkpoint was made under another plan. Nothing was read; start a new run."
            )
        counts = {name: int(count) for name, count in state["counts"].items()}
        planned = {phase.name: phase.count for phase in plan.phases}
        if counts.keys() != planned.keys() or any(
            not 0 <= counts[name] <= planned[name] for name in planned
        ):
            raise ValueError("This checkpoint counts accesses its plan does not hold.")
        meter._counts.update(counts)
        meter._written.update(counts)
        meter._note = str(state["note"])
        return meter
