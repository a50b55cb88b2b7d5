"""What an interface says in one language; English is what the code says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from gettext import GNUTranslations
from pathlib import Path
from string import Formatter
from typing import Any

from core.language.templates import Templates, openings
from core.message import Message

FOLDER = Path(__file__).parent
NAMES = {"en": "English", "de": "Deutsch"}
# as Python writes numbers → as people read them; the English need nothing
_MARKS = {"de": str.maketrans(",.", ".,")}
_PERCENT = re.compile(r"(?<=\d)%")  # which those languages write apart from its number
_BETWEEN = "\x04"  # a context and its message, in a compiled catalogue
_TRANSLATED = "t"  # the conversion in "{records!t}": a value that is a text of ours itself


class _Filled(Formatter):
    """Fills templates: numbers get the language's marks, `!t` says a value in the language."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Message):
            value = self.language.said(value)
        text = format(value, format_spec)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return self.language.number(text) if is_number else text

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion == _TRANSLATED:
            return self.language.said(value if isinstance(value, str) else str(value))
        return super().convert_field(value, conversion)


def _holds_messages(message: Message) -> bool:
    words = any(c.isalpha() for literal, *_ in Formatter().parse(message.template) for c in literal)
    return not words or any(isinstance(value, Message) for value in message.values.values())


class Language:
    """One language of the interface.

    Args:
      code: as in `NAMES`; all but English need a compiled catalogue, `CODE.mo`, in this folder.

    Raises:
      FileNotFoundError: there is no catalogue.
    """

    def __init__(self, code: str) -> None:
        self.code = code
        self._messages: dict[str, str] = {}
        if code != "en":
            with (FOLDER / f"{code}.mo").open("rb") as file:
                catalogue: dict[Any, str] = vars(GNUTranslations(file))["_catalog"]
            self._messages = {key: text for key, text in catalogue.items() if key}
        self._templates = Templates(key for key in self._messages if _BETWEEN not in key)
        self._filled = _Filled(self)
        self._recognised = lru_cache(maxsize=4096)(self._said)

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
        return self._messages.get(text, text) if text else text

    def said(self, text: str) -> str:
        """A text of ours in the language, as `render`; a finished sentence is recognised."""
        if isinstance(text, Message) and (text.template in self._messages or _holds_messages(text)):
            return self.render(text)
        return self._recognised(text)

    def _said(self, text: str) -> str:
        """An English text of ours said in the language; what is not known stays as it is.

        Names, comments and values of people must not be put through here: a column called
        "Number" is called so in every language.
        """
        if self.code == "en" or not text:
            return text
        for opening, space, rest in openings(text):
            if (known := self._known(opening)) is not None:
                return known + space + (self.said(rest) if rest else "")
        first = re.match(r".*?[.!?:;]\s+(?=\S)", text, re.DOTALL)
        return first[0] + self.said(text[first.end() :]) if first else text

    def _known(self, text: str) -> str | None:
        """A text that is one message, finished or filled."""
        if text in self._messages:
            return self._messages[text]
        match = self._templates.recognise(text)
        if match is None:
            return None
        values = {
            name: self.number(value) if name in match.numbers else value
            for name, value in match.values.items()
        }
        return self.filled(self._messages[match.template], values)

    def translation(self, message: str, context: str) -> str:
        """What stands in the catalogue for a message of a context, unfilled; else the message."""
        return self._messages.get(f"{context}{_BETWEEN}{message}", message)

    def filled(self, template: str, values: Mapping[str, str]) -> str:
        """A template filled with values that are written already."""
        pieces = []
        for literal, name, _, conversion in self._filled.parse(template):
            pieces.append(literal)
            if name is not None:
                value = values[name]
                pieces.append(self.said(value) if conversion == _TRANSLATED else value)
        return "".join(pieces)


@lru_cache
def language(code: str) -> Language:
    """The language with this code; English where there is no catalogue for it."""
    return Language(code if code in NAMES else "en")


ENGLISH = language("en")
