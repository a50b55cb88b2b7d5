"""The columns that windows have, made of the columns of a table and of what the windows add."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from core.encoding.codec import Codec
from core.encoding.count_bins import CountBins
from core.encoding.windows import (
    AGAIN,
    AGAIN_LABELS,
    FIRST,
    GAP,
    LEFT,
    NEXT,
    NOW,
    NUMBER,
    OWNER,
    PERSON,
    PLACE,
    SINCE,
    Windows,
)
from core.schema.column import DomainColumn, Kind
from core.schema.rules.gaps import FEW, free_name
from core.schema.schema import Domain

LEAST_LABELS = 3  # of a list of which windows say whether a label comes again


class FileOfEvents(NamedTuple):
    """Events whose windows are made; `waits_from`, `limits` and `owner` as of `Windows`."""

    columns: Collection[str]  # that belong to these events
    order: str | None
    waits_from: tuple[str, float] | None = None
    limits: Sequence[Mapping[str, float]] = ()
    owner: int | None = None


def windows_of_files(
    columns: Sequence[DomainColumn],
    constant: Collection[str],
    files: Sequence[FileOfEvents],
    *,
    most: int,
    empty: bool,
    taken: Collection[str],
) -> tuple[Windows, ...]:
    """The windows of each file's events, in columns of one domain.

    Args:
      constant: columns that hold for the person.
      most: events of a person in a file, ≥ 2.
      empty: whether somebody may have no event.
    """
    maker = _Maker(set(taken), empty, most)
    bins = CountBins.of(0 if empty else 1, most), CountBins.of(1, most), CountBins.of(0, most)
    for column in columns:
        if column.name in constant:
            maker.add(column, (PERSON, column.name), column.name)
    dated = []
    for file in files:
        owners = () if file.owner is None else files[file.owner].columns
        maker.owners([column for column in columns if column.name in owners])
        dated.append(maker.file(file, columns, bins))
    domain = Domain(columns=tuple(maker.columns), roles=maker.roles)
    own = Codec(Domain(columns=tuple(columns)))
    made = []
    for side, (file, order) in enumerate(zip(files, dated, strict=True)):
        known = maker.roles.items()
        roles = {name: (r, of) for name, (r, of, at) in known if r == PERSON or at == side}
        waits_from = file.waits_from if order else None
        limits = tuple(file.limits if order else ())
        made.append(Windows(own, domain, roles, order, waits_from, *bins, limits, file.owner))
    return tuple(made)


class _Maker:
    """Columns of windows, as they are added."""

    def __init__(self, taken: set[str], empty: bool, most: int):
        self._taken, self._empty, self._most = taken, empty, most
        self.columns: list[DomainColumn] = []
        self.roles: dict[str, tuple[str, str, int]] = {}
        self._side = 0

    def owners(self, columns: Sequence[DomainColumn]) -> None:
        """Columns of the rows that a file's events belong to; people may have none."""
        for column in columns:
            self.add(column, (OWNER, column.name), f"whose {column.name}")

    def file(
        self, file: FileOfEvents, columns: Sequence[DomainColumn], bins: Sequence[CountBins]
    ) -> str | None:
        """The windows of a file's events: which column that models see sorts them, if any."""
        self.listed("number of events", NUMBER, bins[0], missing=False)
        events = [column for column in columns if column.name in file.columns]
        dated = next((column for column in events if column.name == file.order), None)
        for column in events:
            self.add(column, (FIRST, column.name), f"first {column.name}")
        for role in (NOW, NEXT):
            for column in events:
                if column is not dated:
                    self.add(column, (role, column.name), f"{role} {column.name}")
        if dated is not None:
            self.distance(dated, GAP, f"{dated.name} to next")
            self.distance(dated, SINCE, f"{dated.name} since first")
        self.listed("place", PLACE, bins[1])
        self.listed("events left", LEFT, bins[2])
        for column in events:
            listed = len(column.categories or ()) >= LEAST_LABELS and column is not dated
            if listed and self._most > 2:
                self.again(column)
        self._side += 1
        return None if dated is None else dated.name

    def add(self, column: DomainColumn, role: tuple[str, str], name: str) -> None:
        """A column with the values of another; of the person's, what was learned goes along."""
        if role[0] != PERSON:
            absent = column.missing or role[0] != FIRST or self._empty
            column = column.model_copy(update={"missing": absent, "learned": None})
        self._put(column, role, name)

    def _put(self, column: DomainColumn, role: tuple[str, str], name: str) -> None:
        if role[0] != PERSON:
            name = free_name(name, self._taken)
        self._taken.add(name)
        self.columns.append(column.model_copy(update={"name": name}))
        self.roles[name] = (*role, self._side)

    def listed(self, name: str, role: str, bins: CountBins, *, missing: bool = True) -> None:
        """A column of numbers as labels."""
        labels = bins.labels
        column = DomainColumn(name=name, kind=Kind.ORDERED, categories=labels, missing=missing)
        self._put(column, (role, ""), name)

    def again(self, column: DomainColumn) -> None:
        """Whether a list's next label has been before."""
        name = f"{column.name} again"
        labels = DomainColumn(name=name, kind=Kind.CATEGORY, categories=AGAIN_LABELS, missing=True)
        self._put(labels, (AGAIN, column.name), name)

    def distance(self, column: DomainColumn, role: str, name: str) -> None:
        """A column of distances along one that sorts; places apart, if that is a list."""
        if column.kind.listed:
            high, whole = len(column.categories or ()) - 1.0, True
        else:
            high = ((column.high or 0.0) - (column.low or 0.0)) / (column.step or 1.0)
            whole = bool(column.step)
        long = not whole or high > FEW
        gap = DomainColumn(
            name=name,
            kind=Kind.INTEGER if whole else Kind.NUMBER,
            missing=True,
            low=0.0,
            high=high,
            step=1.0 if whole else 0.0,
            scale="log" if long else "linear",  # waits have a heavy tail
            spikes=(0.0,) if long else (),
            dtype="float64",
        )
        self._put(gap, (role, ""), name)
