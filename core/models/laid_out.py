"""LaidOut: a fitted model behind the layout of its table; what it makes keeps every rule.

The model inside draws rows of the columns that models see. Outermost of all, around the marginal
shift too, stands this one, and hands out rows of the table.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from core.encoding.layout.layout import Layout
from core.models.events import FitEvent, OnEvent, Preview, Signal
from core.models.synthesizer import Fitted
from core.schema.schema import Domain

__all__ = ["LaidOut", "laid_out", "previewed", "with_layout"]

FILE = "layout.json"  # the table's domain, public


class LaidOut:
    """A fitted model that makes rows of a table; itself a `Fitted`.

    Attributes:
      inner: as given.
      domain: of the table.
    """

    def __init__(self, inner: Fitted, layout: Layout):
        self.inner = inner
        self.domain = layout.output
        self._layout = layout

    @property
    def baseline(self) -> Fitted | None:
        """See `Fitted`: it makes rows of the same table."""
        return None if self.inner.baseline is None else LaidOut(self.inner.baseline, self._layout)

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """See `Fitted.sample`; the model draws until there are enough for whole people."""
        drawn = self.inner.sample(rows, seed)
        random = np.random.default_rng(seed)
        while more := self._layout.shortfall(drawn, rows):
            again = None if seed is None else int(random.integers(2**62))
            drawn = pd.concat([drawn, self.inner.sample(more, again)], ignore_index=True)
        return self._layout.from_model(drawn, seed, rows)

    def save(self, folder: Path) -> None:
        """See `Fitted.save`: the model, and beside it the table's domain."""
        self.inner.save(folder)
        (folder / FILE).write_text(self.domain.model_dump_json(), encoding="utf-8")


def laid_out(inner: Fitted, layout: Layout) -> Fitted:
    """The model behind a layout; itself where models see the table as it is."""
    return inner if layout.same else LaidOut(inner, layout)


def with_layout(inner: Fitted, folder: Path) -> Fitted:
    """A loaded model behind the layout that `LaidOut.save` left in its folder, if there is one."""
    file = folder / FILE
    if not file.exists():
        return inner
    return LaidOut(inner, Layout(Domain.model_validate_json(file.read_bytes())))


def previewed(on_event: OnEvent, layout: Layout) -> OnEvent:
    """An observer that sees previews as rows of the table, not as models see them."""
    if layout.same:
        return on_event

    def told(event: FitEvent) -> Signal:
        if isinstance(event, Preview) and event.rows:
            drawn = pd.DataFrame(event.rows, dtype=object)
            table = layout.from_model(drawn, seed=0)
            event = Preview(rows=json.loads(table.to_json(orient="records", date_format="iso")))
        return on_event(event)

    return told
