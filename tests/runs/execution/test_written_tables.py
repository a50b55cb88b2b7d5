"""The synthetic table and its rows as models see them: one draw makes both."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from core.encoding.layout.layout import Layout
from core.models.events import Signal
from core.models.layout_rows import LayoutRows
from core.models.saved_model import SavedModel
from core.runs.execution.written_tables import write_tables
from core.runs.storage.artefacts import LocalArtefacts
from tests.encoding.layouts import LOOKED_UP, ORDERED, STAY, TOTAL, faults, made, schema

LAYOUT = Layout(schema((LOOKED_UP, ORDERED, STAY, TOTAL)).domain())


class Base:
    """Draws rows that models see, others each time that it is asked without a seed."""

    domain = LAYOUT.domain
    baseline = None

    def __init__(self) -> None:
        self.drawn: list[tuple[int, int | None]] = []

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """So many."""
        self.drawn.append((rows, seed))
        return LAYOUT.to_model(made(LAYOUT.output, rows))


@pytest.mark.parametrize("seed", [None, 3])
def test_rows_are_drawn_once_for_both_tables(tmp_path, seed) -> None:
    base: Any = Base()
    model = SavedModel(base, (LayoutRows(LAYOUT),))
    tables = write_tables(
        model, 50, seed, LocalArtefacts(tmp_path), on_event=lambda event: Signal.GO_ON
    )
    assert len(base.drawn) == 1 and seed in (None, base.drawn[0][1])
    assert faults(tables.synthetic, LAYOUT.output) == []
    assert list(tables.modelled["pulse"]) == list(tables.synthetic["pulse"])
