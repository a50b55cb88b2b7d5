"""Small made-up tables whose dependences are known."""

from __future__ import annotations

import fcntl
import os
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.quality.report.build_report import build_report
from core.quality.report.types import Report, Score
from core.schema.column import Column, Kind
from core.schema.schema import Schema

SCHEMA = Schema(
    columns=(
        Column(name="key", kind=Kind.IDENTIFIER, dtype="int64"),
        Column(name="age", kind=Kind.INTEGER, low=18, high=90, step=1, dtype="int64"),
        Column(
            name="pay",
            kind=Kind.NUMBER,
            low=0,
            high=1e6,
            scale="log",
            spikes=(0.0,),
            missing=True,
            dtype="float64",
        ),
        Column(name="job", kind=Kind.CATEGORY, categories=("a", "b", "c"), missing=True),
        Column(name="since", kind=Kind.DATETIME, step=86400, dtype="datetime64[us]"),
        Column(name="rich", kind=Kind.BOOLEAN, categories=("False", "True"), dtype="bool"),
        Column(name="same", kind=Kind.NUMBER, low=1, high=1, dtype="float64"),
    ),
    target="rich",
)


def make(n: int, seed: int) -> pd.DataFrame:
    """`job` and `rich` follow `age`; `pay` follows `job` and is 0 for half of the rows."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, n)
    job = np.where(age < 40, "a", np.where(age < 65, "b", "c")).astype(object)
    job[rng.random(n) < 0.05] = None
    pay = np.where(rng.random(n) < 0.5, 0.0, np.round(np.exp(rng.normal(5 + age / 20, 1)), 2))
    pay[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "key": np.arange(n),
            "age": age,
            "pay": pay,
            "job": pd.Series(job, dtype="str"),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "rich": rng.random(n) < 1 / (1 + np.exp((60 - age) / 4)),
            "same": 1.0,
        }
    )


def shuffled(frame: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Every column permuted on its own: right margins, no dependence."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {name: frame[name].iloc[rng.permutation(len(frame))].array for name in frame}
    )


def collapsed(frame: pd.DataFrame) -> pd.DataFrame:
    """The first row over and over."""
    return frame.iloc[np.zeros(len(frame), dtype=int)].reset_index(drop=True)


@cache
def made_tables(rows: int) -> dict[str, pd.DataFrame]:
    real = make(rows, 1)
    return {
        "real": real,
        "test": make(600, 2),
        "fresh": make(rows, 3),
        "shuffled": shuffled(real),
        "collapsed": collapsed(real),
    }


@cache
def made_reports() -> dict[str, Report]:
    """Of the table itself, a good, a shuffled and a collapsed one; made once for all tests.

    `age` is tagged, and "fresh" stands beside the collapsed table as what was before boosting.
    """
    tables, tagged = made_tables(700), SCHEMA.model_copy(update={"sensitive": {"g": ("age",)}})
    return {
        name: build_report(
            tables["real"],
            tables[name],
            tagged,
            test=tables["test"],
            before=tables["collapsed"] if name == "fresh" else None,
        )
        for name in ("real", "fresh", "shuffled", "collapsed")
    }


def score_of(report: Report, key: str) -> Score | None:
    return next((score for score in report.scores if score.key == key), None)


def read_report(path: Path) -> Report:
    return Report.model_validate_json(path.read_text(encoding="utf-8"))


def shared_reports(factory: pytest.TempPathFactory) -> dict[str, Report]:
    """`made_reports` by the test process that asks first; those beside it read what it wrote."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return made_reports()
    folder = factory.getbasetemp().parent  # of all processes
    with (folder / "reports.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the file
        if not (folder / "reports").exists():
            (folder / "being made").mkdir(exist_ok=True)
            for name, report in made_reports().items():
                path = folder / "being made" / f"{name}.json"
                path.write_text(report.model_dump_json(), encoding="utf-8")
                assert read_report(path) == report, "what others read would be another report"
            (folder / "being made").rename(folder / "reports")
    return {path.stem: read_report(path) for path in (folder / "reports").iterdir()}


@pytest.fixture(scope="session")
def schema() -> Schema:
    return SCHEMA


@pytest.fixture(scope="session")
def tables() -> dict[str, pd.DataFrame]:
    return made_tables(1200)


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    return shared_reports(tmp_path_factory)
