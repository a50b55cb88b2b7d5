"""A table comes back as it went in: read, proposed, encoded, decoded, written, read by others."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from core.table.codec import Codec
from core.table.infer import infer_schema
from core.table.io.read import read_table
from core.table.io.write import write_csv
from tests.table.corpus import CORPUS, ColumnForm, shapes_of

FORMS = pytest.mark.parametrize("form", CORPUS, ids=lambda form: form.name)
DELIMITED = pytest.mark.parametrize("delimiter", [",", ";"], ids=["comma", "semicolon"])


def text_file(form: ColumnForm, delimiter: str) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["column", "beside"])
    writer.writerows([cell, i % 7] for i, cell in enumerate(form.cells))
    return stream.getvalue().encode()


def there_and_back(data: bytes, name: str, path: Path, delimiter: str) -> list[str]:
    """The column's cells after reading, encoding, decoding and writing."""
    result = read_table(io.BytesIO(data), name)
    schema = infer_schema(result.frame, result.form)
    codec = Codec(schema.domain())
    write_csv(codec.decode_codes(codec.encode(result.frame)), path, schema=schema)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter=delimiter))
    assert rows[0] == ["column", "beside"]
    return [row[0] for row in rows[1:]]


@FORMS
@DELIMITED
def test_text_files_come_back(form: ColumnForm, delimiter: str, tmp_path: Path) -> None:
    cells = there_and_back(text_file(form, delimiter), "t.csv", tmp_path / "out.csv", delimiter)
    assert shapes_of(form, cells) == shapes_of(form, form.cells)
    if form.exact:
        assert cells == list(form.cells)
