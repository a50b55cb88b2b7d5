"""What analysts take along: replicas, helpers that work, a text."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pandas as pd
import pytest

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
