"""Shaped output: rows of chosen values, at chosen shares, without missing cells.

Rows are drawn from a trained model and selected, so this is post-processing: no real row is read
and no ε is spent. Rules hold in every row, since rows are taken whole: where a missing cell is
filled, all columns that a rule ties to it come from one other drawn row. Made-up keys are numbered
anew over what was taken.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel

from core.message import Message
from core.models.card import Frozen
from core.models.filling import complete_rows, fill_gaps
from core.models.in_parts import sampled
from core.models.saved_model import Fitted
from core.schema.conditions import ConditionError, parse_conditions, parse_shares
from core.schema.rules.steps import rewritten
from core.schema.schema import Domain
from core.schema.surrogates import check_room, renewed_links, surrogate

MOST_DRAWN = 1_000_000  # rows, or ten times those wanted: then a condition counts as too rare
FEWEST, MOST_AT_ONCE = 2_000, 100_000  # rows drawn at a time

Rows = NDArray[np.intp]


class Shape(Frozen):
    """What is asked of rows, beside how many.

    Attributes:
      where: conditions that every row keeps, see `core.schema.conditions`.
      share: shares of one column's values, or None.
      fill_missing: whether no cell of a modelled column is missing.
    """

    where: tuple[str, ...] = ()
    share: str | None = None
    fill_missing: bool = False

    @property
    def plain(self) -> bool:
        """Whether rows are taken as the model draws them."""
        return self == Shape()

    @property
    def digest(self) -> str:
        """Names it, 8 hex digits."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:8]


class Measured(BaseModel):
    """How common something is in what the model draws by itself.

    Attributes:
      drawn: rows of the model's own output that were looked at.
      fitting: of them, those that have it.
      asked: share that was asked for, or None.
      rows: rows of the table made that have it.
    """

    text: str
    drawn: int
    fitting: int
    asked: float | None = None
    rows: int = 0

    @property
    def words(self) -> str:
        """One sentence."""
        share = self.fitting / self.drawn if self.drawn else 0.0
        which = (
            Message("rows that the model drew")
            if self.asked is None
            else Message("drawn rows that fit")
        )
        own = Message(
            "{fitting:,} of {drawn:,} {which} ({share:.2%})",
            fitting=self.fitting,
            drawn=self.drawn,
            which=which,
            share=share,
        )
        asked = (
            "" if self.asked is None else Message("; {asked:.2%} were asked for", asked=self.asked)
        )
        return Message(
            "{text}: {own}{asked}; {rows:,} rows of the table.",
            text=self.text,
            own=own,
            asked=asked,
            rows=self.rows,
        )


class ShapeFacts(BaseModel):
    """What became of a request; made of the model's own output alone.

    Attributes:
      drawn: rows that the model drew.
      conditions: each condition by itself, and all together where there are several.
      shares: of the values whose shares were set, among rows that keep every condition.
      filled: cells that were filled from other drawn rows.
      left_out: drawn rows that were left out because a cell was missing.
    """

    rows: int
    seed: int | None = None
    shape: Shape = Shape()
    drawn: int = 0
    conditions: tuple[Measured, ...] = ()
    shares: tuple[Measured, ...] = ()
    filled: int = 0
    left_out: int = 0

    @property
    def words(self) -> tuple[str, ...]:
        """A sentence for each thing that was asked for."""
        lines = [measured.words for measured in (*self.conditions, *self.shares)]
        if self.shape.fill_missing and self.left_out:
            lines.append(
                Message(
                    "{left_out:,} drawn rows with a missing cell were left out.",
                    left_out=self.left_out,
                )
            )
        elif self.shape.fill_missing:
            lines.append(
                Message(
                    "{filled:,} missing cells were filled from other drawn rows.",
                    filled=self.filled,
                )
            )
        return tuple(lines)


@dataclass(frozen=True)
class ShapedTable:
    """A table [rows, columns] of a model's domain, and what became of the request."""

    table: pd.DataFrame
    facts: ShapeFacts


def draw_shaped(fitted: Fitted, rows: int, shape: Shape, seed: int | None = None) -> ShapedTable:
    """Draw rows until enough of them are as asked.

    Args:
      shape: what they must be like; without any, they are the model's own for this seed.

    Raises:
      ConditionError: it cannot be, or is too rare for this model; says how many rows were drawn and
        how many fit.
    """
    if shape.plain:
        table = sampled(fitted, rows, seed)
        return ShapedTable(table, ShapeFacts(rows=rows, seed=seed, drawn=rows))
    check_room(fitted.domain.columns, rows, fitted.domain.person)
    selection = _Selection(fitted.domain, rows, shape)
    random = np.random.default_rng(secrets.randbits(63) if seed is None else seed)
    most = max(MOST_DRAWN, 10 * rows)
    while not selection.complete:
        if selection.drawn >= most:
            raise ConditionError(selection.refusal)
        size = min(selection.next_size, most - selection.drawn)
        selection.take(fitted.sample(size, int(random.integers(2**62))), random)
    return ShapedTable(selection.table(), selection.facts(seed))


class _Selection:
    """The rows that were taken so far, and counts of all that were drawn."""

    def __init__(self, domain: Domain, rows: int, shape: Shape):
        self.domain, self.rows, self.shape = domain, rows, shape
        self.conditions = parse_conditions(shape.where, domain)
        if shape.fill_missing and any(condition.missing for condition in self.conditions):
            raise ConditionError(
                "Missing cells are to be filled and a condition asks for missing ones. "
                "Nothing was made. Leave one of the two out."
            )
        self.shares = None if shape.share is None else parse_shares(shape.share, domain)
        self.parts = () if self.shares is None else self.shares.parts
        rest = 1.0 if self.shares is None else self.shares.rest
        self.wanted = _counts(rows, [*(share for _, share in self.parts), rest])
        self.drawn = self.fitting = self.filled = self.left_out = 0
        self._of_condition = np.zeros(len(self.conditions), dtype=np.intp)
        self._of_part = np.zeros(len(self.wanted), dtype=np.intp)  # rows that fit, by part
        self._taken = np.zeros(len(self.wanted), dtype=np.intp)
        self._pieces: list[pd.DataFrame] = []
        person = domain.person
        several = person is not None and person.grouped and person.rows > 1
        self._keys = () if person is None or not several else person.columns

    @property
    def complete(self) -> bool:
        """Whether there are rows enough of each part."""
        return bool((self._taken >= self.wanted).all())

    @property
    def next_size(self) -> int:
        """How many rows to draw now, by how common those that lack have been so far."""
        lacking = self.wanted - self._taken
        if not self.drawn:
            return min(max(2 * self.rows, FEWEST), MOST_AT_ONCE)
        rate = np.maximum(self._of_part, 0.5) / self.drawn
        return int(np.clip(math.ceil(1.2 * float((lacking / rate).max())), FEWEST, MOST_AT_ONCE))

    def take(self, batch: pd.DataFrame, random: np.random.Generator) -> None:
        """Take of a batch what is wanted.

        Args:
          batch: rows of the domain, as the model drew them.
        """
        self.drawn += len(batch)
        keeps = [condition.keeps(batch) for condition in self.conditions]
        self._of_condition += np.array([one.sum() for one in keeps], dtype=np.intp)
        fits = np.logical_and.reduce([np.ones(len(batch), dtype=bool), *keeps])
        self.fitting += int(fits.sum())
        chosen = batch[fits]
        if self.shape.fill_missing:
            chosen = self._without_gaps(chosen, random)
        part = np.full(len(chosen), len(self.parts))  # all other values, where there are shares
        for at, (condition, _) in enumerate(self.parts):
            part[condition.keeps(chosen)] = at
        self._of_part += np.bincount(part, minlength=len(self.wanted))
        lacking = self.wanted - self._taken
        order = pd.Series(part).groupby(part).cumcount().to_numpy()  # its place within its part
        take = order < lacking[part]
        self._taken += np.bincount(part[take], minlength=len(self.wanted))
        self._pieces.append(chosen[take])

    def _without_gaps(self, rows: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
        """Rows without missing cells: filled, or left out where rows belong to people.

        What is constant or in order within a person could not be filled row by row.
        """
        if not self._keys:
            rows, filled = fill_gaps(rows, self.domain, random)
            self.filled += filled
        whole = complete_rows(rows, self.domain)
        self.left_out += int((~whole).sum())
        return rows[whole]

    @property
    def refusal(self) -> str:
        """Why there will not be enough rows, in numbers of the model's own output."""
        at = int((self.wanted - self._taken).argmax())
        what = ""
        if self.parts:
            named = self.parts[at][0].text if at < len(self.parts) else Message("other values")
            what = f" with {named}"
        gaps = Message(" and have no missing cell") if self.shape.fill_missing else ""
        return Message(
            "Of {drawn:,} drawn rows {fit:,} fit{what}{gaps}; {needed:,} are needed. No file was "
            "made and nothing was spent. Ask for fewer rows or a wider condition.",
            drawn=self.drawn,
            fit=self._of_part[at],
            what=what,
            gaps=gaps,
            needed=self.wanted[at],
        )

    def table(self) -> pd.DataFrame:
        """What was taken, in the domain's columns and dtypes, with keys of its own."""
        count = len(self._pieces)
        table = pd.concat(self._pieces, keys=range(count), names=["batch"], ignore_index=False)
        batch = table.index.get_level_values("batch").to_numpy()
        table = table.reset_index(drop=True)
        who = None
        if self._keys:
            keys = table[list(self._keys)].assign(batch=batch)
            who = keys.groupby(list(keys.columns), sort=False, dropna=False).ngroup().to_numpy()
        cells = {}
        for column in self.domain.columns:
            if column.modelled:
                cells[column.name] = rewritten(table[column.name], column)
            elif who is not None and column.name in self._of_person:
                values = surrogate(column, int(who.max()) + 1)
                cells[column.name] = values.iloc[who].reset_index(drop=True)
            else:
                there = table[column.name].notna()
                cells[column.name] = surrogate(column, len(table), there=there)
        for file in () if (person := self.domain.person) is None else person.files:
            if file.event is not None and file.owner is not None:
                old = table[file.event], table[file.owner]
                cells[file.event] = renewed_links(*old, cells[file.owner], batch)
        return pd.DataFrame(cells)

    @property
    def _of_person(self) -> tuple[str, ...]:
        person = self.domain.person
        return () if person is None else (*person.columns, *person.constant)

    def facts(self, seed: int | None) -> ShapeFacts:
        """What became of the request."""
        conditions = [
            Measured(text=one.text, drawn=self.drawn, fitting=int(n), rows=self.rows)
            for one, n in zip(self.conditions, self._of_condition, strict=True)
        ]
        if len(conditions) > 1:
            text = " and ".join(one.text for one in self.conditions)
            conditions.append(
                Measured(text=text, drawn=self.drawn, fitting=self.fitting, rows=self.rows)
            )
        counted = zip(self.parts, self._of_part[:-1], self._taken[:-1], strict=True)
        fitting = int(self._of_part.sum())
        shares = [
            Measured(
                text=one.text, drawn=fitting, fitting=int(n), asked=share, rows=int(taken)
            )
            for (one, share), n, taken in counted
        ]  # fmt: skip
        return ShapeFacts(
            rows=self.rows,
            seed=seed,
            shape=self.shape,
            drawn=self.drawn,
            conditions=tuple(conditions),
            shares=tuple(shares),
            filled=self.filled,
            left_out=self.left_out,
        )


def _counts(rows: int, shares: list[float]) -> NDArray[np.intp]:
    """Rows for each share: those next below, and one more where most is left over.

    >>> _counts(10, [0.25, 0.25, 0.5]).tolist(), _counts(3, [0.5, 0.5, 0.0]).tolist()
    ([3, 2, 5], [2, 1, 0])
    """
    exact = np.asarray(shares) * rows
    counts = np.floor(exact + 1e-9).astype(np.intp)
    most_left = np.argsort(counts - exact, kind="stable")[: rows - int(counts.sum())]
    counts[most_left] += 1
    return counts
