"""Small models of windows, trained with hardly any noise."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records
from core.models.layout_rows import laid_out
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.saved_model import SavedModel
from core.models.step import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget
from core.schema.schema import Schema
from tests.models.tables import Watcher
from tests.privacy.deterministic_noise import DeterministicNoise

PEOPLE = 1500
QUICK = {
    "scan_focus": {
        "steps": 300, "members": 2, "trainings": 1, "components": 60, "hidden": 32,
        "preliminary_steps": 20,
    },
    "pearl": {"steps": 600, "frequencies": 1500, "batch": 256, "hidden": 64},
}  # fmt: skip


def trained(
    rows: pd.DataFrame, declared: Schema, folder: Path, model: str = "scan_focus"
) -> SavedModel:
    """A model of the windows of as many people as there are."""
    layout = Layout(declared.domain())
    codes, people = encoded_records(rows, layout, declared.person)
    budget = Budget(epsilon=50.0, delta=1e-5)
    method = synthesizer(model)
    plan = plan_fit(method, layout.domain, PEOPLE, budget, QUICK[model], unit=declared.person)
    noise = DeterministicNoise(1)  # a small fit is near its bounds, and noise would decide
    table = PrivateTable(codes, layout.domain, plan, people=people, noise_source=noise)
    fitted = method.fit(table, plan, FitContext(on_event=Watcher(), folder=folder, seed=1))
    return laid_out(SavedModel.of(fitted), layout)
