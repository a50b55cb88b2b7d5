"""The layout of a table as a row transform: what a model makes keeps every rule of the table.

The model before it draws rows of the columns that models see; this one hands out rows of the table.
It is the last transform of all, after the marginal shift.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, cast

import numpy as np
import pandas as pd

from core.encoding.heaping import heaped
from core.encoding.layout.layout import Layout
from core.encoding.windows import FIRST, NUMBER, PERSON
from core.models.events import FitEvent, OnEvent, Preview, Signal
from core.models.saved_model import LAYOUT, Fitted, Sampler, SavedModel
from core.models.step import FitContext, FreeStep, State
from core.privacy.guarded import PrivateTable
from core.schema.schema import Domain

if TYPE_CHECKING:
    from torch import Tensor

    from core.models.base_sampler import BaseSampler

Effects: TypeAlias = "Mapping[tuple[str, str], Tensor]"


@dataclass(frozen=True)
class LayoutRows:
    """A `RowTransform` from rows as models see them to rows of the table.

    Attributes:
      effects: of pairs on the next event of a history, see `core.models.next_event`.
    """

    layout: Layout
    effects: Effects = field(default_factory=dict)
    kind: ClassVar[str] = LAYOUT

    def output(self, domain: Domain) -> Domain:
        """See `RowTransform`."""
        return self.layout.output

    def sample(self, before: Sampler, rows: int, seed: int | None) -> pd.DataFrame:
        """See `RowTransform`; draws until there are enough for whole people.

        Of histories, `rows` counts people, and all their events come.
        """
        if self.layout.windows is not None:
            return self._histories(before, rows, seed)
        drawn = before.sample(rows, seed)
        random = np.random.default_rng(seed)
        while more := self.layout.shortfall(drawn, rows):
            again = None if seed is None else int(random.integers(2**62))
            drawn = pd.concat([drawn, before.sample(more, again)], ignore_index=True)
        return self.layout.from_model(drawn, seed, rows)

    def _histories(self, before: Sampler, people: int, seed: int | None) -> pd.DataFrame:
        import torch  # what knows of models must not wait for it

        from core.models.histories import drawn_histories

        random = torch.Generator().manual_seed(secrets.randbits(63) if seed is None else seed)
        with torch.no_grad():
            drawn = drawn_histories(_base(before), self.layout.files, self.effects, people, random)
        codec, constant = self.layout.files[0].source, self.layout.constant
        codes = heaped(codec, drawn.codes, random, drawn.who, constant)
        for file in self.layout.files:  # calendars move dates
            file.ending_by(_base(before).conditionals.limits).end(codes)
        rows = codec.decode_codes(codes)
        return self.layout.from_events(rows, drawn.who, drawn.file, drawn.owner, seed)

    def saved(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """See `RowTransform`: the table's domain, which is public, and the effects."""
        effects = {f"effects.{i}": one for i, one in enumerate(self.effects.values())}
        domain = self.layout.output.model_dump(mode="json")
        return {"domain": domain, "effects": [list(pair) for pair in self.effects]}, effects

    @classmethod
    def restored(
        cls, domain: Domain, values: Mapping[str, Any], tensors: Mapping[str, Any]
    ) -> Self:
        """See `RowTransform`."""
        pairs = ((first, second) for first, second in values.get("effects", []))
        effects = {pair: tensors[f"effects.{i}"] for i, pair in enumerate(pairs)}
        return cls(Layout(Domain.model_validate(values["domain"])), effects)


def _base(model: Sampler) -> BaseSampler:
    """What draws windows."""
    return cast("BaseSampler", SavedModel.of(cast("Fitted", model)).base)


@dataclass(frozen=True)
class ApplyLayout(FreeStep):
    """A `Step`: from now on the model makes rows of the table, where models see another one."""

    layout: Layout

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        return replace(state, model=laid_out(state.trained, self.layout))


def laid_out(model: SavedModel, layout: Layout) -> SavedModel:
    """The model with a layout; itself where models see the table as it is."""
    if layout.windows is None:
        return model if layout.same else model.then(LayoutRows(layout))
    from core.models.histories import calibrated  # torch

    return model.then(LayoutRows(layout, calibrated(_base(model), layout.files)))


def previewed(on_event: OnEvent, layout: Layout) -> OnEvent:
    """An observer that sees previews as rows of the table, not as models see them.

    Of histories these are people, each with the first event of the first file that was linked.
    """
    if layout.same:
        return on_event

    def shown(event: FitEvent) -> Signal:
        if isinstance(event, Preview) and event.rows:
            drawn = pd.DataFrame(event.rows, dtype=object)
            of_windows = layout.windows is not None
            table = _first_events(layout, drawn) if of_windows else layout.from_model(drawn, seed=0)
            event = Preview(rows=json.loads(table.to_json(orient="records", date_format="iso")))
        return on_event(event)

    return shown


def _first_events(layout: Layout, drawn: pd.DataFrame) -> pd.DataFrame:
    """Windows as rows of the table, without columns of files that no row is of."""
    windows, each = layout.files[0], np.arange(len(drawn))
    own = {
        source: drawn[block.column.name]
        for (role, source), block in windows.by_role.items()
        if role in (PERSON, FIRST)
    }
    names = [block.column.name for block in windows.source.blocks]
    nobody = drawn[windows.block(NUMBER).column.name] == "0"
    file = np.where(nobody, -1, 0)
    rows = pd.DataFrame({name: own.get(name) for name in names}, index=drawn.index)
    table = layout.from_events(rows, each, file, np.full(len(each), -1), seed=0)
    person = layout.output.person
    assert person is not None
    others = {name for one in person.files[1:] for name in (*one.own_names, one.event)}
    return table.drop(columns=others & set(table.columns))
