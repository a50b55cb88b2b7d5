"""From the cells of drawn rows to records: where in its cell each lies, and what all rows keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.calendar_moves import agreeing
from core.encoding.codec import Block, Codec, Codes
from core.encoding.heaping import dates_until
from core.models.steps.counting.comparisons import Comparison
from core.models.steps.counting.differences import Difference, keep_differences
from core.models.steps.counting.relation_candidates import TotalCandidate
from core.models.steps.counting.relations import Determined
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.within_cells import Dependence, places
from core.models.steps.counting.zeros.structural_zeros import StructuralZero
from core.models.steps.training.column_bins import ColumnBins

Floats = NDArray[np.float64]
Cells = NDArray[np.int64]
# see `Placing`
VALUES = ("lines", "widths", "follows", "compared", "totals", "apart", "ends", "together")

PASSES = 4  # over all orders, each of which may undo another
NEAR = 1.0 / 256.0  # of a column's line, within which numbers are next to one another


@dataclass(frozen=True)
class Placing:
    """What makes records of cells, as models store it.

    Attributes:
      tensors: of the ith column, where it has fine cells, "places.i" and "keys.i", float64 [fine
        cells], their middles in [0, 1] and `ColumnScale.keys`, "others.i", its `other_keys`, and
        "fine.i", int64, the cell each belongs to, and "values.i", `ColumnScale.values`; where it
        follows, "cells.i", see `Determined`;
        of the kth barred end, "barred.k", bool [cells] of the other column.
      values: "lines", of each column how many cells lie on the line, the others being labels,
        spikes and missing; "widths", of a fine cell, 0 where each is one value; "follows",
        "compared" (see `Comparison`) and "totals", what every row is made to keep; "apart", what
        all rows together keep, see `Difference`; "ends", of the barred ends of cells, either column
        and the fine cells, from … to, that do not go with the other's; "together", see
        `Dependence`.
    """

    tensors: Mapping[str, Tensor]
    values: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        scales: Sequence[ColumnScale],
        follows: Sequence[Determined],
        totals: Sequence[TotalCandidate],
        zeros: Sequence[StructuralZero] = (),
        together: Sequence[Dependence] = (),
        compared: Sequence[Comparison] = (),
        apart: Sequence[Difference] = (),
    ) -> Placing:
        """That of columns and of the relations between them."""
        ends = [
            (*zero.columns, *end, zero.right)
            for zero in zeros
            for end in zero.ends(scales[zero.columns[0]])
        ]
        tensors = {f"cells.{relation.result}": relation.cells for relation in follows}
        for i, scale in enumerate(scales):
            if scale.grid.cells:
                tensors[f"places.{i}"] = torch.from_numpy(scale.grid.centres)
                tensors[f"keys.{i}"] = torch.from_numpy(scale.keys)
                tensors[f"others.{i}"] = torch.from_numpy(scale.other_keys)
                tensors[f"fine.{i}"] = torch.from_numpy(scale.cell_of[: scale.grid.cells].copy())
                tensors[f"values.{i}"] = torch.from_numpy(scale.values)
        tensors |= {f"barred.{k}": right for k, (*_, right) in enumerate(ends)}
        values = {
            "ends": [end for *end, _ in ends],
            "lines": [scale.line for scale in scales],
            "widths": [scale.grid.width for scale in scales],
            "follows": [[relation.source, relation.result] for relation in follows],
            "compared": [list(astuple(one)) for one in compared],
            "totals": [list(astuple(one)) for one in totals],
            "apart": [list(astuple(one)) for one in apart],
            "together": [list(one) for one in together],
        }
        return cls(tensors, values)

    @classmethod
    def plain(cls, bins: Sequence[ColumnBins]) -> Placing:
        """That of bins that are cells themselves; no relation is kept."""
        tensors = dict[str, Tensor]()
        for i, own in enumerate(bins):
            if own.cells:
                fine = torch.arange(own.cells)
                tensors |= {f"fine.{i}": fine, f"keys.{i}": fine + 1.0}
                tensors[f"places.{i}"] = torch.from_numpy(own.centres)
        lines, widths = [own.cells for own in bins], [own.width for own in bins]
        return cls(tensors, {**dict.fromkeys(VALUES, ()), "lines": lines, "widths": widths})

    @classmethod
    def stored(cls, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> Placing:
        """That of a stored model, among whatever else is stored with it."""
        own = ("places.", "keys.", "others.", "fine.", "values.", "cells.", "barred.")
        return cls(
            {name: tensor for name, tensor in tensors.items() if name.startswith(own)},
            {name: values[name] for name in VALUES},
        )

    def codes(
        self,
        codec: Codec,
        cells: Sequence[Cells],
        random: torch.Generator,
        slopes: Mapping[int, Floats] | None = None,
    ) -> Codes:
        """Records of the given cells, at places drawn from the histogram counts.

        Args:
          slopes: of some columns, float64 [n], see `numbers`.
        """
        slopes = slopes or {}
        cells = list(cells)
        for source, result in self.values["follows"]:
            cells[result] = self.tensors[f"cells.{result}"].numpy()[cells[source]]
        known = [Dependence(*one) for one in self.values["together"]]
        ranks = places(known, cells, self.values["lines"], random)
        states = np.zeros((len(cells[0]), len(codec.blocks)), dtype=np.int32)
        values = np.zeros((len(cells[0]), codec.numbers), dtype=np.float64)
        for i, block in enumerate(codec.blocks):
            if block.number is None:
                states[:, i] = cells[i]
            else:
                states[:, i], values[:, block.number] = self.numbers(
                    block, cells[i], random, ranks.get(i), slopes.get(i), self._left(i, cells)
                )
        codes = Codes(states, values)
        self._move_dates(codec, codes)
        keep_differences(codec, codes, self._differences, random)
        compared = [Comparison(*one) for one in self.values["compared"]]
        for one in sorted(_apart(compared), key=astuple):
            _make_equal(codec, codes, one, random)
        return self.settled(codec, codes)

    def follow_on(
        self, codec: Codec, codes: Codes, before: Mapping[int, int], random: torch.Generator
    ) -> None:
        """Let numbers of next events lie as far from those before, and equal them as often.

        And keep to an order.

        Args:
          codes: of windows, written in place.
          before: by column of a next event, the same one of the event before.
        """
        apart = [
            d for d in self._differences if before.get(d.candidate.second) == d.candidate.first
        ]
        keep_differences(codec, codes, apart, random)
        for one in (Comparison(*values) for values in self.values["compared"]):
            for later, now in before.items():
                if {one.low, one.high} != {later, now}:
                    continue
                _make_equal(codec, codes, replace(one, low=now, high=later), random)
                blocks = codec.blocks[now], codec.blocks[later]
                then, after = (codes.numbers(block) for block in blocks)
                wrong = then > after if one.low == now else then < after
                rows = np.flatnonzero(wrong & one.ordered)  # as far on the other side
                _write(blocks[1], codes, rows, 2.0 * then[rows] - after[rows])

    @cached_property
    def _differences(self) -> list[Difference]:
        return [Difference.stored(*one) for one in self.values["apart"]]

    def _move_dates(self, codec: Codec, codes: Codes) -> None:
        """Let dates agree with the columns that repeat their fields, where a day near does."""
        totals = [TotalCandidate(*one) for one in self.values["totals"]]
        fields = [one for one in totals if one.field]
        for date in {one.left for one in fields} - {one.total for one in totals}:
            block, own = codec.blocks[date], [one for one in fields if one.left == date]
            rows = np.flatnonzero(codes.states[:, date] == 0)
            wanted = {one.field: codes.numbers(codec.blocks[one.total])[rows] for one in own}
            drawn = codes.numbers(block)[rows]
            moved = agreeing(drawn, wanted)
            changed = (moved != drawn) & (moved >= block.line.low) & (moved <= block.line.high)
            _write(block, codes, rows[changed], moved[changed])

    def settled(self, codec: Codec, codes: Codes) -> Codes:
        """The records, in place, with numbers of each row in order, equal and adding up again."""
        _put_in_order(codec, codes, [Comparison(*one) for one in self.values["compared"]])
        for one in self.values["totals"]:
            _add_up(codec, codes, TotalCandidate(*one))
        return codes

    def _left(self, i: int, cells: Sequence[Cells]) -> Floats | None:
        """Float64 [2, n], the part of its cell, from … to in [0, 1], that is left of a column.

        All of it where everything is barred; None where nothing ever is.
        """
        ends = [(k, *end) for k, (column, *end) in enumerate(self.values["ends"]) if column == i]
        if not ends:
            return None
        fine, keys = (self.tensors[f"{name}.{i}"].numpy() for name in ("fine", "keys"))
        left = np.stack([np.zeros(len(cells[i])), np.ones(len(cells[i]))])
        for k, other, first, end in ends:
            cell = fine[first]
            barred = (cells[i] == cell) & self.tensors[f"barred.{k}"].numpy()[cells[other]]
            if first and fine[first - 1] == cell:
                left[1, barred] = np.minimum(left[1, barred], keys[first - 1] - cell)
            else:
                left[0, barred] = np.maximum(left[0, barred], keys[end - 1] - cell)
        left[:, left[0] >= left[1]] = [[0.0], [1.0]]
        return left

    def cells(self, codec: Codec, codes: Codes, i: int) -> Cells:
        """The cell of each record in a column: the way back of `codes`."""
        block = codec.blocks[i]
        state = np.asarray(codes.states[:, i], dtype=np.int64)
        if block.number is None:
            return state
        centres, line = self.tensors[f"places.{i}"].numpy(), self.values["lines"][i]
        middles = (centres[1:] + centres[:-1]) / 2.0
        fine = np.searchsorted(middles, np.asarray(codes.values[:, block.number]))
        on_line = self.tensors[f"fine.{i}"].numpy()[fine]
        return np.where(state == 0, on_line, line + state - 1)

    def drawn(self, random: torch.Generator) -> Placing:
        """The same with densities inside cells that histograms leave possible, one of those kept.

        Every column's is drawn for itself.
        """
        tensors = dict(self.tensors)
        for name, others in self.tensors.items():
            if name.startswith("others.") and len(others):
                pick = int(torch.randint(len(others), (1,), generator=random))
                tensors[name.replace("others", "keys")] = others[pick]
        return Placing(tensors, self.values)

    def numbers(
        self,
        block: Block,
        cell: Cells,
        random: torch.Generator,
        rank: Floats | None = None,
        slope: Floats | None = None,
        left: Floats | None = None,
    ) -> tuple[Cells, Floats]:
        """States [n] of a number, and positions [n] in [0, 1], 0 where there is none.

        Args:
          rank: of each record in its cell, in [0, 1]; any when None.
          slope: of each record's density along the ranks of its cell, in [-1, 1]; flat when None.
          left: of its cell, from … to, where each record may lie; all of it when None.
        """
        i = block.index
        positions, keys = (self.tensors[f"{name}.{i}"].numpy() for name in ("places", "keys"))
        line, width = self.values["lines"][i], self.values["widths"][i]
        jitter = torch.rand((2, len(cell)), generator=random, dtype=torch.float64).numpy()
        along = jitter[0] if rank is None else rank
        if slope is not None:  # the inverse of u + slope (u² - u)
            root = np.sqrt((1.0 - slope) ** 2 + 4.0 * slope * along)
            along = 2.0 * along / np.maximum(1.0 - slope + root, 1e-12)
        if left is not None:
            along = left[0] + along * (left[1] - left[0])
        fine = np.searchsorted(keys, cell + along).clip(0, len(keys) - 1)
        middle = positions[fine]
        position = (
            middle
            if not width
            else block.line.within(middle - width / 2.0, middle + width / 2.0, jitter[1])
        )
        shared = self.tensors.get(f"values.{i}", torch.zeros((0, 3))).numpy()
        for own in np.unique(shared[:, 0]):
            values, rows = shared[shared[:, 0] == own], np.flatnonzero(fine == own)
            chance = torch.rand(len(rows), generator=random, dtype=torch.float64).numpy()
            chosen = np.searchsorted(values[:, 2], chance, side="right")
            there = chosen < len(values)  # the others lie anywhere
            position[rows[there]] = values[chosen[there], 1]
        state, on_line = cell - line + 1, cell < line
        return np.where(on_line, 0, state), np.where(on_line, np.clip(position, 0.0, 1.0), 0.0)


def _copied(compared: Sequence[Comparison]) -> dict[int, int]:
    """Columns that are always equal to another, by column."""
    copied: dict[int, int] = {}
    for one in compared:
        if one.equal == 1.0:
            copied[one.high] = copied.get(one.low, one.low)
    return copied


def _apart(compared: Sequence[Comparison]) -> set[Comparison]:
    """Comparisons of columns that are not always equal; those that are count as one."""
    copied = _copied(compared)
    return {
        replace(one, low=copied.get(one.low, one.low), high=copied.get(one.high, one.high))
        for one in compared
        if one.equal < 1.0
    }


def _put_in_order(codec: Codec, codes: Codes, compared: Sequence[Comparison]) -> None:
    """Put numbers of each row in order, and make them equal where they always are, in place.

    Dates stay in their calendar: of two in the wrong order, the first goes back.
    """
    for one in sorted(_apart(compared), key=astuple) * PASSES:
        if one.ordered:
            blocks = codec.blocks[one.low], codec.blocks[one.high]
            low, high = (codes.numbers(block) for block in blocks)
            wrong = np.flatnonzero(low > high)
            back = dates_until(high[wrong], *(block.column for block in blocks))
            swapped = np.isnan(back)
            _write(blocks[0], codes, wrong, np.where(swapped, high[wrong], back))
            _write(blocks[1], codes, wrong[swapped], low[wrong[swapped]])
    for copy, column in _copied(compared).items():
        numbers = codes.numbers(codec.blocks[column])
        both = np.flatnonzero(~np.isnan(numbers + codes.numbers(codec.blocks[copy])))
        _write(codec.blocks[copy], codes, both, numbers[both])


def _make_equal(codec: Codec, codes: Codes, one: Comparison, random: torch.Generator) -> None:
    """Let as many rows have equal numbers as there are: half of those that are nearest to it.

    None gets a number where no row of the second column has one: whoever has no bill to pay, and
    pays 0, is charged as before.
    """
    blocks = codec.blocks[one.low], codec.blocks[one.high]
    low, high = (codes.numbers(block) for block in blocks)
    gap, apart = np.abs(low - high), 0.5 * min(block.column.step for block in blocks)
    lacking = round(one.equal * int((~np.isnan(gap)).sum())) - int((gap <= apart).sum())
    free = (gap > apart) & _taken(blocks[1], codes, low)
    near = np.argsort(np.where(free, gap, np.inf))[: max(0, min(2 * lacking, int(free.sum())))]
    near = near[torch.randperm(len(near), generator=random).numpy()[: max(0, lacking)]]
    _write(blocks[1], codes, near, low[near])


def _taken(block: Block, codes: Codes, numbers: Floats) -> NDArray[np.bool_]:
    """Whether some record of a column has such a number or one next to it, bool [n]."""
    there = np.flatnonzero(~np.isnan(numbers))
    state, position = block.snapped(numbers[there])
    own, places = codes.states[:, block.index], codes.values[:, block.number]
    held = np.sort(places[own == 0])
    after = np.searchsorted(held, position)
    ends = np.concatenate([[-np.inf], held, [np.inf]])
    near = np.minimum(position - ends[after], ends[after + 1] - position) <= NEAR
    inside = (numbers[there] >= block.line.low) & (numbers[there] <= block.line.high)
    taken = np.zeros(len(numbers), dtype=bool)
    taken[there] = np.where(state == 0, near & inside, np.isin(state, own))
    return taken


def _write(block: Block, codes: Codes, rows: NDArray[np.intp], numbers: Floats) -> None:
    """Write numbers of some rows, in place, within the column's bounds or where they are listed."""
    if block.number is None:
        labels = block.label_numbers
        for listed in np.flatnonzero(np.isin(labels, numbers)):
            codes.states[rows[numbers == labels[listed]], block.index] = listed
        return
    state, position = block.snapped(numbers)
    codes.states[rows, block.index] = state
    codes.values[rows, block.number] = position


def _add_up(codec: Codec, codes: Codes, one: TotalCandidate) -> None:
    """Write the sum or product of each row, in place, where all are there, within its bounds."""
    block = codec.blocks[one.total]
    total, left, right = (codes.numbers(codec.blocks[i]) for i in (one.total, one.left, one.right))
    present = ~np.isnan(total) & ~np.isnan(left + right)
    rows = np.flatnonzero(present)
    _write(block, codes, rows, one.computed(left[rows], right[rows]))
