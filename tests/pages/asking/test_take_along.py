"""What analysts take along: replicas, helpers that work, a text."""

from __future__ import annotations

import io
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.export import take_along as helpers
from core.services.inference import take_along
from core.services.inference.asking import ask
from tests.pages.asking.questions import SHARE

pytestmark = pytest.mark.slow


def test_the_zip_for_analysts_holds_tables_helpers_and_text(store, replicated, tmp_path):
    with zipfile.ZipFile(io.BytesIO(take_along.packed(store, replicated))) as archive:
        archive.extractall(tmp_path)
        names = set(archive.namelist())
    assert {"synthetic.csv", "replica-5.csv", "intervals.py", "intervals.R", "README.txt"} <= names
    assert "epsilon = 1 " in (tmp_path / "README.txt").read_text()
    helper: dict = {}
    exec((tmp_path / "intervals.py").read_text(), helper)  # noqa: S102
    found = helper["interval"](lambda rows: (rows["readmitted"] == "yes").mean(), tmp_path)
    replicas = [pd.read_csv(tmp_path / f"replica-{i}.csv") for i in range(1, 6)]
    values = [(one["readmitted"] == "yes").mean() for one in replicas]
    half = 2.7764 * np.std(values, ddof=1) * np.sqrt(1.2)  # t of 4 degrees of freedom
    assert found["estimate"] == pytest.approx(ask(store, replicated, SHARE).figures[0].value)
    assert found["high"] - found["estimate"] == pytest.approx(half, rel=1e-4)


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_both_helpers_find_the_same_interval(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("synthetic", *(f"replica-{i}" for i in range(1, 6))):
        rows = pd.DataFrame(
            {"sex": rng.choice(["f", "m"], 300), "blood pressure": rng.normal(size=300)}
        )
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    folder = Path(next(iter(helpers.__path__)))
    python: dict = {}
    exec((folder / "intervals.py").read_text(), python)  # noqa: S102
    asked = 'mean(rows[["blood pressure"]][rows$sex == "f"])'
    script = f'source("{folder / "intervals.R"}"); cat(interval(function(rows) {asked}))'
    said = subprocess.run(
        ["Rscript", "-e", script], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    found = python["interval"](
        lambda rows: rows.loc[rows["sex"] == "f", "blood pressure"].mean(), tmp_path
    )
    assert [float(x) for x in said.split()] == pytest.approx(list(found.values()), rel=1e-5)
