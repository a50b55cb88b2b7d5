"""Dates that follow on others, moved to the days and hours that they keep to; see `calendar_moves`.

Models see the wait in place of such a date, so it is moved once the wait is a date again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.calendar_moves import FIELDS
from core.encoding.heaping import dates_from, dates_kept
from core.schema.column import DomainColumn
from core.schema.labels import from_numbers, to_numbers
from core.schema.person import Person
from core.schema.rules.rules import AtMost, Follows, Rule

Cells = dict[str, "pd.Series[Any]"]


def keep_calendars(
    cells: Cells,
    orders: Sequence[AtMost],
    columns: Mapping[str, DomainColumn],
    random: np.random.Generator,
    *,
    person: Person | None,
    who: NDArray[np.intp] | None,
) -> None:
    """Move the later date of each order, in place; what is constant, alike in a person's rows.

    Args:
      cells: the columns of a table; orders hold in each row.
      orders: learned ones, each column after those that it follows on.
      who: whose each row is, 0, 1, …; None where each is of another.
    """
    if not orders:
        return
    constant = () if person is None else person.constant
    chance = random.random((len(cells[orders[0].high]), len(FIELDS)))
    own = chance if who is None else chance[np.unique(who, return_index=True)[1]][who]
    for of_person, random_moves in ((True, own), (False, chance)):
        some = [order for order in orders if (order.high in constant) is of_person]
        cells |= _moved(cells, some, columns, random_moves)


def orders_to_keep(rules: Sequence[Rule], drawn: pd.DataFrame) -> list[AtMost]:
    """Learned orders whose later date models did not draw, and that no other rule names.

    Each comes after that of the date which its own follows on.
    """
    orders = [rule for rule in rules if isinstance(rule, AtMost) and rule.learned]
    turns = list(TopologicalSorter({rule.high: [rule.low] for rule in orders}).static_order())
    orders.sort(key=lambda rule: turns.index(rule.high))
    others = (rule for rule in rules if not isinstance(rule, Follows) and rule not in orders)
    ruled = {name for rule in others for name in rule.columns}
    return [order for order in orders if order.high not in {*drawn.columns, *ruled}]


def _moved(
    cells: Cells,
    orders: Sequence[AtMost],
    columns: Mapping[str, DomainColumn],
    chance: NDArray[np.float64],
) -> Cells:
    """Later dates as they are moved: along with the earlier one, to a calendar, and never before.

    Rows that have no room for that stay as they are.
    """
    moved, room = dict(cells), np.ones(len(chance), dtype=bool)
    for order in orders:
        before, column = (columns[name] for name in order.columns)
        low = to_numbers(moved[before.name], before)
        high = to_numbers(cells[column.name], column)
        fixed = np.isin(high, column.spikes)  # the day on which many end
        along = high + low - to_numbers(cells[before.name], before)
        inside = (along >= (column.low or 0.0)) & (along <= (column.high or 0.0)) & ~fixed
        high = np.where(inside, along, high)
        rows = np.flatnonzero(~np.isnan(high) & ~fixed)
        if column.learned is not None:
            high[rows] = dates_kept(high[rows], column, column.learned.calendar, chance[rows])
        early = np.flatnonzero(high < low)
        high[early] = dates_from(low[early], column)
        room[early] &= ~np.isnan(high[early])
        gone = np.isnan(high)
        moved[column.name] = cells[column.name].where(gone, from_numbers(high, column))
    names = [order.high for order in orders]
    return {name: moved[name].where(room, cells[name]) for name in names}
