"""Figures of real rows that a plan pays for: sums with noise, and what follows from them.

A row that keeps the question's conditions adds (v, 1 - v) to the two sums of its group, with v in
[0, 1] from that row and the public domain alone: whether it has the value that is counted, or where
its number lies between the column's bounds. It lies in one group at most, so Δ₂ = 1 under zero-out.
Of a count, v says whether a row keeps them, and all rows do. A person's rows weigh one together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.codec import Codec
from core.encoding.person_rows import votes
from core.inference.questions import Question, Statistic
from core.models.card import Frozen
from core.privacy.mechanisms.additive import Mechanism
from core.schema.conditions import Condition
from core.schema.schema import Domain

if TYPE_CHECKING:
    from torch import Tensor

PAYABLE = (Statistic.COUNT, Statistic.SHARE, Statistic.MEAN, Statistic.DIFFERENCE)
ROOM = 1e-6  # of a column's range: positions are float32
FEWEST = 8.0  # standard deviations of noise that a group must be: then intervals hold


def terms(question: Question, codec: Codec, rows: Any) -> NDArray[np.float64]:
    """What each of b rows, `Codes` of the codec, adds to the sums, float64 [b, k]; see above."""
    kept = np.ones(len(rows), dtype=bool)
    for condition in question.conditions(codec.domain):
        kept &= _holds(condition, codec, rows)
    counted = question.counted(codec.domain)
    if question.statistic is Statistic.COUNT:
        kept, value = np.ones_like(kept), kept.astype(np.float64)
    elif counted is not None:
        value = _holds(counted, codec, rows).astype(np.float64)
    else:
        block = codec.block(question.column)
        numbers, (low, high) = rows.numbers(block), (block.line.low, block.line.high)
        kept &= ~np.isnan(numbers)
        value = np.clip(np.nan_to_num((numbers - low) / ((high - low) or 1.0)), 0.0, 1.0)
    groups = [kept]
    if question.statistic is Statistic.DIFFERENCE:
        by = codec.block(question.by[0])
        state = np.asarray(rows.states[:, by.index])
        groups = [kept & (state == by.states.index(label)) for label in question.groups]
    return np.stack([group * part for group in groups for part in (value, 1.0 - value)], axis=1)


def _holds(condition: Condition, codec: Codec, rows: Any) -> NDArray[np.bool_]:
    """Which rows keep a condition, from their codes."""
    block, column = codec.block(condition.column.name), condition.column
    state = np.asarray(rows.states[:, block.index])
    if condition.labels is not None:
        return np.isin(state, [block.states.index(label) for label in condition.labels])
    absent = state >= block.present
    if condition.missing:
        codes = () if column.form is None or not column.kind.listed else column.form.codes
        return absent | np.isin(state, [i for i, name in enumerate(block.states) if name in codes])
    numbers, room = rows.numbers(block), ROOM * (block.line.high - block.line.low)
    inside = (numbers >= condition.low - room) & (numbers <= condition.high + room)
    return np.asarray(inside & ~absent)


@dataclass(frozen=True)
class QuestionSums(Mechanism):
    """The sums of one question, which `check` passed for the codec's domain."""

    question: Question
    codec: Codec
    noise: Literal["gaussian"] = "gaussian"
    sensitivity: float = 1.0

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        """Float64 [k]."""
        import torch  # pages import this module, and compute nothing

        each = torch.from_numpy(terms(self.question, self.codec, rows.to("cpu")))
        return mask.to("cpu", torch.float64) @ each


class Measured(Frozen):
    """The noisy sums [k] of one question; low and high are what shares of 0 and 1 stand for."""

    question: Question
    low: float
    high: float
    noise_std: float
    sums: tuple[float, ...]

    def figure(self, sums: Sequence[float]) -> tuple[float, float]:
        """What sums come to, and its standard error if they have that noise; nan where it hides it.

        The error of a share p = a / (a + b) is (e_a (1 - p) - e_b p) / (â + b̂).
        """
        value, variance = 0.0, 0.0
        for sign, a, b in zip((1, -1), sums[::2], sums[1::2], strict=False):
            total = a + b if a + b > FEWEST * self.noise_std else np.nan
            share, wide = float(np.clip(a / total, 0.0, 1.0)), self.high - self.low
            value += sign * (self.low + wide * share)
            variance += (wide * self.noise_std * np.hypot(share, 1 - share) / total) ** 2
        return value, float(np.sqrt(variance))


def synthetic_figure(found: Measured, rows: pd.DataFrame, domain: Domain) -> float:
    """The same figure of a synthetic table's rows; nan where none keeps the conditions."""
    codec = Codec(domain.project(found.question.columns(domain)))
    sums = votes(rows, domain.person) @ terms(found.question, codec, codec.encode(rows))
    return found.model_copy(update={"noise_std": 0.0}).figure(sums.tolist())[0]
