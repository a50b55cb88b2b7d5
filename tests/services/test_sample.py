"""The built-in table: deterministic, every kind of column, and something worth learning."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.proposing.propose import infer_schema
from core.reading.cells import TableReadError
from core.schema.column import Kind
from core.services.sample_tables import SAMPLE_TARGET, fetch_adult, sample_table
from core.writing.tables import write_csv_parts
from tests.reading.files import read_table


def test_it_is_the_same_every_time() -> None:
    frame = sample_table()
    assert frame.shape == (5000, 12)
    pd.testing.assert_frame_equal(frame, sample_table())


def test_it_is_what_reading_its_own_file_gives(tmp_path: Path) -> None:
    write_csv_parts([sample_table()], tmp_path / "visits.csv")
    result = read_table(tmp_path / "visits.csv")
    pd.testing.assert_frame_equal(result.frame, sample_table())
    assert result.warnings == ()


def test_it_has_every_kind_of_column() -> None:
    schema = infer_schema(sample_table())
    kinds = {column.kind for column in schema.columns}
    assert kinds == set(Kind) - {Kind.TEXT}
    assert schema[SAMPLE_TARGET].kind is Kind.BOOLEAN and not schema[SAMPLE_TARGET].missing
    assert {c.name for c in schema.columns if c.missing} == {"blood_pressure", "bmi", "smoker"}
    assert schema["cost"].spikes == (0.0,) and schema["cost"].scale == "log"


def test_the_target_depends_on_the_other_columns() -> None:
    frame = sample_table()
    back = frame[SAMPLE_TARGET] == "yes"
    assert 0.15 < back.mean() < 0.4
    by_triage = back.groupby(frame["triage"]).mean()
    assert by_triage["critical"] > 3 * by_triage["low"]
    assert back[frame["smoker"] == "yes"].mean() > back[frame["smoker"] == "no"].mean() + 0.1
    assert np.corrcoef(frame["age"], frame["earlier_visits"])[0, 1] > 0.3
    assert not ((frame["ward"] == "maternity") & (frame["sex"] == "male")).any()


def test_adult_without_a_network_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise urllib.error.URLError("no route")

    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", refuse)
    with pytest.raises(TableReadError, match="openml.org"):
        fetch_adult()


def test_adult_comes_as_a_table_file_would(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = pd.DataFrame(
        {
            "age": [39.0, 50.0],
            "workclass": pd.Categorical(["Private", None]),
            "class": ["<=50K"] * 2,
        }
    )

    class Bunch:
        frame = answer

    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: Bunch)
    found = fetch_adult()
    assert list(found.columns) == ["age", "workclass", "income"]
    assert [str(d) for d in found.dtypes] == ["int64", "str", "str"]
