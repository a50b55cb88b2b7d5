"""Purchases that break their promise, each in one way; the checks must catch every one."""

from __future__ import annotations

import pandas as pd

from core.privacy.discovery.release import Released
from core.privacy.discovery.thresholds import label_threshold
from core.privacy.mechanisms.domain_release import CellCounts, LabelCounts
from core.proposing.kinds import infer_tally
from core.reading.tally import Tally
from core.schema.schema import Schema
from tests.privacy.learned_tables import learn


class CellsStateOne(CellCounts):
    """Broken: claims that a record moves one column's cells, whatever the number of columns."""

    @property
    def sensitivity(self) -> float:
        return 1.0


class CellsForgetGridsBeside(CellCounts):
    """Broken: forgets that years, steps, waits and the calendar are counted beside the cells."""

    @property
    def sensitivity(self) -> float:
        return float(sum(scale == 1.0 for scale in self.scales)) ** 0.5


class LabelsStateOne(LabelCounts):
    """Broken: the same of lists."""

    @property
    def sensitivity(self) -> float:
        return 1.0


class CountsRows(LabelCounts):
    """Broken: counts each row of a unit as one, whatever its weight."""

    def statistic(self, rows, mask):
        return super().statistic(rows, (mask > 0).double())


def without_the_one(std: float, failure: float, lists: int, rows: int = 1) -> float:
    """Broken: a threshold for labels that nobody holds."""
    return label_threshold(std, failure, lists, rows) - 1.0


def for_one_row(std: float, failure: float, lists: int, rows: int = 1) -> float:
    """Broken: a unit with many rows may hold many labels, and only one is reckoned with."""
    return label_threshold(std, failure, lists, 1) if rows else 0.0


def for_one_list(std: float, failure: float, lists: int, rows: int = 1) -> float:
    """Broken: a unit may hold a label of its own in each list, and only one is reckoned with."""
    return label_threshold(std, failure, 1, rows) if lists else 0.0


def _with(released: Released, frame: pd.DataFrame, **change: str) -> Released:
    columns = [
        column.model_copy(
            update={
                name: getattr(infer_tally(Tally.of(frame[column.name]), "c"), field)
                for name, field in change.items()
            }
        )
        for column in released.columns
    ]
    return Released(columns=tuple(columns), rules=released.rules, counts=released.counts)


def exact_extremes(frame: pd.DataFrame, schema: Schema, epsilon: float, seed: int = 0) -> Released:
    """Broken: bounds come from the rows' least and greatest values."""
    return _with(learn(frame, schema, epsilon, seed), frame, low="low", high="high")


def in_order_of_rows(
    frame: pd.DataFrame, schema: Schema, epsilon: float, seed: int = 0
) -> Released:
    """Broken: labels stand in the order in which they occur."""
    released = learn(frame, schema, epsilon, seed)
    columns = []
    for column in released.columns:
        seen = [x for x in dict.fromkeys(frame[column.name]) if x in (column.categories or ())]
        columns.append(column.model_copy(update={"categories": (*seen, "OTHER")}))
    return Released(columns=tuple(columns), rules=released.rules, counts=released.counts)


def rest_by_name(frame: pd.DataFrame, schema: Schema, epsilon: float, seed: int = 0) -> Released:
    """Broken: the label that stands for all others is called after the first of them."""
    released = learn(frame, schema, epsilon, seed)
    columns = []
    for column in released.columns:
        rest = [x for x in frame[column.name] if x not in (column.categories or ())]
        labels = (*(column.categories or ())[:-1], rest[0])
        columns.append(column.model_copy(update={"categories": labels, "other": rest[0]}))
    return Released(columns=tuple(columns), rules=released.rules, counts=released.counts)
