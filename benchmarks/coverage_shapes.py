"""Small tables of several shapes whose truth is known, and what is asked of them.

A shape's law is fixed by its name; the seed draws its rows. Every question has the value that a
table gives it, and the standard error that somebody would compute who takes its rows for records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.declared_columns import Draft, binary, flag, labels, level, listed, number, pick
from core.schema.column import Column
from core.schema.schema import Schema

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Table = Mapping[str, NDArray[Any]]  # numbers as float64, lists as text
Answer = tuple[float, float]  # the estimate and its naive standard error
POPULATION_ROWS = 200_000  # so many that chance moves little of them
CELLS_OF_A_PAIR = 12  # asked for, at most
SHORT = 40  # steps of a number whose values are counted each


@dataclass(frozen=True)
class Question:
    """One number that is asked of a table.

    Attributes:
      statistic: its kind, as results name it.
      null: whether it is zero in the population: a group difference where there is none.
    """

    statistic: str
    name: str
    answer: Callable[[Table], Answer]
    null: bool = False


def share(keeps: NDArray[np.bool_]) -> Answer:
    """Of rows."""
    p = float(keeps.mean())
    return p, float(np.sqrt(p * (1.0 - p) / len(keeps)))


def mean(values: Floats) -> Answer:
    """Of numbers; NaN of none."""
    if len(values) < 2:
        return float("nan"), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def difference(values: Floats, group: NDArray[np.bool_]) -> Answer:
    """Of the means of two groups (Welch)."""
    one, other = mean(values[group]), mean(values[~group])
    return one[0] - other[0], float(np.hypot(one[1], other[1]))


def logistic(design: Floats, positive: NDArray[np.bool_], index: int) -> Answer:
    """One coefficient of a logistic regression (Newton's method)."""
    x = np.column_stack([np.ones(len(design)), design])
    beta, information = np.zeros(x.shape[1]), np.eye(x.shape[1])
    for _ in range(12):
        chance = 1.0 / (1.0 + np.exp(-np.clip(x @ beta, -30, 30)))
        information = (x * (chance * (1 - chance))[:, None]).T @ x + 1e-6 * np.eye(x.shape[1])
        beta = beta + np.linalg.solve(information, x.T @ (positive - chance))
    return float(beta[index + 1]), float(np.sqrt(np.linalg.inv(information)[index + 1, index + 1]))


@dataclass(frozen=True)
class Shape:
    """One kind of table.

    Attributes:
      draft: (rows, random) → so many rows, and what is declared of them.
      more: questions beside shares, means and cells of pairs.
      cuts: of each number, where its values are parted for cells of pairs.
    """

    name: str
    rows: int
    draft: Callable[[int, np.random.Generator], Draft]
    more: tuple[Question, ...]
    target: str | None = None

    @cached_property
    def schema(self) -> Schema:
        """As its author declares it."""
        columns = tuple(self.draft(10, np.random.default_rng(0)).columns)
        return Schema(columns=columns, target=self.target)

    def table(self, seed: int, rows: int | None = None) -> pd.DataFrame:
        """Rows of the law."""
        random = np.random.default_rng([seed, len(self.name), *self.name.encode()])
        return self.draft(rows or self.rows, random).frame()

    @cached_property
    def population(self) -> pd.DataFrame:
        """Rows enough for their values to be the law's."""
        return self.table(10**6, POPULATION_ROWS)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """All that are asked."""
        return (*self._columns(), *self._cells(), *self.more)

    def _columns(self) -> Iterator[Question]:
        for column in self.schema.columns:
            name = column.name
            if column.kind.numeric:
                yield Question("mean", name, lambda t, n=name: mean(t[n]))
                continue
            for label in column.categories:
                where = f"{name}={label}"
                yield Question(
                    "share",
                    where,
                    lambda t, n=name, v=label: share(t[n] == v),
                )

    def _cells(self) -> Iterator[Question]:
        for pair in combinations(self.schema.columns, 2):
            sides = [self._parts(column.name) for column in pair]
            cells = [(a, b) for a in sides[0] for b in sides[1]]
            counted = all(_counted(column) for column in pair)
            for (one, first), (two, second) in cells[:CELLS_OF_A_PAIR]:
                yield Question(
                    "pair cell" if counted else "pair of ranges",
                    f"{one}, {two}",
                    lambda t, f=first, s=second: share(f(t) & s(t)),
                )

    def _parts(self, name: str) -> list[tuple[str, Callable[[Table], Bools]]]:
        column = next(column for column in self.schema.columns if column.name == name)
        if not column.kind.numeric:
            return [(f"{name}={v}", lambda t, v=v: t[name] == v) for v in column.categories]
        cuts = np.quantile(self.population[name].to_numpy(np.float64), [0.25, 0.75])
        edges = [-np.inf, *cuts, np.inf]
        return [
            (
                f"{name} from {low:.3g}",
                lambda t, low=low, high=high: (t[name] >= low) & (t[name] < high),
            )
            for low, high in zip(edges, edges[1:], strict=False)
        ]


def _counted(column: Column) -> bool:
    """Whether each of its values is counted by itself; else bounds cut through what is counted."""
    if not column.kind.numeric:
        return True
    assert column.low is not None and column.high is not None
    return bool(column.step) and (column.high - column.low) / column.step < SHORT


def _apart(number_: str, group: str, a: str, b: str, *, null: bool = False) -> Question:
    """How the mean of a number differs between two labels."""

    def answer(t: Table) -> Answer:
        either = (t[group] == a) | (t[group] == b)
        return difference(t[number_][either], t[group][either] == a)

    return Question("group difference", f"{number_} by {group} {a}-{b}", answer, null)


def _rates(yes: tuple[str, str], group: str, a: str, b: str, *, null: bool = False) -> Question:
    """How the share of a label differs between two labels of another column."""

    def answer(t: Table) -> Answer:
        either = (t[group] == a) | (t[group] == b)
        positive = (t[yes[0]][either] == yes[1]).astype(float)
        return difference(positive, t[group][either] == a)

    return Question("group difference", f"{yes[0]} by {group} {a}-{b}", answer, null)


def _coefficient(
    target: str, positive: str, numbers: dict[str, float], groups: dict[str, str], index: int
) -> Question:
    """Of a logistic regression on numbers, each by its scale, and labels as dummies."""

    def answer(t: Table) -> Answer:
        parts = [t[n] / scale for n, scale in numbers.items()]
        parts += [(t[n] == v).astype(float) for n, v in groups.items()]
        return logistic(np.column_stack(parts), t[target] == positive, index)

    return Question("logistic coefficient", f"{target} on {[*numbers, *groups][index]}", answer)


def _independent_lists(n: int, random: np.random.Generator) -> Draft:
    draft = Draft()
    for i, count in enumerate((2, 3, 4, 6, 8)):
        p = np.arange(count, 0, -1.0)
        codes = random.choice(count, n, p=p / p.sum())
        draft.put(listed(f"c{i}", labels("v", count)), pick(labels("v", count), codes))
    return draft


def _correlated_numbers(n: int, random: np.random.Generator) -> Draft:
    draft, common = Draft(), random.normal(size=n)
    for i, weight in enumerate((0.9, 0.7, 0.5, 0.0)):
        x = weight * common + np.sqrt(1 - weight**2) * random.normal(size=n)
        draft.put(number(f"x{i}", -4, 4, step=0.01), x)
    arm = random.random(n) < 0.5
    draft.put(flag("arm"), binary(arm))
    return draft


def _skewed_groups(n: int, random: np.random.Generator) -> Draft:
    draft, wards = Draft(), labels("w", 5)
    ward = random.choice(5, n, p=[0.35, 0.25, 0.2, 0.12, 0.08])
    cost = np.exp(6.0 + 0.25 * (ward % 3) + 0.8 * random.normal(size=n))
    stay = random.poisson(3 + ward, n)
    draft.put(listed("ward", wards), pick(wards, ward))
    draft.put(number("cost", 0, 10_000, step=1.0, scale="log"), cost)
    draft.put(number("stay", 0, 30, step=1.0), stay)
    draft.put(flag("arm"), binary(random.random(n) < 0.5))
    draft.put(flag("back"), binary(random.random(n) < 0.1 + 0.05 * ward))
    return draft


def _logistic_class(n: int, random: np.random.Generator) -> Draft:
    draft = Draft()
    age, dose = random.normal(50, 15, n), random.gamma(4, 5, n)
    region = random.choice(3, n, p=[0.5, 0.3, 0.2])
    sex = random.random(n) < 0.5
    logit = -1.0 + 0.8 * (age - 50) / 15 + 0.5 * (dose - 20) / 10 - 0.7 * sex + 0.4 * (region == 1)
    draft.put(number("age", 0, 100, step=1.0), age)
    draft.put(number("dose", 0, 80, step=0.1), dose)
    draft.put(listed("region", labels("r", 3)), pick(labels("r", 3), region))
    draft.put(flag("sex"), binary(sex))
    draft.put(flag("ill"), binary(random.random(n) < 1 / (1 + np.exp(-logit))))
    return draft


def _rare_labels(n: int, random: np.random.Generator) -> Draft:
    draft, kinds = Draft(), labels("k", 7)
    kind = random.choice(7, n, p=[0.5, 0.3, 0.13, 0.04, 0.02, 0.007, 0.003])
    bad = random.random(n) < np.array([0.05, 0.05, 0.1, 0.3, 0.5, 0.6, 0.8])[kind]
    draft.put(listed("kind", kinds), pick(kinds, kind))
    draft.put(flag("bad"), binary(bad))
    draft.put(listed("site", labels("s", 4)), pick(labels("s", 4), random.integers(0, 4, n)))
    draft.put(number("score", 0, 100, step=1.0), random.normal(50 + 10 * bad, 12, n))
    return draft


def _dependent_lists(n: int, random: np.random.Generator) -> Draft:
    draft, before = Draft(), random.normal(size=n)
    for i, count in enumerate((3, 4, 5, 4)):
        before = 0.75 * before + np.sqrt(1 - 0.75**2) * random.normal(size=n)
        shares = np.full(count, 1.0 / count)
        codes = level(before, shares)
        draft.put(listed(f"d{i}", labels("v", count)), pick(labels("v", count), codes))
    draft.put(flag("arm"), binary(random.random(n) < 0.4))
    return draft


def _shapes() -> Iterator[Shape]:
    nulls = tuple(_rates((f"c{i}", "v01"), "c0", *labels("v", 2), null=True) for i in (1, 2, 3))
    yield Shape("independent lists", 3000, _independent_lists, nulls)
    arms = tuple(_apart(f"x{i}", "arm", "1", "0", null=True) for i in range(4))
    yield Shape("correlated numbers", 3000, _correlated_numbers, arms)
    wards = [_apart(n, "ward", "w00", w) for n in ("cost", "stay") for w in ("w01", "w02", "w03")]
    wards += [_rates(("back", "1"), "ward", "w00", w) for w in ("w01", "w02", "w03")]
    wards += [_apart(n, "arm", "1", "0", null=True) for n in ("cost", "stay")]
    wards += [_rates(("back", "1"), "arm", "1", "0", null=True)]
    yield Shape("skewed groups", 4000, _skewed_groups, tuple(wards))
    scales = {"age": 15.0, "dose": 10.0}
    dummies = {"sex": "1", "region": "r01"}
    coefficients = [_coefficient("ill", "1", scales, dummies, i) for i in range(4)]
    coefficients += [_apart("age", "ill", "1", "0"), _apart("dose", "ill", "1", "0")]
    coefficients += [_rates(("ill", "1"), "sex", "1", "0")]
    yield Shape("logistic class", 4000, _logistic_class, tuple(coefficients), target="ill")
    rare = [_apart("score", "bad", "1", "0")]
    rare += [_rates(("bad", "1"), "kind", "k00", k) for k in ("k02", "k03", "k04")]
    rare += [_rates(("bad", "1"), "site", "s00", s, null=True) for s in ("s01", "s02", "s03")]
    rare += [_coefficient("bad", "1", {"score": 12.0}, {"kind": "k03"}, i) for i in range(2)]
    yield Shape("rare labels", 4000, _rare_labels, tuple(rare))
    lists = [_rates(("d1", "v01"), "d0", "v00", v) for v in ("v01", "v02")]
    lists += [_rates((f"d{i}", "v01"), "arm", "1", "0", null=True) for i in range(4)]
    lists += [_coefficient("arm", "1", {}, {"d0": "v01", "d1": "v01"}, i) for i in range(2)]
    yield Shape("dependent lists", 3000, _dependent_lists, tuple(lists))


SHAPES: dict[str, Shape] = {shape.name: shape for shape in _shapes()}


def answers(shape: Shape, table: pd.DataFrame) -> Floats:
    """Estimates and naive standard errors, float64 [questions, 2]."""
    cells = {
        column.name: table[column.name].to_numpy(np.float64)
        if column.kind.numeric
        else table[column.name].astype(str).to_numpy("U")
        for column in shape.schema.columns
    }
    return np.array([one.answer(cells) for one in shape.questions], dtype=np.float64)
