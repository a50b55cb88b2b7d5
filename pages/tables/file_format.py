"""How a text file is written: said before it is brought in, shown when it was."""

from __future__ import annotations

import streamlit as st

from core.runs.records import TableRecord
from core.schema.column import Kind
from core.schema.form import FileForm
from core.schema.schema import Schema
from core.services.imports import FORM
from pages.shared.language import keyed, said, say, to_say
from pages.shared.plain import plain

SUGGESTED = to_say("detect automatically")
SEPARATED = {
    ",": to_say("by commas"),
    ";": to_say("by semicolons"),
    "\t": to_say("by tabs"),
    "|": to_say("by vertical bars"),
}
ENCODING_NAMES = {
    "utf-8": "UTF-8",
    "cp1252": to_say("Windows-1252 (Western European)"),
    "iso8859_15": to_say("ISO 8859-15 (Western European)"),
    "cp1250": to_say("Windows-1250 (Central European)"),
    "cp1251": to_say("Windows-1251 (Cyrillic)"),
    "cp1253": to_say("Windows-1253 (Greek)"),
    "cp1254": to_say("Windows-1254 (Turkish)"),
    "cp850": to_say("DOS 850 (Western European)"),
    "mac_roman": to_say("Mac Roman (Western European)"),
    "utf-16": "UTF-16",
}


def choose() -> FileForm:
    """What is said beforehand of a text file; fields that are left to the file are not set."""
    with st.expander(say("File format options"), icon=":material/description:"):
        st.caption(
            say(
                "For text files such as CSV. Both are usually detected from the first lines, and "
                "the table's page shows the result. If it is wrong, choose here and try the "
                "file again."
            )
        )
        left, right = st.columns(2)
        delimiter = left.selectbox(
            say("Cells are separated"),
            [None, *SEPARATED],
            format_func=lambda mark: said(SEPARATED.get(mark, SUGGESTED)),
            key=keyed("upload_delimiter"),
        )
        encoding = right.selectbox(
            say("Text encoding"),
            [None, *ENCODING_NAMES],
            format_func=lambda name: said(ENCODING_NAMES.get(name, SUGGESTED)),
            key=keyed("upload_encoding"),
        )
    asked = {"delimiter": delimiter, "encoding": encoding}
    return FileForm.model_validate({name: value for name, value in asked.items() if value})


def show(table: TableRecord) -> None:
    """One line on how a table's text file was read; nothing for what is no text file."""
    form = FileForm.model_validate(table.profile.get(FORM, {}))
    if "delimiter" not in form.model_fields_set:
        return
    encoding = said(ENCODING_NAMES.get(form.encoding.removesuffix("-sig"), form.encoding.upper()))
    separated = say("cells separated {by}", by=said(SEPARATED[form.delimiter]))
    parts = [encoding, separated, *_decimals(table.schema)]
    line = say("Read as a text file: {how}.", how=", ".join(parts))
    st.caption(f":material/description: {line}")


def _decimals(schema: Schema) -> list[str]:
    """Which decimal mark numbers have, where some have decimals."""
    marks = {
        c.name: c.form.decimal if c.form else "." for c in schema.columns if c.kind is Kind.NUMBER
    }
    commas = [plain(name) for name, mark in marks.items() if mark == ","]
    if not marks:
        return []
    if not commas:
        return [say("decimal points")]
    if len(commas) == len(marks):
        return [say("decimal commas")]
    return [say("decimal commas in {columns}", columns=", ".join(commas))]
