"""A table comes back as it went in: read, proposed, encoded, decoded, written, read by others.

What comes back is judged by readers that know nothing of this product: those of the corpus, the
`csv` module and Arrow.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.cli.main import main
from core.encoding.codec import Codec
from core.proposing.propose import infer_schema
from core.schema.schema import Schema
from core.writing.tables import write_csv_parts, write_parquet_parts
from tests.reading.corpus import CORPUS, STORED, ColumnForm, shapes_of
from tests.reading.files import ReadResult, read_table, xlsx

pytestmark = pytest.mark.slow

FEW = ("steps=40", "frequencies=200", "batch=64", "hidden=16")


def text_file(columns: dict[str, Sequence[str]], delimiter: str) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerows([list(columns), *zip(*columns.values(), strict=True)])
    return stream.getvalue().encode()


def beside(form: ColumnForm) -> dict[str, Sequence[str]]:
    return {"column": form.cells, "beside": [str(i % 7) for i in range(len(form.cells))]}


def there_and_back(data: bytes, name: str) -> tuple[pd.DataFrame, Schema]:
    """Rows after reading, encoding and decoding, and the schema that was proposed."""
    result: ReadResult = read_table(io.BytesIO(data), name)
    schema = infer_schema(result.frame, result.form)
    codec = Codec(schema.domain())
    return codec.decode_codes(codec.encode(result.frame)), schema


def cells_of(path: Path, delimiter: str) -> dict[str, list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file, delimiter=delimiter)
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


def changed(form: ColumnForm, cells: Sequence[str]) -> bool:
    """Whether a cell does not read as the original's do, or a shape is lost, or a value."""
    try:
        same = shapes_of(form, cells) == shapes_of(form, form.cells)
    except ValueError:
        return True
    return not same or (form.exact and tuple(cells) != form.cells)


def lost_forms(write: Callable[[ColumnForm], bytes], path: Path, delimiter: str) -> list[str]:
    """The forms of the corpus that do not come back from a kind of file."""
    lost = []
    for form in CORPUS:
        rows, schema = there_and_back(write(form), "t.csv")
        write_csv_parts([rows], path, schema=schema)
        if changed(form, cells_of(path, delimiter).get("column", [])):
            lost.append(form.name)
    return lost


@pytest.mark.parametrize("delimiter", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
def test_every_form_of_a_text_file_comes_back(delimiter: str, tmp_path: Path) -> None:
    lost = lost_forms(lambda form: text_file(beside(form), delimiter), tmp_path / "t", delimiter)
    print(f"text, {delimiter!r}: {len(CORPUS) - len(lost)} of {len(CORPUS)} forms come back")
    assert lost == []


def test_every_form_of_a_workbook_of_text_comes_back(tmp_path: Path) -> None:
    lost = lost_forms(lambda form: xlsx(pd.DataFrame(beside(form))), tmp_path / "t", ",")
    print(f"workbook: {len(CORPUS) - len(lost)} of {len(CORPUS)} forms come back")
    assert lost == []


def test_real_types_come_back_in_parquet(tmp_path: Path) -> None:
    lost = []
    for name, stored in STORED.items():
        stream, path = io.BytesIO(), tmp_path / "t.parquet"
        table = pa.table({"column": stored, "beside": [i % 7 for i in range(len(stored))]})
        pq.write_table(table, stream)
        rows, schema = there_and_back(stream.getvalue(), "t.parquet")
        write_parquet_parts([rows], path, schema=schema)
        back = pq.read_table(path).column("column")
        if back.type != stored.type or back.to_pylist() != stored.to_pylist():
            lost.append(name)
    print(f"Parquet: {len(STORED) - len(lost)} of {len(STORED)} types come back")
    assert lost == []


def test_a_text_file_becomes_a_parquet_file_with_real_types(tmp_path: Path) -> None:
    chosen = {form.name: form.cells for form in CORPUS}
    columns = {
        name: chosen[name]
        for name in (
            "dotted days", "euros behind", "an offset", "yes and no", "? and N/A in numbers",
            "to the minute", "integers",
        )
    }  # fmt: skip
    rows, schema = there_and_back(text_file(columns, ";"), "t.csv")
    write_parquet_parts([rows], tmp_path / "t.parquet", schema=schema)
    found = pq.read_schema(tmp_path / "t.parquet")
    assert {field.name: field.type for field in found} == {
        "dotted days": pa.date32(),
        "euros behind": pa.float64(),
        "an offset": pa.timestamp("us", "UTC"),
        "yes and no": pa.dictionary(pa.int32(), pa.string()),
        "? and N/A in numbers": pa.int64(),
        "to the minute": pa.timestamp("us"),
        "integers": pa.int64(),
    }


def test_a_trained_model_writes_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 rows, 14 columns, a semicolon file: from the command line and back through a fit."""
    monkeypatch.setenv("FACSIMILE_HOME", str(tmp_path / "home"))
    by_name = {form.name: form for form in CORPUS}
    forms = [
        by_name[name]
        for name in (
            "keys", "integers", "points and comma", "percent, comma, space", "euros behind",
            "? and N/A in numbers", "-99 and blank", "N/A and ? in dates", "? in labels", "scripts",
            "ja and nein", "days without zeros", "an offset", "milliseconds",
        )
    ]  # fmt: skip
    columns = {form.name: [form.cells[i % 240] for i in range(500)] for form in forms}
    columns["keys"] = [f"P-{i * 37:06d}" for i in range(500)]
    source, out = tmp_path / "source.csv", tmp_path / "out.csv"
    source.write_bytes(text_file(columns, ";"))
    command = ["synth", str(source), "--model", "pearl", "--epsilon", "8", "--declare-public"]
    command += ["--seed", "1", "--device", "cpu", "--rows", "500", "--quiet"]
    command += ["--save", str(tmp_path / "run")]
    assert main([*command, "--settings", *FEW, "--out", str(out)]) == 0
    drawn = ["sample", str(tmp_path / "run"), "--rows", "500", "--seed", "1"]
    assert main([*drawn, "--where", "integers=0..", "--out", str(tmp_path / "more.csv")]) == 0
    for file in ("out.csv", "more.csv"):
        cells = cells_of(tmp_path / file, ";")
        assert list(cells) == list(columns)
        for form in forms:
            shapes = shapes_of(form, columns[form.name])
            assert shapes_of(form, cells[form.name]) == shapes, (file, form.name)
    whole = tmp_path / "whole.csv"
    assert main([*drawn, "--fill-missing", "--out", str(whole)]) == 0
    gaps = {"", "?", "N/A", "-99"}
    assert [name for name, cells in cells_of(whole, ";").items() if gaps & set(cells)] == []
