"""Every model on a table of which nothing was declared: planned unseen, learned, trained."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.api import plan, synthesize
from core.privacy.discovery.planning import PHASES
from tests.contract.fits import IDS, QUICK

pytestmark = pytest.mark.slow

N = 1500


def undeclared(seed: int) -> pd.DataFrame:
    """Lists of 2, 12 and N labels, numbers of all kinds, dates, missing cells, an identifier."""
    rng = np.random.default_rng(seed)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, N), "D")
    frame = pd.DataFrame(
        {
            "key": [f"K{i:06d}" for i in range(N)],
            "ill": rng.choice(["no", "yes"], N, p=[0.7, 0.3]),
            "ward": rng.choice([f"ward {i}" for i in range(12)], N),
            "stay": rng.integers(0, 30, N),
            "wait": rng.integers(0, 9, N),
            "cost": np.where(rng.random(N) < 0.4, 0.0, rng.lognormal(6, 1, N)).round(2),
            "admitted": day.strftime("%Y-%m-%d"),
        }
    )
    frame["both"] = frame["stay"] + frame["wait"]
    frame.loc[rng.random(N) < 0.2, "ward"] = None
    return frame


@pytest.mark.parametrize(
    ("model", "target"),
    [*((model, "ward") for model in IDS), ("scan_focus", "ill"), ("scan_focus", None)],
)
def test_a_table_of_which_nothing_was_declared(
    model: str, target: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACSIMILE_HOME", str(tmp_path / "home"))
    options = {"model": model, "epsilon": 2.0, "settings": QUICK[model], "target": target}
    planned = plan(undeclared(0), **options)
    made = synthesize(undeclared(0), **options, seed=0, device="cpu")
    assert made.guarantee.epsilon <= 2.0 and made.guarantee.epsilon > 1.9
    executed = {phase["name"] for phase in made.certificate["phases"]}
    assert executed <= {phase.name for phase in planned.phases}
    assert executed & set(PHASES)
    assert list(made.table.columns) == list(undeclared(0).columns)
    assert made.table["ward"].isna().mean() == pytest.approx(0.2, abs=0.15)
    assert plan(undeclared(1), **options).phases == planned.phases
