"""Intervals beside what is shown and taken along."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pandas as pd
import pytest

from core.schema.column import Kind, SchemaColumn
from core.schema.schema import Schema
from core.services import export, reviews
from core.services.linking.files import LinkedFile, linked_schema

pytestmark = pytest.mark.slow


def test_the_dictionary_says_how_far_shares_may_be_off(store, replicated):
    about = {"columns": {"readmitted": {"figures": [["yes", 0.182, 0.011, "share"]]}}}
    assert "±" not in export.dictionary_text(store, replicated)
    with store.artefacts(replicated.id).replacing("intervals.json") as file:
        file.write(json.dumps(about).encode())
    assert "yes 18.2% ± 1.1%" in export.dictionary_text(store, replicated)


def test_inside_tells_figures_alone_as_its_bins_are_others(store, replicated):
    about = {"shares": [0.01], "missing": 0.0, "figures": [["yes", 0.182, 0.011, "share"]]}
    with store.artefacts(replicated.id).replacing("intervals.json") as file:
        file.write(json.dumps({"columns": {"readmitted": about}, "associations": []}).encode())
    inside = reviews.report(store, replicated.id)
    assert inside["intervals"] == {"columns": {"readmitted": {"figures": about["figures"]}}}


def test_columns_of_two_files_that_share_a_name_keep_their_own(store, replicated):
    """The table of both calls the second file's column otherwise."""
    columns = (
        SchemaColumn(name="id", kind=Kind.IDENTIFIER),
        SchemaColumn(name="kind", kind=Kind.CATEGORY, categories=("a", "b")),
    )
    files = [LinkedFile(None, Schema(columns=columns), name, "id") for name in ("people", "visits")]
    linked = linked_schema(*files, order=None, most=3)
    figures = {"kind": 0.25, "visits.kind": 0.75}
    about = {name: {"figures": [["a", share, 0.01, "share"]]} for name, share in figures.items()}
    with store.artefacts(replicated.id).replacing("intervals.json") as file:
        file.write(json.dumps({"columns": about}).encode())
    run = replace(replicated, schema=linked)
    told = pd.read_csv(io.StringIO(export.dictionary_text(store, run)))
    (share_of,) = (name for name in told if "how far" in name)
    found = {(row["file"], row["column"]): row[share_of] for _, row in told.iterrows()}
    assert found["people.csv", "kind"].startswith("a 25.0%")
    assert found["visits.csv", "kind"].startswith("a 75.0%")
