"""The evidence for one release as a ZIP: filled sheets, what they were read from, and hashes."""

from __future__ import annotations

import hashlib
import html
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from core.export.guides import TO_FILL, Documents, Sheet, filled, guides, registry_record, sheets
from core.export.page_html import document, html_table, page
from core.language.catalogue import Language
from core.message import Message, to_say
from core.quality.report.types import View

INSIDE = "inside/"  # of documents made from real rows without noise
PACKS = {
    "inside": Message("INSIDE ONLY. The folder “inside” holds results of real records."),
    "outside": Message("MAY BE SHOWN OUTSIDE. Real records show only in what ε paid for."),
}
READ_FROM = to_say(
    "Every answer was read from a file of this pack: its source, with the place in it after #. "
    "Questions are the guides' topics in our words. Still to be filled in: {n} of {all} answers."
)
TITLE = to_say("Evidence for a synthetic table")
HEADS = (to_say("Question"), to_say("Answer"), to_say("Source"))
IN_SYMBOL = "αβγδεμρσΔ≤≥→∞√−"  # what the font Symbol has and the others lack


def packed(
    documents: Documents, files: Mapping[str, str], *, view: View, language: Language
) -> bytes:
    """The pack's bytes, the same for the same documents.

    Args:
      documents: JSON values by name, as `documents` of `core.services.evidence` gathers them.
      language: of the sheets and the report; documents are English.

    Raises:
      ValueError: a document of the inside would get into a pack for outside.
    """
    if view == "outside" and any(name.startswith(INSIDE) for name in documents):
        raise ValueError("A pack for outside may hold no document of the inside.")
    answered, run = list(sheets(documents)), documents["run.json"]
    every = [field for sheet in answered for field in sheet.fields]
    words = Message(READ_FROM, n=sum(not field.answer for field in every), all=len(every))
    about = filled(documents, **guides()["opening"]).answer
    opening = [language.render(one) for one in (PACKS[view], about, words)]
    contents: dict[str, str | bytes] = {
        "evidence.html": _html(answered, opening, language, view),
        "evidence.pdf": _pdf(answered, opening, language),
        "evidence.json": _json([asdict(sheet) for sheet in answered]),
        "registry.json": _json(registry_record(documents)),
        **{name: _json(document) for name, document in documents.items()},
        **files,
    }
    if report := documents.get("outside-report.json"):
        claim, hidden = documents["certificate.json"]["claim"], run["hidden"]
        contents["outside-report.html"] = page(
            report,
            run["table"],
            claim=claim,
            limits=run["limits"],
            hidden=hidden,
            language=language,
            conclusions=documents.get("measured.json", ()),
        )
    raw = {key: text.encode() if isinstance(text, str) else text for key, text in contents.items()}
    hashes = (f"{hashlib.sha256(body).hexdigest()}  {key}\n" for key, body in sorted(raw.items()))
    raw["hashes.sha256"] = "".join(hashes).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for key, body in sorted(raw.items()):  # without a time
            archive.writestr(zipfile.ZipInfo(key), body, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _rows(sheet: Sheet, language: Language) -> Iterator[tuple[str, str, str]]:
    """Questions, answers and sources; first the heads."""
    yield tuple(map(language.render, HEADS))  # type: ignore[misc]
    for field in sheet.fields:
        answer = field.answer or Message(TO_FILL, who=Message(field.who))
        yield language.render(field.question), language.render(answer), ", ".join(field.sources)


def _html(answered: Sequence[Sheet], opening: Sequence[str], language: Language, view: View) -> str:
    """One document that needs no network."""
    said, e = language.render, html.escape
    parts = [f"<h1>{e(said(TITLE))}</h1>", *(f"<p>{e(one)}</p>" for one in opening[1:])]
    for sheet in answered:
        heads, *rows = _rows(sheet, language)
        parts.append(
            f"<h2 id='{sheet.key}'>{e(said(sheet.title))}</h2><p><small>{e(said(sheet.reference))}"
            f"</small></p><div class='sheet'>{html_table(heads, rows)}</div>"
        )
    return document(said(TITLE), "".join(parts), view, PACKS[view], language)


def _pdf(answered: Sequence[Sheet], opening: Sequence[str], language: Language) -> bytes:
    """The same as PDF, A4; what its built-in fonts lack is shown as “?”."""
    # heavy for its size, and only who packs evidence needs it
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import LongTable, Paragraph, SimpleDocTemplate

    styles, said = getSampleStyleSheet(), language.render
    small = styles["BodyText"].clone("small", fontSize=7, leading=9)

    def text(words: str, style: Any = styles["BodyText"]) -> Any:
        return Paragraph(_in_its_fonts(words), style)

    story = [text(said(TITLE), styles["Title"]), *map(text, opening)]
    for sheet in answered:
        rows = [[text(q), text(a), text(s, small)] for q, a, s in _rows(sheet, language)]
        grid = [("VALIGN", (0, 0), (-1, -1), "TOP"), ("LINEBELOW", (0, 0), (-1, -1), 0.3, "grey")]
        story += [text(said(sheet.title), styles["Heading2"]), text(said(sheet.reference), small)]
        widths, again = [120, 278, 112], {"repeatRows": 1, "splitInRow": 1}
        story.append(LongTable(rows, colWidths=widths, style=grid, **again))
    out, about = io.BytesIO(), {"title": said(TITLE), "lang": language.code}
    margins = dict.fromkeys(("leftMargin", "rightMargin", "topMargin", "bottomMargin"), 42)
    # invariant: the same answers give the same bytes
    pages = SimpleDocTemplate(out, pagesize=A4, invariant=1, **about, **margins)

    def numbered(canvas: Any, _pages: Any) -> None:
        canvas.drawRightString(A4[0] - 42, 22, str(canvas.getPageNumber()))

    pages.build(story, onFirstPage=numbered, onLaterPages=numbered)
    return out.getvalue()


def _in_its_fonts(words: str) -> str:
    """Text as reportlab's markup, in characters that every reader of PDF has."""
    shown = (
        f"<font face='Symbol'>{letter}</font>"
        if letter in IN_SYMBOL
        else html.escape(letter.encode("cp1252", "replace").decode("cp1252"))
        for letter in words
    )
    return "".join(shown).replace("\n", "<br/>")
