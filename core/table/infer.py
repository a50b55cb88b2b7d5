"""A frame in memory to a proposed schema."""

from __future__ import annotations

import pandas as pd

from core.table.form import FileForm
from core.table.proposing import Counts, propose
from core.table.raw_cells import raw_frame
from core.table.schema import Schema

__all__ = ["infer_schema"]


def infer_schema(frame: pd.DataFrame, form: FileForm | None = None) -> Schema:
    """Propose a schema.

    Args:
      frame: n ≥ 1 rows, unique string column names.
      form: how the file is written, if that is known.

    Returns:
      One column per frame column, in order, every modelled one with bounds or a list of categories
      proposed from the rows (see `core.table.kinds` on privacy). No target is chosen. Columns
      without a single value are dropped.
    """
    rows = raw_frame(frame)
    counts = Counts()
    counts.add(rows)
    return propose(counts, lambda names: [rows.select(names)], form)[0]
