"""A trained model as runs keep it: a base sampler, and row transforms that its rows pass in turn.

Whatever is done to a model after training is a transform: weights that agree with counts, the shift
of tagged columns, the layout of the table. All read synthetic rows alone. Needs no torch.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from core.schema.schema import Domain

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor


REWEIGH, SHIFT, LAYOUT = "reweigh", "shift", "layout"
KINDS = {
    REWEIGH: ("core.models.steps.calibration.reweighing", "Reweigh"),
    SHIFT: ("core.lmdp.shift", "Shift"),
    LAYOUT: ("core.models.layout_rows", "LayoutRows"),
}
VALUES, TENSORS = "transforms.json", "transforms.safetensors"


class Sampler(Protocol):
    """What draws rows."""

    @property
    def domain(self) -> Domain:
        """Of the rows."""

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """`rows` ≥ 1 synthetic records with the domain's columns, order and dtypes."""


class Fitted(Sampler, Protocol):
    """A trained model: sampling from it touches no private data.

    Attributes:
      baseline: the model it was made from, to be compared with on Review; None without one.
    """

    @property
    def baseline(self) -> Fitted | None:
        """See the class."""

    def population(self) -> Fitted:
        """What replicas take for the truth: a population that the releases leave possible.

        Rows are drawn each by itself; models may spread theirs more evenly than samples are.
        """

    def save(self, folder: Path) -> None:
        """Write weights (safetensors) and a JSON description; no pickled code."""


class RowTransform(Protocol):
    """Makes rows from the rows of what comes before it; post-processing.

    Attributes:
      kind: its name in a saved model, one of `KINDS`.
    """

    kind: ClassVar[str]

    def output(self, domain: Domain) -> Domain:
        """Of the rows that it makes, for that of the rows it takes."""

    def sample(self, before: Any, rows: int, seed: int | None) -> pd.DataFrame:
        """`rows` ≥ 1 records, drawn from what comes before."""

    def saved(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """JSON values and tensors from which `restored` makes the same again."""

    @classmethod
    def restored(
        cls, domain: Domain, values: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> RowTransform:
        """What was `saved`, for rows of a domain."""


@dataclass(frozen=True)
class SavedModel:
    """A trained model; itself a `Fitted`."""

    base: Fitted
    transforms: tuple[RowTransform, ...] = ()

    @classmethod
    def of(cls, fitted: Fitted) -> SavedModel:
        """A trained model in this form."""
        return fitted if isinstance(fitted, SavedModel) else cls(fitted)

    @property
    def domain(self) -> Domain:
        """Of the rows it makes."""
        domain = self.base.domain
        for transform in self.transforms:
            domain = transform.output(domain)
        return domain

    @property
    def _before(self) -> Fitted:
        """What comes before the last transform; the base where there is none or one."""
        if len(self.transforms) < 2:
            return self.base
        return SavedModel(self.base, self.transforms[:-1])

    @property
    def baseline(self) -> Fitted | None:
        """See `Fitted`: without weights; none where a shift hides what it would make."""
        if self.transform(SHIFT) is not None:
            return None
        kept = tuple(one for one in self.transforms if one.kind != REWEIGH)
        base = self.base.baseline
        if base is None and len(kept) < len(self.transforms):
            base = self.base
        return None if base is None else SavedModel(base, kept)

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """See `Fitted.sample`."""
        if not self.transforms:
            return self.base.sample(rows, seed)
        return self.transforms[-1].sample(self._before, rows, seed)

    def population(self) -> SavedModel:
        """See `Fitted`."""
        return SavedModel(self.base.population(), self.transforms)

    def then(self, transform: RowTransform) -> SavedModel:
        """This model with one more transform."""
        return SavedModel(self.base, (*self.transforms, transform))

    def transform(self, kind: str) -> RowTransform | None:
        """That of a kind, if there is one."""
        return next((one for one in self.transforms if one.kind == kind), None)

    def without(self, kind: str) -> SavedModel:
        """The model up to the transform of a kind, which has one."""
        kinds = [one.kind for one in self.transforms]
        return SavedModel(self.base, self.transforms[: kinds.index(kind)])

    def save(self, folder: Path) -> None:
        """See `Fitted.save`: the base, and beside it JSON values and tensors of all transforms."""
        folder.mkdir(parents=True, exist_ok=True)
        self.base.save(folder)
        described: list[dict[str, Any]] = []
        tensors: dict[str, Tensor] = {}
        for number, transform in enumerate(self.transforms):
            values, own = transform.saved()
            described.append({"kind": transform.kind, **values})
            tensors |= {f"{number}.{name}": tensor for name, tensor in own.items()}
        text = json.dumps(described, ensure_ascii=False)
        (folder / VALUES).write_text(text, encoding="utf-8")
        if tensors:
            from safetensors.torch import save_file  # torch

            save_file({name: one.contiguous() for name, one in tensors.items()}, folder / TENSORS)

    @classmethod
    def load(cls, folder: Path, base: Fitted) -> SavedModel:
        """What `save` wrote, around its base.

        Raises:
          OSError: the folder does not say which transforms the model has.
        """
        tensors: dict[str, Tensor] = {}
        if (folder / TENSORS).exists():
            from safetensors.torch import load_file  # torch

            tensors = load_file(folder / TENSORS)
        model = cls(base)
        described = json.loads((folder / VALUES).read_text(encoding="utf-8"))
        for number, values in enumerate(described):
            module, name = KINDS[values["kind"]]
            kind = cast("type[RowTransform]", getattr(importlib.import_module(module), name))
            start = f"{number}."
            own = {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}
            model = model.then(kind.restored(model.domain, values, own))
        return model


def preview_of(model: Sampler, rows: int = 8) -> list[dict[str, Any]]:
    """A few synthetic records with JSON values, for people to watch."""
    text = model.sample(rows).to_json(orient="records", date_format="iso")
    records: list[dict[str, Any]] = json.loads(text)
    return records
