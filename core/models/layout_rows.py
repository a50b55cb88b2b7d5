"""The layout of a table as a row transform: what a model makes keeps every rule of the table.

The model before it draws rows of the columns that models see; this one hands out rows of the table.
It is the last transform of all, after the marginal shift.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from core.encoding.layout.layout import Layout
from core.models.events import FitEvent, OnEvent, Preview, Signal
from core.models.saved_model import LAYOUT, Sampler, SavedModel
from core.models.step import FitContext, FreeStep, State
from core.privacy.guarded import PrivateTable
from core.schema.schema import Domain


@dataclass(frozen=True)
class LayoutRows:
    """A `RowTransform` from rows as models see them to rows of the table."""

    layout: Layout
    kind: ClassVar[str] = LAYOUT

    def output(self, domain: Domain) -> Domain:
        """See `RowTransform`."""
        return self.layout.output

    def sample(self, before: Sampler, rows: int, seed: int | None) -> pd.DataFrame:
        """See `RowTransform`; draws until there are enough for whole people."""
        drawn = before.sample(rows, seed)
        random = np.random.default_rng(seed)
        while more := self.layout.shortfall(drawn, rows):
            again = None if seed is None else int(random.integers(2**62))
            drawn = pd.concat([drawn, before.sample(more, again)], ignore_index=True)
        return self.layout.from_model(drawn, seed, rows)

    def saved(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """See `RowTransform`: the table's domain, which is public."""
        return {"domain": self.layout.output.model_dump(mode="json")}, {}

    @classmethod
    def restored(
        cls, domain: Domain, values: Mapping[str, Any], tensors: Mapping[str, Any]
    ) -> Self:
        """See `RowTransform`."""
        return cls(Layout(Domain.model_validate(values["domain"])))


@dataclass(frozen=True)
class ApplyLayout(FreeStep):
    """A `Step`: from now on the model makes rows of the table, where models see another one."""

    layout: Layout

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        return replace(state, model=laid_out(state.trained, self.layout))


def laid_out(model: SavedModel, layout: Layout) -> SavedModel:
    """The model with a layout; itself where models see the table as it is."""
    return model if layout.same else model.then(LayoutRows(layout))


def previewed(on_event: OnEvent, layout: Layout) -> OnEvent:
    """An observer that sees previews as rows of the table, not as models see them."""
    if layout.same:
        return on_event

    def shown(event: FitEvent) -> Signal:
        if isinstance(event, Preview) and event.rows:
            drawn = pd.DataFrame(event.rows, dtype=object)
            table = layout.from_model(drawn, seed=0)
            event = Preview(rows=json.loads(table.to_json(orient="records", date_format="iso")))
        return on_event(event)

    return shown
