"""What a mixture says of some columns given others, in closed form.

Within a component columns are independent, so what is known of a record changes the weights of the
components alone, by how likely each makes it (Bayes); the other columns are drawn from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codec, Codes
from core.models.steps.counting.placing import Placing
from core.models.steps.training.column_bins import one_of_each

Factors = Mapping[str, Tensor | None]
LEAST_SHARE = 1e-9  # of a cell in a component
DRAWN = 50_000  # numbers of which a quantile is taken


@dataclass(frozen=True)
class MixtureConditionals:
    """Draws of some columns given others.

    Attributes:
      weights: "weights" [components], "shares" [components, cells], and "barred", see
        `mending.stored_zeros`.
      never_missing: columns of first events that no event misses, see `events_shown`.
      limits: columns of a person that events end by, each with the waits for these events.
    """

    codec: Codec
    placing: Placing
    weights: Mapping[str, Tensor]
    sizes: Sequence[int]
    never_missing: frozenset[str] = frozenset()
    limits: tuple[tuple[str, str], ...] = ()

    @cached_property
    def log_weights(self) -> Tensor:
        """Of the components, float32 [components]."""
        return self.weights["weights"].float().clamp_min(1e-12).log()

    @cached_property
    def _shares(self) -> tuple[Tensor, ...]:
        """Float32 [cells, components] of each column."""
        return tuple(part.t().contiguous() for part in self._of_component)

    @cached_property
    def _of_component(self) -> tuple[Tensor, ...]:
        """The same, [components, cells]."""
        return torch.split(self.weights["shares"].float(), list(self.sizes), dim=1)

    @cached_property
    def _logs(self) -> tuple[Tensor, ...]:
        return tuple(share.clamp_min(LEAST_SHARE).log() for share in self._shares)

    def cells(self, codes: Codes, name: str) -> Tensor:
        """The cell of a column that each of n records lies in, int64 [n]."""
        index = self.codec.block(name).index
        return torch.from_numpy(self.placing.cells(self.codec, codes, index))

    def table(self, first: str, second: str) -> Tensor:
        """Shares of the cells of two columns, float32 [cells, cells]."""
        one, two = (self._shares[self.codec.block(name).index] for name in (first, second))
        return (one * self.weights["weights"].float()) @ two.t()

    def barred(self, first: str, second: str) -> Tensor | None:
        """Bool [cells, cells] of two columns, which go together in no record; None of none.

        Numbers are left to what a mixture says of them: several half-lines may leave none.

        Args:
          second: of labels, or nothing is barred.
        """
        if self.codec.block(second).number is not None:
            return None
        ends = np.cumsum([0, *self.sizes])
        one, two = (self.codec.block(name).index for name in (first, second))
        parts = [self.weights["barred"][:2, :, ends[i] : ends[i + 1]] for i in (one, two)]
        named = [part.any(dim=2) for part in parts]  # [2 sides, zeros]
        never = torch.zeros((self.sizes[one], self.sizes[two]), dtype=torch.bool)
        for side in (0, 1):
            for i in torch.nonzero(named[0][side] & named[1][1 - side])[:, 0].tolist():
                never |= parts[0][side, i][:, None] & parts[1][1 - side, i]
        return never if never.any() else None

    def broken(self, codes: Codes, given: Sequence[str], drawn: Sequence[str]) -> NDArray[np.bool_]:
        """Which of n records hold what goes together in none, of drawn columns with any before."""
        wrong = torch.zeros(len(codes), dtype=torch.bool)
        for at, name in enumerate(drawn):
            for known in (*given, *drawn[:at]):
                if (never := self.barred(known, name)) is not None:
                    wrong |= never[self.cells(codes, known), self.cells(codes, name)]
        return np.asarray(wrong.numpy())

    def log_likelihood(self, codes: Codes, names: Sequence[str]) -> Tensor:
        """Of these columns of n records by each component, float32 [n, components]."""
        total = torch.zeros((len(codes), len(self.log_weights)))
        for name in names:
            total += self._logs[self.codec.block(name).index][self.cells(codes, name)]
        return total

    def log_there_once(self, names: Sequence[str]) -> Tensor:
        """What to add to `log_likelihood` of columns that are there, or missing, all at once.

        A component in which some records lack them all would count each column as if it were
        missing by itself. Float32 [components].
        """
        there = [
            1.0 - self._of_component[self.codec.block(name).index][:, gone]
            for name in names
            if (gone := self.missing_cell(name)) is not None
        ]
        if not there:
            return torch.zeros(())
        shares = torch.stack(there).clamp_min(LEAST_SHARE)
        return shares.mean(dim=0).log() - shares.log().sum(dim=0)

    def draw(
        self,
        log_weights: Tensor,
        codes: Codes,
        factors: Factors,
        given: Sequence[str],
        random: torch.Generator,
    ) -> None:
        """Draw columns of n records and write them into their codes.

        Args:
          log_weights: of each record's components, [n, components], up to a constant each.
          given: columns that are known, with which some labels go together in no record.
          factors: of each column that is drawn, what its cells' shares are multiplied by, float32
            [1, cells]; None for nothing.
        """
        for name, factor in factors.items():
            if factor is not None:
                kept = factor @ self._shares[self.codec.block(name).index]
                log_weights = log_weights + kept.clamp_min(LEAST_SHARE).log()
        component = one_of_each(torch.softmax(log_weights, dim=1), random)
        for name, factor in factors.items():
            shares = self._of_component[self.codec.block(name).index][component]
            shares = shares if factor is None else _where_any(shares * factor, shares)
            for known in given:
                if (never := self.barred(known, name)) is not None:
                    shares = _where_any(shares * ~never[self.cells(codes, known)], shares)
            self.write(codes, name, one_of_each(shares, random), random)
            given = [*given, name]

    def write(self, codes: Codes, name: str, cells: Tensor, random: torch.Generator) -> None:
        """Put n records into cells of a column, numbers anywhere within theirs."""
        block = self.codec.block(name)
        if block.number is None:
            codes.states[:, block.index] = cells.numpy()
        else:
            state, value = self.placing.numbers(block, cells.numpy(), random)
            codes.states[:, block.index], codes.values[:, block.number] = state, value

    def follow_on(self, codes: Codes, before: Mapping[str, str], random: torch.Generator) -> None:
        """See `Placing.follow_on`; columns by name."""
        index = {name: self.codec.block(name).index for name in (*before, *before.values())}
        pairs = {index[later]: index[now] for later, now in before.items()}
        self.placing.follow_on(self.codec, codes, pairs, random)

    def reach(self, name: str, share: float) -> float:
        """The number that this share of a column's numbers does not exceed; infinite of none."""
        block, random = self.codec.block(name), torch.Generator().manual_seed(0)
        cells = torch.multinomial(
            self.table(name, name).sum(dim=1), DRAWN, replacement=True, generator=random
        )
        state, position = self.placing.numbers(block, cells.numpy(), random)
        numbers = block.numbers(state, position)
        there = numbers[~np.isnan(numbers)]
        return float(np.quantile(there, share)) if len(there) else np.inf

    def places(self, name: str, count: int, random: torch.Generator) -> Tensor:
        """Numbers in each of a column's cells, float32 [cells, count]; NaN in those of none."""
        block, cells = self.codec.block(name), len(self._shares[self.codec.block(name).index])
        each = np.repeat(np.arange(cells), count)
        numbers = block.numbers(*self.placing.numbers(block, each, random))
        return torch.from_numpy(numbers.reshape(cells, count)).float()

    def missing_cell(self, name: str) -> int | None:
        """The cell of missing values of a column, without codes for them; None without any."""
        block = self.codec.block(name)
        if not block.column.missing or block.missing_state is None:
            return None
        line = self.placing.values["lines"][block.index]
        return block.missing_state + (0 if block.number is None else int(line) - 1)


def _where_any(left: Tensor, shares: Tensor) -> Tensor:
    """What is left of each record's shares, or all of them where nothing is."""
    return torch.where(left.sum(dim=1, keepdim=True) > 0.0, left, shares)
