"""Conditional facts: "if … then …" that holds in every row of a table; for eyes inside only.

A fact counts if its condition is true of many rows, and its consequence untrue of many others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.schema.column import Column, Kind
from core.schema.labels import category_indices, code_indices, from_numbers, to_labels, to_numbers
from core.schema.rules.rules import IfThen, Statement

SUPPORT = 100  # rows that have each value of the condition
ENOUGH, BROKEN_BY = 20, 0.2  # rows, and share of others, of which the consequence is untrue
MOST_IN = (12, 4)  # labels in a condition, in a consequence

Mask = NDArray[np.bool_]
_Said = tuple[Statement, Mask]  # and of which rows it is true


@dataclass(frozen=True)
class _Marks:
    """What cells hold that can be said: int [n], places in `labels`; the last for all else.

    The last label is of a missing cell, None where that is empty. Rows that have a number are in
    the `order` of these, which are `line`.
    """

    column: Column
    marks: NDArray[np.intp]
    labels: tuple[str | None, ...]
    order: NDArray[np.intp]
    line: NDArray[np.float64]

    @classmethod
    def of(cls, column: Column, cells: pd.Series[Any]) -> _Marks:
        numeric = column.kind.numeric
        line = to_numbers(cells, column) if numeric else np.full(len(cells), np.nan)
        labels = column.codes if numeric else column.categories or ()
        marks = (code_indices if numeric else category_indices)(cells, column)
        marks = np.where(marks >= 0, marks, np.where(cells.isna(), len(labels), len(labels) + 1))
        if column.other is not None:
            marks[marks == labels.index(column.other)] = len(labels) + 1
        order = np.argsort(line, kind="stable")[: np.count_nonzero(~np.isnan(line))]
        absent = None if column.form is None else column.form.absent or None
        return cls(column, marks.astype(np.intp), (*labels, absent), order, line[order])

    def among(self, marks: NDArray[np.intp], most: int) -> _Said | None:
        """That a cell holds one of some marks; None where a rule has no words for it."""
        rows, labels = np.isin(self.marks, marks), [*self.labels, None]
        values = tuple(label for mark in marks if (label := labels[mark]) is not None)
        if len(values) == len(marks) and 0 < len(values) <= most:
            return Statement(column=self.column.name, relation="in", values=values), rows
        if marks.tolist() == [len(labels) - 2]:
            return Statement(column=self.column.name, relation="missing"), rows
        return None

    def beyond(self, sign: int, number: float) -> _Said:
        """That a cell is below a number (1), or above it (-1)."""
        rows = np.zeros(len(self.marks), dtype=bool)
        rows[self.order] = sign * self.line < sign * number
        spelled = str(to_labels(from_numbers([number], self.column)).iloc[0]).removesuffix(".0")
        relation = {1: "<", -1: ">"}[sign]
        fields = {"column": self.column.name, "relation": relation, "values": (spelled,)}
        return Statement.model_validate(fields), rows


def conditional_facts(frame: pd.DataFrame, columns: Sequence[Column]) -> tuple[IfThen, ...]:
    """What holds in every row, the strongest first, nothing twice."""
    marks = [_Marks.of(column, frame[column.name]) for column in columns]
    size = {one.column.name: len(one.labels) for one in marks}
    found = []
    for first, then in permutations(marks, 2):
        for (condition, rows), (consequence, follows) in (
            *_beyond(first, then),
            *_among(first, then),
        ):
            support, untrue = int(rows.sum()), int((~follows).sum())
            if support >= SUPPORT and untrue >= max(ENOUGH, BROKEN_BY * (len(rows) - support)):
                rank = -min(support, untrue), size[condition.column] + size[consequence.column]
                rule = IfThen(condition=condition, consequence=consequence)
                found.append((rank, rule, rows, follows))
    kept: list[tuple[IfThen, Mask, Mask]] = []
    for _, rule, rows, follows in sorted(found, key=lambda one: one[0]):
        turned = [one for one in kept if one[0].columns == rule.columns[::-1]]
        if any(not ((rows ^ ~less) | (follows ^ ~more)).any() for _, more, less in turned):
            continue  # the same turned round
        if turned or not any(
            one.columns[1] == rule.columns[1] and not (rows & ~more | less & ~follows).any()
            for one, more, less in kept
        ):
            kept.append((rule, rows, follows))
    return tuple(rule for rule, *_ in kept)


def _beyond(first: _Marks, then: _Marks) -> Iterator[tuple[_Said, _Said]]:
    """One label of all numbers below one, or above one; and where no other number has it, that."""
    for sign in (1, -1) if first.column.step > 0 else ():
        marks, line = then.marks[first.order][::sign], first.line[::sign]
        said, others = then.among(marks[:1], 1), np.flatnonzero(marks != marks[:1])
        if said is None or not len(others):
            continue
        within = sign * line < sign * line[others[0]]
        if min(len(np.unique(line[within])), len(np.unique(line[~within]))) < 2:
            continue  # one number alone is no threshold
        if (marks[~within][:SUPPORT] != marks[0]).mean() < BROKEN_BY:
            continue  # nor where it only becomes less frequent
        last, (statement, rows) = line[within][-1], said
        number = last + sign * first.column.step
        if first.column.kind is not Kind.DATETIME and float(f"{number:.2g}") != number:
            continue  # a number that nobody would choose
        yield first.beyond(sign, number), said
        if (marks[~within] != marks[0]).all():
            relation = "present" if statement.relation == "missing" else "not in"
            yield (
                first.beyond(-sign, last),
                (statement.model_copy(update={"relation": relation}), ~rows),
            )


def _among(first: _Marks, then: _Marks) -> Iterator[tuple[_Said, _Said]]:
    """What holds of all rows that have one of some labels."""
    shape = (len(first.labels) + 1, len(then.labels) + 1)
    both = np.bincount(first.marks * shape[1] + then.marks, minlength=shape[0] * shape[1])
    both = both.reshape(shape)
    occurs, often = both > 0, both.sum(axis=1) >= SUPPORT
    for marks in np.unique(occurs[often & (occurs.sum(axis=1) <= MOST_IN[1])], axis=0):
        causes = np.flatnonzero(often[:-1] & ~(occurs & ~marks)[:-1].any(axis=1))
        condition = first.among(causes, MOST_IN[0])
        consequence = then.among(np.flatnonzero(marks), MOST_IN[1])
        if condition is not None and consequence is not None:
            yield condition, consequence
