"""PrivateTable: the only way to private rows, which a model is handed and nothing else.

Rows can be read only inside a release that the plan holds, that is charged before it computes, and
whose result carries the planned noise.

Where the plan puts rows together by person, a record is a person: the summand of a sum is the mean
over that person's rows, what looks at pairs or groups of records sees one row of each, and batches
draw people. So every sensitivity holds per person, and n people is the divisor. Pairs and groups of
people follow from each one's own key (`core.encoding.key_groups`), of rows from their positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from core.encoding.key_groups import bucket_count, positions_by_key, public_order
from core.encoding.person_rows import PersonRows
from core.encoding.stored_codes import StoredCodes
from core.privacy.mechanisms import noise
from core.privacy.mechanisms.additive import Mechanism, Rows, Statistic
from core.privacy.mechanisms.noise import NoiseSource, SecureNoise
from core.privacy.mechanisms.selection import Scores, Selection, range_of
from core.privacy.meter import Meter, UnplannedReleaseError
from core.privacy.plan import Plan
from core.privacy.summation import ChunkedStatistic, InOneProcess, Records, Summation
from core.schema.schema import Domain

if TYPE_CHECKING:
    from torch import Tensor

    from core.privacy.dpsgd.gradient import SampledRelease


CHUNK_ROWS = 8192
EXPAND_AT_ONCE = 2**26  # numbers of a table that are laid out once instead of batch by batch


class PrivateTable:
    """Rows behind a plan: n and the domain are public, everything else costs budget.

    Rows are put in a fixed order that depends only on n, so that consecutive ones are random pairs
    chosen without looking at the data, and the same order comes back after a resume. People stay in
    the order of `people`.

    Args:
      codes: the encoded rows of n records or people; of many, `StoredCodes`, not in memory.
      people: where each person's rows lie in `codes`, and the hashes of their keys; needed where
        the plan puts together more than one row, or looks at pairs or groups of people.
      chunk_rows: rows read at once; even, so that pairs stay together, and a multiple of the group
        size of whatever looks at groups.
      present: bool [n] in the order of `codes`, False where a record is ⊥: it keeps its position,
        and no statistic and no batch sees it. The claim compares a table with one where a record is
        ⊥; audits and tests make that one here.
      shuffle: False keeps the order in which codes lie (only for statistics that do not pair rows
        up); `StoredCodes` lie in the public order anyway, people in theirs.
      noise_source: for tests; a source that is not private voids every claim of the meter.
      summation: who computes statistics over all rows; it is handed the rows, and its sums before
        noise.

    Raises:
      ValueError: the plan is for another number of records, a private plan holds a phase without
        noise, or chunk_rows is not a positive even number.
    """

    __slots__ = (
        "__chunk_rows",
        "__codes",
        "__domain",
        "__hashes",
        "__meter",
        "__people",
        "__plan",
        "__present",
        "__source",
        "__summation",
    )

    def __init__(
        self,
        codes: Rows,
        domain: Domain,
        plan: Plan,
        *,
        people: PersonRows | None = None,
        chunk_rows: int = CHUNK_ROWS,
        shuffle: bool = True,
        noise_source: NoiseSource | None = None,
        meter: Meter | None = None,
        present: NDArray[np.bool_] | None = None,
        summation: Summation | None = None,
    ):
        if present is not None and present.shape != (plan.n,):
            raise ValueError(f"present must say of each of {plan.n} records whether it is there.")
        _check_records(codes, plan, people)
        if chunk_rows < 2 or chunk_rows % 2:
            raise ValueError(f"chunk_rows must be a positive even number, got {chunk_rows}.")
        silent = [p.name for p in plan.phases if p.mechanism != "zcdp" and not p.noise_multiplier]
        if plan.budget.private and silent:
            raise ValueError(f"A private plan holds phases without noise: {', '.join(silent)}.")
        if shuffle and people is None and not (isinstance(codes, StoredCodes) and present is None):
            order = public_order(plan.n)
            present = None if present is None else present[order]
            if not isinstance(codes, StoredCodes):  # which lie in that order already
                codes = codes.take(order)
        self.__codes, self.__present = codes, present
        self.__people = people if plan.most_rows > 1 else None  # else the rows are the people
        self.__hashes = None if people is None else people.hashes
        self.__domain = domain
        self.__plan = plan
        self.__chunk_rows = chunk_rows
        self.__source: NoiseSource = SecureNoise() if noise_source is None else noise_source
        self.__meter = Meter(plan) if meter is None else meter
        self.__summation: Summation = InOneProcess() if summation is None else summation
        if not self.__source.private:
            self.__meter.forfeit("deterministic noise: not private")

    @property
    def n(self) -> int:
        """Number of records (public); of people where rows are put together."""
        return self.__plan.n

    @property
    def domain(self) -> Domain:
        """The public domain."""
        return self.__domain

    @property
    def plan(self) -> Plan:
        """What may be released."""
        return self.__plan

    @property
    def meter(self) -> Meter:
        """What was released so far."""
        return self.__meter

    def release(
        self,
        phase_name: str,
        mechanism: Mechanism,
        *,
        device: str = "cpu",
        tick: Callable[[int, int], None] | None = None,
    ) -> Tensor:
        """One planned release: charge, compute over all rows, add noise.

        Args:
          tick: called with (records read, records in all) after each chunk; both are public. It
            may raise to stop; the charge stays.

        Returns:
          float64 on the CPU, the statistic's shape. The noise scale is noise_multiplier · Δ (plus
          about one part in a million, see `core.privacy.mechanisms.noise.add`), or none where the
          plan claims no privacy.

        Raises:
          UnplannedReleaseError: the plan does not hold this; nothing was computed.
          NotAdditiveError: the statistic is not the sum of its parts; the charge stays.
          FloatingPointError: the statistic is not finite, which no valid code can cause; what was
            charged stays charged.
        """
        import torch  # pages import this module, and compute nothing

        self._check(phase_name, mechanism)
        phase = self.__meter.charge(phase_name)
        total = self._sum(mechanism, device=device, tick=tick)
        if not bool(torch.isfinite(total).all()):
            raise FloatingPointError(
                f"Phase '{phase_name}' produced a value that is not finite. Nothing was released, "
                "its budget stays spent. Please report this as a fault of the model."
            )
        if phase.noise_multiplier == 0.0:
            return total
        noisy = noise.add(
            total.numpy(),
            kind=mechanism.noise,
            noise_multiplier=phase.noise_multiplier,
            sensitivity=float(mechanism.sensitivity),
            records=self.n,
            entries=mechanism.entries,
            source=self.__source,
        )
        return torch.from_numpy(noisy)

    def sampled(
        self, phase_name: str, *, view: Callable[[Any], Tensor], device: str = "cpu"
    ) -> SampledRelease:
        """The runs of a phase that is planned on random batches; nothing is charged yet.

        Args:
          view: rows on the device → float32 [b, width], each from its own record and public or
            released values alone.
        """
        import torch  # pages import this module, and compute nothing

        from core.privacy.dpsgd.gradient import SampledRelease

        phase = next((p for p in self.__plan.phases if p.name == phase_name), None)
        if phase is None or phase.sampling_rate is None or phase.mechanism != "gaussian":
            raise UnplannedReleaseError(
                f"The plan has no phase '{phase_name}' of Gaussian noise on random batches. "
                "Nothing was released."
            )
        meter, codes = self.__meter, self.__codes
        most = [EXPAND_AT_ONCE]
        laid_out: list[Tensor] = []  # all rows, once the first run is charged and if they are few

        def read_rows(chosen: NDArray[np.int64]) -> Tensor:
            if not laid_out:
                rows = view(codes.take(chosen).to(device))
                if len(codes) * rows.shape[1] <= most[0]:
                    starts = range(0, len(codes), CHUNK_ROWS)
                    try:
                        parts = [view(codes.slice(i, i + CHUNK_ROWS).to(device)) for i in starts]
                        laid_out.append(torch.cat(parts))
                    except torch.OutOfMemoryError:
                        most[0] = 0  # a full graphics card takes them batch by batch
                return rows
            index = torch.from_numpy(chosen).to(device, non_blocking=True)
            return laid_out[0].index_select(0, index)

        return SampledRelease(
            n=self.n,
            rate=phase.sampling_rate,
            noise_multiplier=phase.noise_multiplier,
            read_rows=read_rows,
            charge=lambda: meter.step(phase_name),
            source=self.__source,
            device=device,
            present=self.__present,
            people=self.__people,
            most_rows=self.__plan.most_rows,
        )

    def selection(
        self,
        phase_name: str,
        scores: Scores,
        *,
        device: str = "cpu",
        tick: Callable[[int, int], None] | None = None,
    ) -> Selection:
        """The runs of a phase of private selections; nothing is charged yet.

        Args:
          phase_name: a phase of the plan of kind "zcdp", or one without noise.
          scores: what options are scored by; they are summed over all rows once the first selection
            is charged, and the sums stay inside.
        """
        phase = next((p for p in self.__plan.phases if p.name == phase_name), None)
        silent = phase is not None and not self.__plan.budget.private
        if phase is None or (phase.mechanism != "zcdp" and not silent):
            raise UnplannedReleaseError(
                f"The plan has no phase '{phase_name}' of private selections. Nothing was released."
            )
        meter = self.__meter
        return Selection(
            lambda: self._sum(_Summed(scores), device=device, tick=tick).numpy(),
            options=scores.options,
            n=self.n,
            epsilon0=range_of(phase),
            charge=lambda: meter.step(phase_name),
            source=self.__source,
        )

    def _check(self, phase_name: str, mechanism: Mechanism) -> None:
        """Refuse what the plan does not hold, before anything is charged or computed."""
        phase = next((p for p in self.__plan.phases if p.name == phase_name), None)
        if phase is None:
            return  # the meter says so
        if phase.sampling_rate is not None:
            raise UnplannedReleaseError(
                f"Phase '{phase_name}' is planned on random batches, not on all rows. "
                "Nothing was released."
            )
        if phase.mechanism != mechanism.noise:
            raise UnplannedReleaseError(
                f"Phase '{phase_name}' is planned with {phase.mechanism} noise and the mechanism "
                f"is stated for {mechanism.noise} noise. Nothing was released."
            )
        if self.__chunk_rows % mechanism.group_size:
            raise UnplannedReleaseError(
                f"Phase '{phase_name}' looks at {mechanism.group_size} rows at a time, which "
                f"chunks of {self.__chunk_rows} would tear apart. Nothing was released."
            )
        grouped = self.__plan.unit is not None and self.__plan.unit.grouped
        if grouped and self.__hashes is None and mechanism.group_size > 1:
            raise UnplannedReleaseError(
                f"Phase '{phase_name}' looks at several people at a time, and nothing says by "
                "which keys. Nothing was released."
            )
        sensitivity = float(mechanism.sensitivity)
        if not (math.isfinite(sensitivity) and sensitivity > 0.0):
            raise UnplannedReleaseError(
                f"Phase '{phase_name}': a sensitivity must be positive and finite, got "
                f"{sensitivity}. Nothing was released."
            )

    def _sum(
        self, mechanism: Statistic, *, device: str, tick: Callable[[int, int], None] | None
    ) -> Tensor:
        """The statistic over all rows, float64 on the CPU."""
        size = mechanism.group_size
        together = self.__plan.most_rows if size == 1 else 1
        records = Records(self.__codes, self.n, self.__people, self.__present)
        if size > 1 and self.__hashes is not None:
            buckets = bucket_count(self.n, size)
            records = records.at(positions_by_key(self.__hashes, size, buckets))
        work = ChunkedStatistic(
            records,
            mechanism,
            step=max(1, self.__chunk_rows // together),
            together=size == 1,
            device=device,
            checked=self._is_repeated,
        )
        return self.__summation.total(
            work, (lambda stop: None) if tick is None else lambda stop: tick(stop, records.n)
        )

    @property
    def _is_repeated(self) -> bool:
        """Whether this very release was made, and its parts compared, a moment ago: in audits."""
        return False

    def __repr__(self) -> str:
        return f"PrivateTable(n={self.n}, columns={len(self.__domain.columns)})"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("Private rows cannot be listed, copied or stored; release a statistic.")

    __iter__ = _refuse
    __getitem__ = _refuse
    __copy__ = _refuse
    __deepcopy__ = _refuse
    __getstate__ = _refuse
    __reduce__ = _refuse
    __reduce_ex__ = _refuse


def _check_records(codes: Rows, plan: Plan, people: PersonRows | None) -> None:
    """Refuse rows that are not what the plan is for; see `PrivateTable`."""
    if people is not None and isinstance(codes, StoredCodes):
        raise ValueError("Rows of people are read in memory. Nothing was released.")
    if people is None and plan.most_rows > 1:
        raise ValueError("The plan puts rows together by person. Nothing was released.")
    if people is not None and people.counts.max() > plan.most_rows:
        raise ValueError("A person has more rows than the plan says. Nothing was released.")
    records = len(codes) if people is None else people.n
    if records != plan.n or (people is not None and people.offsets[-1] != len(codes)):
        raise ValueError(
            f"The plan is for {plan.n} records and the table has {records}. Nothing was "
            "released; make a plan for this table."
        )


@dataclass(frozen=True)
class _Summed(Statistic):
    """Sums of scores in [0, 1]; what is not finite counts for nothing."""

    inner: Scores
    sensitivity: float = 1.0  # of one option's sum

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        scores = self.inner.scores(rows).double().nan_to_num(0.0, 0.0, 0.0).clamp(0.0, 1.0)
        total: Tensor = mask.to(scores) @ scores
        return total
