"""Sentences for people that can still be said in another language after they were made.

A room below makes a `Message`; a page, a report or a file says it in a language at the very end
(`core.language`). Everywhere in between it is its English text, so logs, the command line, hashes
and comparisons need to know nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from numbers import Integral, Real
from string import Formatter
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

Value = str | int | float  # a string may be a message
DAY = "{year:04d}-{month:02d}-{day:02d}"  # other languages have other orders
_FORM = re.compile(
    r"[+-]?0?[0-9]?,?(\.[0-9]{1,2})?[a-z%]?"
)  # of numbers, as our templates have them


class Message(str):
    """A sentence in English, with the template and the values that it was made from.

    `f"{message} …"` and `message + …` give plain strings that cannot be translated any more: put
    a message into another one's values, or use `joined`.

    Args:
      template: English, a literal, so that the catalogue can collect it; fields as in
        `str.format`. Numbers are given as numbers and written by the field's format, so that every
        language can write them its own way.
      values: of the fields; a string is a name or a value of people's and stays as it is, a
        message is said in the language.

    >>> message = Message("{n:,} rows of '{name}'", n=1200, name="visits")
    >>> message, message.template
    ("1,200 rows of 'visits'", "{n:,} rows of '{name}'")
    """

    template: str
    values: Mapping[str, Value]

    def __new__(cls, template: str, /, **values: object) -> Message:
        """Fill the template."""
        kept = {name: _value(value) for name, value in values.items()}
        message = super().__new__(cls, template.format(**kept))
        message.template, message.values = str.__str__(template), kept
        return message

    def __str__(self) -> str:
        """The message itself, so that `str(error)` of an error raised with one is that message."""
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], Mapping[str, Value]]:
        return (self.template,), self.values


def _value(value: object) -> Value:
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, Integral):  # NumPy's numbers are none that JSON knows
        return int(value)
    return float(value) if isinstance(value, Real) else str(value)


def day(moment: date) -> Message:
    """A day, as each language writes it."""
    return Message(DAY, year=moment.year, month=moment.month, day=moment.day)


def minute(moment: datetime, zone: str = "") -> Message:
    """A moment to the minute; `zone` is written right after it."""
    return Message("{day} {time}", day=day(moment), time=f"{moment:%H:%M}{zone}")


def clock(moment: datetime) -> Message:
    """The time of a day, to the minute."""
    return Message("{time}", time=f"{moment:%H:%M}")


def plural(n: int, one: str, many: str, /, **values: object) -> Message:
    """`one` where n is 1, else `many`; both may hold `{n}`.

    >>> plural(2, "1 row is empty.", "{n} rows are empty.")
    '2 rows are empty.'
    """
    return Message(one if n == 1 else many, **{"n": n, **values})


def joined(messages: Iterable[str], separator: str = " ") -> Message:
    """Texts after one another; plain strings among them are constants of ours, never names.

    >>> joined([Message("{n} rows.", n=2), "No columns."])
    '2 rows. No columns.'
    """
    parts = {f"part{i}": _message(text) for i, text in enumerate(messages)}
    return Message(_literal(separator).join(f"{{{name}}}" for name in parts), **parts)


def _message(text: str) -> Message:
    return text if isinstance(text, Message) else Message(_literal(text))


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def to_say(text: str, /) -> str:
    """A template in a constant, as it is: marked for the catalogue, to be filled by `Message`."""
    return text


def to_json(value: Any) -> Any:
    """A text to be stored: a message with its template beside its English, else the text itself.

    Lists and dicts are stored with the texts in them.

    >>> to_json(Message("{n} rows", n=2))
    {'text': '2 rows', 'template': '{n} rows', 'values': {'n': 2}}
    """
    if isinstance(value, Message):
        return _saved(value) if value.values else str.__str__(value)
    if isinstance(value, Mapping):
        return {key: to_json(part) for key, part in value.items()}
    return [to_json(part) for part in value] if isinstance(value, list | tuple) else value


def _saved(message: Message) -> dict[str, Any]:
    values = {
        name: _saved(value) if isinstance(value, Message) else value
        for name, value in message.values.items()
    }
    return {"text": str.__str__(message), "template": message.template, "values": values}


def from_json(saved: Any) -> Any:
    """What `to_json` made, as it was; where a template does not give its English, that alone.

    It can be the `object_hook` of `json.load` too.

    >>> from_json(to_json(Message("{n} rows", n=2))).values
    {'n': 2}
    """
    if isinstance(saved, list):
        return [from_json(part) for part in saved]
    if not isinstance(saved, dict):
        return saved
    if saved.keys() != {"text", "template", "values"} or not isinstance(saved["text"], str):
        return {key: from_json(part) for key, part in saved.items()}
    try:
        _check_fields(saved["template"])
        message = Message(saved["template"], **from_json(saved["values"]))
    except (AttributeError, LookupError, TypeError, ValueError):
        return saved["text"]  # somebody changed what was stored
    return message if message == saved["text"] else saved["text"]


def _check_fields(template: str) -> None:
    """Refuse a template from a file that would reach into a value or fill the memory with one.

    A schema from elsewhere holds notes: `{x:>9000000000}` in one would take nine gigabytes.
    """
    for _, name, form, conversion in Formatter().parse(template):
        if name is not None and not (name.isidentifier() and conversion is None):
            raise ValueError(f"a field '{name}' of no plain name")
        if form and not _FORM.fullmatch(form):
            raise ValueError(f"a format '{form}' that no text of ours has")


def _checked(value: object) -> str:
    text = from_json(value)
    if not isinstance(text, str):
        raise ValueError("Input should be a text")
    return text


# A model's field that keeps the templates of its messages, in JSON too.
Text = Annotated[str, PlainValidator(_checked), PlainSerializer(to_json, when_used="json")]


class ReportedError(ValueError):
    """An error whose text people read: raised with a template and its values, as a `Message`.

    >>> str(ReportedError("No column is called '{name}'.", name="age"))
    "No column is called 'age'."
    """

    def __init__(self, template: str, /, **values: object) -> None:
        super().__init__(Message(template, **values) if values else template)
