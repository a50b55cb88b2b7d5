"""Columns that count a person's rows: 1, 2, 3, …; for eyes inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

ENOUGH = 20  # people with several rows


def counting_columns(who: NDArray[np.int64], columns: Mapping[str, pd.Series[Any]]) -> list[str]:
    """Names of those in which every person of r rows has each of 1 to r once.

    Args:
      who: int64 [n], whose each row is.
    """
    counts = np.bincount(who)[who]
    several = len(np.unique(who[counts > 1])) >= ENOUGH
    found = []
    for name, cells in columns.items() if several else ():
        values = pd.to_numeric(cells, errors="coerce")
        whole = values.between(1, counts) & (values == values.round())
        twice = pd.DataFrame({"who": who, "value": values}).duplicated()
        if whole.all() and not twice.any():
            found.append(name)
    return found
