"""What an interface and its figures say in one language; English is what the code says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from gettext import GNUTranslations
from pathlib import Path
from string import Formatter
from textwrap import wrap
from typing import Any

from core.message import DAY, Message

FOLDER = Path(__file__).parent
NAMES = {"en": "English", "de": "Deutsch"}
# as Python writes numbers → as people read them; the English need nothing
_MARKS = {"de": str.maketrans(",.", ".,")}
_DAYS = {"de": "{day:02d}.{month:02d}.{year:04d}"}
_PERCENT = re.compile(r"(?<=\d)%")  # which those languages write apart from its number
_TRANSLATED = "t"  # the conversion in "{records!t}": a value that is a text of ours itself
# Plotly reads HTML's tags, links among them, in any text; it shows an escaped bracket as a bracket.
_FOREIGN_TAG = re.compile(r"<(?=[/a-z!])(?!br>|/?b>|/?extra>)", re.IGNORECASE)
HOVER, NOTE, LEGEND = 60, 44, 40  # characters: of a line in a hover, in a box, of a series' name


class _Filled(Formatter):
    """Fills templates: numbers get the language's marks, messages and `!t` are translated."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Message):
            value = self.language.render(value)
        text = format(value, format_spec)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return self.language.number(text) if is_number else text

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion == _TRANSLATED:
            return self.language.render(value if isinstance(value, str) else str(value))
        return super().convert_field(value, conversion)


class Language:
    """One language of the interface.

    Args:
      code: as in `NAMES`; all but English need a compiled catalogue, `CODE.mo`, in this folder.

    Raises:
      FileNotFoundError: there is no catalogue.
    """

    def __init__(self, code: str) -> None:
        self.code = code
        self._messages: Mapping[str, str] = {}
        if code != "en":
            with (FOLDER / f"{code}.mo").open("rb") as file:
                catalogue: dict[Any, str] = vars(GNUTranslations(file))["_catalog"]
            self._messages = {key: text for key, text in catalogue.items() if key}
            self._messages |= {DAY: _DAYS[code]}
        self._filled = _Filled(self)

    def number(self, text: str) -> str:
        """A number as Python wrote it, with the language's marks.

        >>> Language("en").number("1,234.5")
        '1,234.5'
        """
        if self.code not in _MARKS:
            return text
        return _PERCENT.sub("\u00a0%", text.translate(_MARKS[self.code]))

    def say(self, template: str, /, **values: Any) -> str:
        """A text of the interface.

        Args:
          template: in English, as it stands in the catalogue; fields as in `str.format`, and
            `{name!t}` for a value that is itself a text of ours.
          values: of the fields; numbers are written the language's way.

        >>> Language("en").say("{n:,} rows", n=1200)
        '1,200 rows'
        """
        return self._filled.vformat(self._messages.get(template, template), (), values)

    def render(self, text: str) -> str:
        """A message in the language; a plain string is looked up whole, else shown as it is.

        Names and values of people stand in a message's values; a plain string that people wrote
        must not be put through here: a column called "Number" is called so in every language.

        >>> Language("en").render(Message("{n:,} rows of '{name}'", n=1200, name="visits"))
        "1,200 rows of 'visits'"
        """
        if isinstance(text, Message):
            return self.say(text.template, **text.values)
        return self._messages.get(text, text)


@lru_cache
def language(code: str) -> Language:
    """The language with this code; English where there is no catalogue for it."""
    return Language(code if code in NAMES else "en")


ENGLISH = language("en")


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
