"""Components of mixtures of windows are of people without an event, with one, or with several."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from core.encoding.codec import Block
from core.encoding.layout.layout import Layout
from core.encoding.windows import FIRST, NEXT, NOW, NUMBER, PERSON, Windows
from core.models.base_sampler import FittedGenerator
from core.models.saved_model import SavedModel
from tests.histories import MEASURED, measured
from tests.models.scan_focus.fitted_windows import PEOPLE, trained

pytestmark = pytest.mark.slow
LACKING = 0.4


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> SavedModel:
    return trained(*measured(PEOPLE, LACKING), tmp_path_factory.mktemp("fit"))


def windows_of(model: SavedModel) -> Windows:
    """Of the file of events."""
    return Layout(model.domain).files[0]


def shares(model: SavedModel, block: Block) -> Tensor:
    """Of a column's cells in each component, [components, cells]."""
    base = model.base
    assert isinstance(base, FittedGenerator)
    mixture = base.conditionals
    return torch.split(mixture.weights["shares"], list(mixture.sizes), dim=1)[block.index]


def test_no_component_mixes_people_with_and_without_events(model: SavedModel) -> None:
    windows = windows_of(model)
    number = shares(model, windows.block(NUMBER))
    each = torch.stack([number[:, 0], number[:, 1], number[:, 2:].sum(dim=1)], dim=1)
    torch.testing.assert_close(each.max(dim=1).values, torch.ones(len(each)))
    nobody, once, several = (each.argmax(dim=1) == of for of in range(3))
    assert nobody.any() and once.any() and several.any()
    complete = {(FIRST, "kind"), (NOW, "kind"), (NEXT, "kind"), (FIRST, "day")}
    for (role, source), block in windows.by_role.items():
        if role in (PERSON, NUMBER):
            continue
        gone = shares(model, block)[:, -1]
        without = nobody if role == FIRST else nobody | once
        assert (gone[without] == 1.0).all()
        if role not in (FIRST, NOW, NEXT) or (role, source) in complete:
            assert (gone[~without] == 0.0).all(), block.column.name
        else:
            assert 0.3 < float(gone[~without].mean()) < 0.5


def test_events_miss_columns_together(model: SavedModel) -> None:
    table = model.sample(PEOPLE, 3)
    gone = table.loc[table["key"].notna(), list(MEASURED)].isna()
    assert float(gone.mean().mean()) == pytest.approx(LACKING, abs=0.06)
    assert float((gone.any(axis=1) & ~gone.all(axis=1)).mean()) < 0.05
