"""Estimates: a question and a table's rows give named values and their naive standard errors.

Naive: as if the rows were a sample of people. What noise and model add is for
`core.inference.intervals`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.inference.questions import Question, Statistic, named
from core.message import Message
from core.schema.column import DomainColumn
from core.schema.labels import is_absent, listed_labels, to_numbers
from core.schema.schema import Domain

Floats = NDArray[np.float64]
Scale = Literal["share", "count", "number"]
Name = tuple[str, ...]  # what a value is of: (), (label,), (row, column), (term,) or (time,)

MISSING = Message("(missing)")
TIMES = 12  # steps of a survival curve
FIRST, SECOND, GAP = "first", "second", "difference"
INTERCEPT = Message("(intercept)")


@dataclass(frozen=True)
class Estimates:
    """Values [k] of one table; NaN where it cannot tell.

    Attributes:
      names: what each value is of, the same for every table of the domain.
      errors: naive standard errors [k].
      scales: "share" lies in [0, 1], "count" in [0, rows].
      rows: that keep the question's conditions.
      most: rows of the table, what counts are shares of.
    """

    names: tuple[Name, ...]
    values: Floats
    errors: Floats
    scales: tuple[Scale, ...]
    rows: int
    most: int


Value = tuple[Name, float, float, Scale]  # name, value, naive standard error, scale


def estimate(question: Question, table: pd.DataFrame, domain: Domain) -> Estimates:
    """The answer of one table's rows.

    Args:
      question: checked against the domain.
      table: with the columns that the question names, as the domain writes them.
    """
    keep = np.ones(len(table), dtype=bool)
    for condition in question.conditions(domain):
        keep &= condition.keeps(table)
    rows = table if keep.all() else table[keep]
    if question.statistic is Statistic.COUNT:
        name, share, error, _ = _share_of((), keep)
        found = [(name, float(keep.sum()), error * len(table), "count")]
    else:
        found = list(_ESTIMATORS[question.statistic](question, rows, domain))
    names, values, errors, scales = zip(*found, strict=True)
    numbers = np.array(values, dtype=np.float64), np.array(errors, dtype=np.float64)
    return Estimates(names, *numbers, scales, rows=len(rows), most=len(table))


def _share_of(name: Name, hits: NDArray[np.bool_]) -> Value:
    return _share_in(name, int(hits.sum()), len(hits))


def _share_in(name: Name, count: int, n: int) -> Value:
    share = count / n if n else np.nan
    return name, share, float(np.sqrt(share * (1 - share) / n)) if n else np.nan, "share"


def _mean_of(name: Name, values: Floats) -> Value:
    values = values[~np.isnan(values)]
    n = len(values)
    if n < 2:
        return name, float(values[0]) if n else np.nan, np.nan, "number"
    return name, float(values.mean()), float(values.std(ddof=1) / np.sqrt(n)), "number"


def _numbers(rows: pd.DataFrame, name: str, domain: Domain) -> Floats:
    column = named(domain, name)
    return np.where(is_absent(rows[name], column), np.nan, to_numbers(rows[name], column))


def label_codes(rows: pd.DataFrame, column: DomainColumn) -> NDArray[np.intp]:
    """Each row's place in `label_names` of its column; -1 for what is not in it.

    Labels are looked up once for each distinct value, which takes most of the time otherwise.
    """
    places, distinct = pd.factorize(rows[column.name])
    cells = pd.Series(distinct, dtype=rows[column.name].dtype, name=column.name)
    labels = listed_labels(cells, column).to_numpy(dtype=object)
    known = {label: at for at, label in enumerate(label_names(column))}
    absent = known.get(MISSING, -1)
    codes = [
        absent if gone else known.get(label, -1)
        for label, gone in zip(labels, is_absent(cells, column), strict=True)
    ]
    return np.array([*codes, absent], dtype=np.intp)[places]  # no value has the last place


def label_names(column: DomainColumn) -> tuple[str, ...]:
    """The labels that a column's cells may have, missing ones last."""
    codes = () if column.form is None else column.form.codes
    labels = tuple(label for label in column.categories or () if label not in codes)
    return (*labels, MISSING) if column.may_be_absent else labels


def _share(question: Question, rows: pd.DataFrame, domain: Domain) -> Iterator[Value]:
    counted = question.counted(domain)
    assert counted is not None
    yield _share_of((), counted.keeps(rows))


def _mean(question: Question, rows: pd.DataFrame, domain: Domain) -> Iterator[Value]:
    yield _mean_of((), _numbers(rows, question.column, domain))


def _quantile(question: Question, rows: pd.DataFrame, domain: Domain) -> Iterator[Value]:
    """Its error by Woodruff: half the distance of the values one standard error around."""
    values = _numbers(rows, question.column, domain)
    values = values[~np.isnan(values)]
    if len(values) < 2:
        yield (), np.nan, np.nan, "number"
        return
    about = np.sqrt(question.level * (1 - question.level) / len(values))
    levels = np.clip([question.level - about, question.level, question.level + about], 0, 1)
    low, value, high = np.quantile(values, levels)
    yield (), float(value), float(high - low) / 2, "number"


def _table(question: Question, rows: pd.DataFrame, domain: Domain) -> Iterator[Value]:
    """Shares of the rows in every cell, row by row of the cross table."""
    first, second = (named(domain, name) for name in (question.column, question.by[0]))
    codes = [label_codes(rows, column) for column in (first, second)]
    wide = len(label_names(second))
    known = (codes[0] >= 0) & (codes[1] >= 0)
    cells = np.where(known, codes[0] * wide + codes[1], -1)
    counts = np.bincount(cells[known], minlength=len(label_names(first)) * wide)
    for at, count in enumerate(counts.tolist()):
        name = label_names(first)[at // wide], label_names(second)[at % wide]
        yield _share_in(name, count, len(rows))


def _difference(question: Question, rows: pd.DataFrame, domain: Domain) -> Iterator[Value]:
    """Both groups' means or shares, and the first less the second."""
    column, counted = named(domain, question.by[0]), question.counted(domain)
    codes = label_codes(rows, column)
    hits = None if counted is None else counted.keeps(rows)
    values = _numbers(rows, question.column, domain) if hits is None else None
    both = []
    for name, group in zip((FIRST, SECOND), question.groups, strict=True):
        inside = codes == label_names(column).index(group)
        both.append(
            _mean_of((name,), values[inside])
            if values is not None
            else _share_of((name,), np.asarray(hits)[inside])
        )
    yield from both
    yield (GAP,), both[0][1] - both[1][1], float(np.hypot(both[0][2], both[1][2])), "number"


def _design(
    question: Question, rows: pd.DataFrame, domain: Domain
) -> tuple[tuple[Name, ...], Floats]:
    """Names of the terms [p] and their values [rows, p]; NaN where a row has none.

    A list has a term for each label but the first, so coefficients compare with that one.
    """
    names: list[Name] = [(INTERCEPT,)]
    terms: list[Floats] = [np.ones(len(rows))]
    for column in (named(domain, name) for name in question.by):
        if column.kind.numeric:
            names.append((column.name,))
            terms.append(_numbers(rows, column.name, domain))
            continue
        labels, codes = label_names(column), label_codes(rows, column)
        absent = (codes < 0) | (codes == labels.index(MISSING) if MISSING in labels else False)
        for at, label in enumerate(labels):
            if at and label != MISSING:
                names.append((column.name, label))
                terms.append(np.where(absent, np.nan, codes == at))
    return tuple(names), np.column_stack(terms)


def _regression(question: Question, rows: pd.DataFrame, domain: Domain) -> Iterator[Value]:
    """Coefficients on the rows that have all values; NaN where these rows cannot tell."""
    # a second of imports, which the first regression alone pays for
    from statsmodels.discrete.discrete_model import Logit
    from statsmodels.regression.linear_model import OLS

    names, design = _design(question, rows, domain)
    outcome, counted = rows[question.column], question.counted(domain)
    y = _numbers(rows, question.column, domain) if counted is None else counted.keeps(rows) * 1.0
    y = np.where(is_absent(outcome, named(domain, question.column)), np.nan, y)
    whole = ~(np.isnan(design).any(axis=1) | np.isnan(y))
    design, y = design[whole], y[whole]
    values, errors = np.full((2, len(names)), np.nan)
    seen = design.any(axis=0)  # a label without rows has no coefficient
    if len(y) > seen.sum() and y.min() < y.max() and _full_rank(design[:, seen]):
        with warnings.catch_warnings(), suppress(np.linalg.LinAlgError):
            warnings.simplefilter("ignore")  # of separation, which shows in the errors
            if counted is None:
                fitted = OLS(y, design[:, seen]).fit()
            else:
                fitted = Logit(y, design[:, seen], check_rank=False).fit(disp=False)
            values[seen], errors[seen] = fitted.params, fitted.bse
    yield from ((n, v, e, "number") for n, v, e in zip(names, values, errors, strict=True))


def _full_rank(design: Floats) -> bool:
    """Whether no column of [n, p] is a sum of others; each has a value that is not 0."""
    scaled = design / np.linalg.norm(design, axis=0)
    return bool(np.linalg.matrix_rank(scaled.T @ scaled, hermitian=True) == design.shape[1])


def _survival(question: Question, rows: pd.DataFrame, domain: Domain) -> Iterator[Value]:
    """Shares without the event by then, at equal steps of the declared times; Greenwood's errors.

    Source: Kaplan and Meier, "Nonparametric Estimation from Incomplete Observations", JASA 1958.
    """
    column, event = named(domain, question.column), question.counted(domain)
    assert event is not None and column.low is not None and column.high is not None
    times, ended = _numbers(rows, question.column, domain), event.keeps(rows)
    known = ~np.isnan(times)
    times, ended = times[known], ended[known]
    at, place = np.unique(times, return_inverse=True)
    events = np.bincount(place, weights=ended, minlength=len(at))
    risk = len(times) - np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(at)))[:-1]])
    alive = np.cumprod(1 - events / risk) if len(at) else np.array([])
    spread = np.cumsum(events / np.maximum(risk * (risk - events), 1e-9)) if len(at) else alive
    for time in np.linspace(max(column.low, 0.0), column.high, TIMES + 1)[1:]:
        last = int(np.searchsorted(at, time, side="right")) - 1
        share = 1.0 if last < 0 else float(alive[last])
        error = 0.0 if last < 0 else share * float(np.sqrt(spread[last]))
        yield (f"{time:.6g}",), share if len(at) else np.nan, error, "share"


_ESTIMATORS: dict[Statistic, Callable[[Question, pd.DataFrame, Domain], Iterator[Value]]] = {
    Statistic.SHARE: _share,
    Statistic.MEAN: _mean,
    Statistic.QUANTILE: _quantile,
    Statistic.TABLE: _table,
    Statistic.DIFFERENCE: _difference,
    Statistic.LINEAR: _regression,
    Statistic.LOGISTIC: _regression,
    Statistic.SURVIVAL: _survival,
}
