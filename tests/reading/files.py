"""Small files of every format, for tests of reading."""

from __future__ import annotations

import io
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pyarrow.parquet as pq

from core.importing.raw_table import keep_rows
from core.reading.cells import ReadLimits
from core.reading.opening import open_path
from core.reading.typed_cells import typed_rows
from core.schema.form import FileForm
from core.schema.schema import Schema

SECRET = "Zaphod"  # a cell value no message may quote


@dataclass(frozen=True)
class ReadResult:
    """A table's rows typed by a schema, declared or proposed, and how it was read."""

    frame: pd.DataFrame
    schema: Schema
    form: FileForm
    warnings: tuple[str, ...] = ()


def read_table(
    source: Path | BinaryIO,
    name: str = "",
    *,
    limits: ReadLimits | None = None,
    schema: Schema | None = None,
) -> ReadResult:
    """A file read as the product's own process reads it, in this one.

    Args:
      source: a path, or a stream.
      name: of the file.
      limits: what is too big.
      schema: declares the cells; proposed when None.
    """
    declared = None if schema is None else schema.form
    with tempfile.TemporaryDirectory() as folder:
        path = source if isinstance(source, Path) else Path(folder) / "content"
        if not isinstance(source, Path):
            path.write_bytes(source.read())
        opened = open_path(path, Path(folder), name, limits=limits, declared=declared)
        raw = keep_rows(opened, Path(folder) / "rows.parquet", proposing=schema is None)
        rows = pq.read_table(raw.path)
    known = schema or raw.schema
    assert known is not None
    form = raw.form.model_copy(update={"columns": known.form.columns})
    return ReadResult(typed_rows(rows, known.columns), known, form, raw.doubts)


def read(data: bytes, name: str = "table.csv", **limits: int) -> ReadResult:
    return read_table(io.BytesIO(data), name, limits=ReadLimits(**limits))


def zipped(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_csv", ".csv"), content)
    return stream.getvalue()


def parquet(frame: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


def xlsx(*sheets: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    with pd.ExcelWriter(stream, engine="openpyxl") as writer:
        for i, sheet in enumerate(sheets):
            sheet.to_excel(writer, sheet_name=f"sheet {i}", index=False)
    return stream.getvalue()


def ods(*rows: tuple[str, ...]) -> bytes:
    """The smallest OpenDocument spreadsheet of text cells."""
    cells = "".join(
        "<table:table-row>"
        + "".join(
            '<table:table-cell office:value-type="string">'
            f"<text:p>{cell}</text:p></table:table-cell>"
            for cell in row
        )
        + "</table:table-row>"
        for row in rows
    )
    spaces = " ".join(
        f'xmlns:{key}="urn:oasis:names:tc:opendocument:xmlns:{key}:1.0"'
        for key in ("office", "table", "text")
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body><office:spreadsheet>"
            f'<table:table table:name="s">{cells}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    return stream.getvalue()


PARQUET = parquet(pd.DataFrame({"name": [SECRET, "b"]}))
XLSX = xlsx(pd.DataFrame({"name": [SECRET, "b"], "n": [1, 2]}))
