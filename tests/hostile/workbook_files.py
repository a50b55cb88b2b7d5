"""Hostile workbooks, written part by part, as no spreadsheet would."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from html import escape

import pandas as pd

from tests.hostile.files import EITHER, REFUSED, TABLE, HostileFile
from tests.reading.files import ods, xlsx

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
PLAIN = xlsx(pd.DataFrame({"name": ["a", "b", None], "n": [1, 2.5, 3]}))
PLAIN_ODS = ods(("a", "b"), ("x", "1"), ("y", "2"))
HEAD = '<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" t="str"><v>b</v></c></row>'
GOOD = '<row r="2"><c r="A2"><v>1</v></c><c r="B2"><v>2</v></c></row>'


def book(*sheets: str, states: tuple[str, ...] = (), extra: dict[str, str] | None = None) -> bytes:
    """An xlsx of sheets' rows.

    Args:
      sheets: the XML of each sheet's rows.
      states: "visible", "hidden" or "veryHidden", for each sheet.
      extra: parts by their path; an empty one takes the part of that path away.
    """
    numbers = range(1, len(sheets) + 1)
    listed = "".join(
        f'<sheet name="s{i}" sheetId="{i}" r:id="rId{i}"'
        + (f' state="{states[i - 1]}"/>' if states else "/>")
        for i in numbers
    )
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{TYPE}.worksheet+xml"/>'
        for i in numbers
    )
    links = "".join(
        f'<Relationship Id="rId{i}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in numbers
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{TYPE}.sheet.main+xml"/>'
        f"{kinds}</Types>",
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{links}'
        "</Relationships>",
        **{
            f"xl/worksheets/sheet{i}.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{rows}'
            "</sheetData></worksheet>"
            for i, rows in zip(numbers, sheets, strict=True)
        },
        **(extra or {}),
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path, text in parts.items():
            if text:
                archive.writestr(path, text)
    return stream.getvalue()


def cell(value: str, kind: str = "") -> str:
    """A third row with one more cell of a kind."""
    mark = f' t="{kind}"' if kind else ""
    return HEAD + GOOD + f'<row r="3"><c r="A3"{mark}><v>{value}</v></c></row>'


def files() -> Iterator[HostileFile]:
    """All of them."""
    yield HostileFile("plain.xlsx", PLAIN, TABLE)
    yield HostileFile("plain.ods", PLAIN_ODS, TABLE)
    yield HostileFile("handmade.xlsx", book(HEAD + GOOD), TABLE)
    corner = HEAD + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    yield HostileFile("corner.xlsx", book(corner), REFUSED, says="too far")
    yield HostileFile("corner-second.xlsx", book(HEAD + GOOD, corner), TABLE, says="2 sheets")
    for name in ("ZZZZZZ99999999999", "zzzzzz99999999999", "A99999999", "XFE2", "AAAAAAAAAAAA2"):
        far = HEAD + f'<row r="2"><c r="{name}"><v>1</v></c></row>'
        yield HostileFile(f"reference-{name}.xlsx", book(far), REFUSED, says="beyond row")
    for number, name in enumerate(("A0", "0", "A", "", "A-1", "Ä1", "A1:B2", "$A$2")):
        odd = HEAD + GOOD + f'<row r="3"><c r="{name}"><v>1</v></c></row>'
        yield HostileFile(f"odd-reference-{number}.xlsx", book(odd), EITHER)
    tiny = HEAD + "<row><c><v>1</v></c></row>" * 1_100_000
    yield HostileFile("tiny-rows.xlsx", book(tiny), REFUSED, says="beyond row")
    yield HostileFile("hidden.xlsx", book(HEAD + GOOD, HEAD + GOOD, states=("hidden", "visible")),
                      TABLE, says="hidden")  # fmt: skip
    yield HostileFile("very-hidden.xlsx", book(HEAD + GOOD, states=("veryHidden",)), TABLE,
                      says="hidden")  # fmt: skip
    yield from _cells()
    yield from _parts()
    yield from _opendocument()


def _cells() -> Iterator[HostileFile]:
    values = {
        "number-text": ("abc", "n"), "infinite": ("INF", "n"), "giant": ("1.7e308", "n"),
        "shared": ("7", "s"), "shared-negative": ("-1", "s"), "bool": ("1", "b"),
        "bool-two": ("2", "b"), "error": ("#REF!", "e"), "unknown": ("1", "zzz"),
        "nul": ("a_x0000_b", "str"), "bell": ("a_x0007_b", "str"), "markup": (escape("<b>"), "str"),
        "formula": ("=1+1", "str"), "long": ("x" * 200_000, "str"), "date": ("99999999", "d"),
        "iso-date": ("2024-01-31T00:00:00", "d"), "empty": ("", "str"), "entity": ("&lol;", "str"),
    }  # fmt: skip
    for name, (value, kind) in values.items():
        yield HostileFile(f"cell-{name}.xlsx", book(cell(value, kind)), EITHER)
    dates = "".join(
        f'<row r="{i}"><c r="A{i}" s="1"><v>{x}</v></c></row>'
        for i, x in enumerate((-1, 0, 60, 2958466, 1e15, 45000), start=2)
    )
    styles = (
        f'<styleSheet xmlns="{MAIN}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
        "</styleSheet>"
    )
    yield HostileFile("dates.xlsx", book(HEAD + dates, extra={"xl/styles.xml": styles}), EITHER)


def _parts() -> Iterator[HostileFile]:
    for part in (
        "[Content_Types].xml", "_rels/.rels", "xl/workbook.xml", "xl/_rels/workbook.xml.rels",
        "xl/worksheets/sheet1.xml",
    ):  # fmt: skip
        name = part.replace("/", "-")
        yield HostileFile(f"without-{name}.xlsx", book(HEAD + GOOD, extra={part: ""}), EITHER)
        broken = book(HEAD + GOOD, extra={part: "<a><b></a>"})
        yield HostileFile(f"broken-{name}.xlsx", broken, EITHER)
    laughs = "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
        f"<!ENTITY {chr(98 + i)} '{f'&{chr(97 + i)};' * 10}'>" for i in range(9)
    )
    for part in ("xl/workbook.xml", "xl/worksheets/sheet1.xml"):
        bomb = book(HEAD + GOOD, extra={part: laughs + "]><x>&j;</x>"})
        yield HostileFile(f"laughs-{part.replace('/', '-')}", bomb, REFUSED)
    yield HostileFile("empty.xlsx", book(""), REFUSED, says="empty")
    yield HostileFile("header.xlsx", book(HEAD), REFUSED, says="no rows")
    yield HostileFile("same-header.xlsx", book(HEAD.replace(">b<", ">a<") + GOOD), TABLE,
                      says="earlier column")  # fmt: skip
    yield HostileFile("locked.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), REFUSED)
    yield HostileFile("csv.xlsx", b"a,b\n1,2\n", REFUSED, says="ends in .xlsx")


def _opendocument() -> Iterator[HostileFile]:
    def repeated(what: str, times: int, value: str) -> bytes:
        text = f"<text:p>{value}</text:p>" if value else ""
        filled = f' office:value-type="string">{text}</table:table-cell>'
        given = PLAIN_ODS
        stream = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(given)) as old, zipfile.ZipFile(stream, "w") as new:
            for name in old.namelist():
                content = old.read(name).decode()
                content = content.replace(
                    "</table:table>",
                    f"<table:table-row {what if 'rows' in what else ''}><table:table-cell "
                    f"{what if 'columns' in what else ''}{filled}</table:table-row></table:table>",
                )
                new.writestr(name, content.replace("@", str(times)))
        return stream.getvalue()

    rows, columns = 'table:number-rows-repeated="@"', 'table:number-columns-repeated="@"'
    yield HostileFile("blank-rows.ods", repeated(rows, 1_048_573, ""), TABLE)
    yield HostileFile("blank-columns.ods", repeated(columns, 16_384, ""), TABLE)
    yield HostileFile("filled-rows.ods", repeated(rows, 10**9, "x"), TABLE, own=True)
    yield HostileFile("filled-columns.ods", repeated(columns, 10**9, "x"), REFUSED, own=True)
