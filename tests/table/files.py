"""Small files of every format, for tests of reading."""

from __future__ import annotations

import io
import zipfile

import pandas as pd

from core.table.io.read import ReadLimits, ReadResult, read_table

SECRET = "Zaphod"  # a cell value no message may quote


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
