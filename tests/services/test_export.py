"""Downloads: their names, and that nothing but synthetic rows and public words is in them."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from core.privacy.plan import Budget, Guarantee, Protection
from core.runs.errors import NotFoundError, RunStoreError
from core.schema.column import Column, DomainSource, Kind, SchemaColumn
from core.schema.form import Form
from core.schema.schema import Schema
from core.services import export
from core.writing.tables import LABEL
from tests.requests_for import request_for


@pytest.fixture
def run(store, table, plan):
    return store.create_run(
        table.id, plan, request_for(plan, rows=3, device="cpu"), schema=table.schema
    )


@pytest.fixture
def made(store, run):
    frame = pd.DataFrame({"age": [1, 2, 3], "sex": ["f", "=1+1", None]})
    frame.to_parquet(store.artefacts(run.id).path("synthetic.parquet"))
    return frame


@pytest.mark.parametrize(
    ("table_name", "stem"),
    [
        ("people", "people"),
        ("Clinic visits (2024).csv", "clinic-visits-2024"),
        ("../../etc/passwd", "passwd"),
        ("表", "table"),
        ("Größe & Öle à Paris.csv", "groesse-oele-a-paris"),
        ("a\r\nb", "a-b"),
    ],
)
def test_names_are_safe_on_every_system(run, table_name, stem):
    name = export.file_name(replace(run, table_name=table_name), "csv")
    assert name == f"{stem}-synthetic-epsilon-1.csv"


def test_names_say_when_nothing_is_private(run):
    open_plan = run.plan.model_copy(
        update={
            "budget": Budget(epsilon=math.inf, delta=1e-6),
            "guarantee": Guarantee(epsilon=math.inf, epsilon_replace=math.inf, delta=1e-6),
        }
    )
    for ending in ("csv", "parquet", "model.zip"):
        name = export.file_name(replace(run, plan=open_plan), ending)
        assert name == f"people-synthetic-not-private.{ending}"


def test_no_table_yet_is_said(store, run):
    with pytest.raises(NotFoundError, match="not made a synthetic table"):
        export.reviewed_file(store, run, format="csv")


def test_the_reviewed_rows_are_the_ones_exported(store, run, made):
    parquet = export.reviewed_file(store, run, format="parquet")
    exported = pd.read_parquet(parquet)
    assert exported["sex"].dtype == "category"  # a list of labels is a dictionary in the file
    pd.testing.assert_frame_equal(exported.astype({"sex": "str"}), made)
    csv = export.reviewed_file(store, run, format="csv")
    assert csv.read_text() == "age,sex\n1,f\n2,=1+1\n3,\n"
    escaped = export.reviewed_file(store, run, format="csv", escape_formulas=True)
    assert escaped != csv and "'=1+1" in escaped.read_text()
    assert csv.parent.stat().st_mode & 0o077 == 0


def test_csv_is_made_once_and_again_when_the_table_is_newer(store, run, made):
    csv = export.reviewed_file(store, run, format="csv")
    first = csv.stat().st_mtime_ns
    assert export.reviewed_file(store, run, format="csv").stat().st_mtime_ns == first
    source = store.artefacts(run.id).path("synthetic.parquet")
    made.head(1).to_parquet(source)
    os.utime(source, (csv.stat().st_mtime + 5,) * 2)
    assert export.reviewed_file(store, run, format="csv").read_text() == "age,sex\n1,f\n"


def test_the_model_zip_holds_weights_and_json_only(store, run):
    folder = store.artefacts(run.id).path("model")
    folder.mkdir()
    save_file({"w": np.ones(2, np.float32)}, folder / "pearl.safetensors")
    (folder / "pearl.json").write_text('{"a": 1}')
    with zipfile.ZipFile(io.BytesIO(export.model_zip(store, run))) as archive:
        assert archive.namelist() == ["pearl.json", "pearl.safetensors"]
        assert json.loads(archive.read("pearl.json")) == {"a": 1}
        assert archive.testzip() is None


def test_the_model_zip_holds_its_parts_and_no_empty_folder(store, run):
    base = store.artefacts(run.id).path("model") / "base"
    base.mkdir(parents=True)
    (base.parent / "pgb.json").write_text("{}")
    (base / "model.json").write_text('{"a": 1}')
    (base / "debug.log").write_text("what a row held")  # no model saves such a file
    with zipfile.ZipFile(io.BytesIO(export.model_zip(store, run))) as archive:
        assert archive.namelist() == ["base/model.json", "pgb.json"]


def test_a_shifted_model_stays_here(store, run):
    folder = store.artefacts(run.id).path("model")
    folder.mkdir()
    (folder / "shift.json").write_text("{}")
    shifted = Protection(groups={"g": ("age",)}, shift=0.75)
    plan = run.plan.model_copy(update={"protection": shifted})
    with pytest.raises(RunStoreError, match="cannot be downloaded"):
        export.model_zip(store, replace(run, plan=plan))


def test_the_dictionary_has_a_row_for_every_kept_column():
    schema = Schema(
        columns=(
            Column(name="id", kind=Kind.IDENTIFIER),
            Column(name="age", kind=Kind.INTEGER, low=0, high=99, step=1, dtype="int64"),
            SchemaColumn(
                name="a: b",
                kind=Kind.CATEGORY,
                categories=("x", "y"),
                missing=True,
                proposal="none",
            ),  # fmt: skip
            Column(name="secret", kind=Kind.TEXT, source=DomainSource.DROP),
        )
    )
    words = export.domain_dictionary(schema.domain())
    assert words["column"].tolist() == ["id", "age", "a: b"]
    assert words["what may stand in it"].tolist() == [
        "identifier, replaced by made-up values",
        "integer from 0 to 99 in steps of 1, never missing",
        "category, one of 2: x, y, may be missing",
    ]
    assert words["known"].tolist() == ["", "origin not recorded", "set by the steward"]
    assert words["kind"].tolist() == ["identifier", "integer", "category"]


def test_the_dictionary_says_how_cells_are_written():
    pay = Column(
        name="pay", kind=Kind.NUMBER, low=0, high=9e4, dtype="float64", missing=True,
        form=Form(decimal=",", thousands=".", suffix=" €", decimal_places=2, absent="k. A."),
    )  # fmt: skip
    age = Column(
        name="age", kind=Kind.INTEGER, low=0, high=99, dtype="int64", form=Form(codes=("-99",))
    )
    words = export.domain_dictionary(Schema(columns=(pay, age)).domain())
    assert words["written"].tolist() == ["such as 1.234,50 €, missing as k. A.", ""]
    assert words["what may stand in it"][1].endswith("may be missing (also written as -99)")


def test_certificate_text_is_json_for_people():
    text = export.certificate_text({"claim": "ε = 1"})
    assert json.loads(text) == {"claim": "ε = 1"} and "ε" in text


def test_a_table_says_in_its_file_that_it_is_synthetic(store, run, made):
    certificate = {"ledger_entry": "3", "epsilon_zero_out": 0.5, "delta": 1e-6, "private": True}
    with store.artefacts(run.id).replacing("certificate.json") as file:
        file.write(json.dumps(certificate).encode())
    path = export.reviewed_file(store, run, format="parquet")
    label = json.loads(pq.read_metadata(path).metadata[LABEL.encode()])
    assert label["synthetic"] is True and label["run"] == run.id and label["epsilon"] == 0.5
    assert "synthetic" in label["statement"]
