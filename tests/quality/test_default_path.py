"""The default's cost is measured on a run's own domains; generated tables are as described."""

from __future__ import annotations

import pandas as pd
import pytest

from benchmarks import default_path
from benchmarks.named_tables import NamedTable
from benchmarks.office_tables import court, visits
from core.schema.column import Column, Kind
from core.schema.schema import Schema

pytestmark = pytest.mark.slow

ROWS = pd.DataFrame({"a": ["x", "x", "y", "z"], "b": [1, 2, 3, 40], "c": ["k", "k", "l", "l"]})


def listed(name: str, *labels: str, other: str | None = None) -> Column:
    return Column(name=name, kind=Kind.CATEGORY, categories=labels, other=other)


def bounded(low: float, high: float) -> Column:
    return Column(name="b", kind=Kind.INTEGER, low=low, high=high, step=1, dtype="int64")


def schema(*columns: Column) -> Schema:
    return Schema(columns=columns)


def test_domains_are_measured_on_training_rows():
    inferred = schema(listed("a", "x", "y", "z"), bounded(0, 50), listed("c", "k", "l"))
    table = NamedTable("t", ROWS, ROWS, inferred)
    learned = schema(listed("a", "x", "OTHER", other="OTHER"), bounded(2, 10))
    made = pd.DataFrame({"a": ["x", "OTHER", "OTHER", "OTHER"], "b": [2, 3, 4, 5]})
    assert default_path.domain_figures(table, learned, made) == {
        "other_cells": 0.25,
        "other_rows": 0.5,
        "other_made": 0.75,
        "outside": 0.5,
        "columns_gone": 1.0,
        "columns_made_up": 0.0,
        "labels_kept": 1.0,
        "labels_there": 5.0,
        "labels_share": 0.2,
    }


def test_ratios_are_of_the_same_seed():
    runs = {
        "declared": [{"figures": {"auroc": 0.8}}, {"figures": {"auroc": 0.5}}],
        "default": [{"figures": {"auroc": 0.4}}, {"failed": "Too few rows."}],
    }
    lines = default_path.figures_table(runs, {"auroc": 0.9})
    assert "| AUROC, 4 classifiers | 0.65 (0.5–0.8) | 0.4 | 0.5 | 0.9 |" in lines
    assert lines[-1] == "default, seed 1: refused. Too few rows."


def test_generated_files_repeat_by_seed():
    first = court(300, seed=1)
    assert first.shape == (300, 53)
    pd.testing.assert_frame_equal(first, court(300, seed=1))
    assert not first.equals(court(300, seed=2))
    who = visits(600, 2_000).groupby("code")["patient"].nunique()
    assert who.tolist() == [50] * 12
