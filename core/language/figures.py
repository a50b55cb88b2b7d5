"""Figures as they are shown: said in a language, with no markup from people's names."""

from __future__ import annotations

import re
from textwrap import wrap
from typing import Any

from core.language.catalogue import Language
from core.message import Message

# Plotly reads HTML's tags, links among them, in any text; it shows an escaped bracket as a bracket.
_FOREIGN_TAG = re.compile(r"<(?=[/a-z!])(?!br>|/?b>|/?extra>)", re.IGNORECASE)
HOVER, NOTE, LEGEND = 60, 44, 40  # characters: of a line in a hover, in a box, of a series' name


def say_figure(figure: dict[str, Any], language: Language) -> dict[str, Any]:
    """A figure as plain JSON values, in the language; names and values of people stay as they are.

    >>> name = "<b>x</b><br><a href='http://e.io'>y</a>"
    >>> say_figure({"data": [], "layout": {"title": name}}, Language("en"))["layout"]["title"]
    "<b>x</b><br>&lt;a href='http://e.io'>y&lt;/a>"
    """
    said: dict[str, Any] = _said(figure, language)
    for trace in said["data"]:
        if isinstance(trace.get("name"), str):
            name = trace["name"]
            trace["name"] = name if len(name) <= LEGEND else name[: LEGEND - 1] + "…"
        if "hovertext" in trace:
            trace["hovertext"] = _broken(trace["hovertext"], HOVER)
    for note in said["layout"].get("annotations", ()):
        note["text"] = _broken(note["text"], NOTE)
    if language.code != "en":
        said["layout"]["separators"] = language.number(".,")
    return said


def _said(part: Any, language: Language) -> Any:
    if isinstance(part, str):
        text = language.render(part) if isinstance(part, Message) else part
        return _FOREIGN_TAG.sub("&lt;", text)
    if isinstance(part, dict):
        return {key: _said(value, language) for key, value in part.items()}
    return [_said(value, language) for value in part] if isinstance(part, list | tuple) else part


def _broken(texts: Any, width: int) -> Any:
    """Texts whose long lines are broken between words."""
    if isinstance(texts, list):
        return [_broken(text, width) for text in texts]
    if len(texts) <= width:
        return texts
    lines = (
        wrap(line, width, break_long_words=False, break_on_hyphens=False) or [line]
        for line in texts.split("<br>")
    )
    return "<br>".join(part for line in lines for part in line)
