"""Finished English sentences, recognised by the templates they were made from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import Formatter

# what stands in a field ends before the next sentence, else one sentence could swallow another
_VALUE = r"(?:(?![.!?]\s).)*?"
_NUMBER = r"[-+−]?(?:[\d.,]+(?:e[-+]?\d+)?|inf|nan|∞)%?"
# a format that writes a number; that of a date writes words
_NUMERIC = re.compile(r"[-+ ]?[\d,]*(?:\.\d+)?~?[defgn%]?", re.IGNORECASE)
_QUOTED = {"'": "'", "`": "`", "“": "”", "‘": "’"}
FEWEST_LETTERS = 5  # of literal text, in a template whose fields hold words
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+")


@dataclass(frozen=True)
class Recognised:
    """A template, and what stands in its fields; fields with a format specification are numbers."""

    template: str
    values: Mapping[str, str]
    numbers: frozenset[str]


@dataclass(frozen=True)
class _Template:
    text: str
    anchor: str  # its longest literal part: absent, the template need not be tried
    fixed: int  # characters of literal text
    pattern: re.Pattern[str]
    groups: Mapping[str, str]
    numbers: frozenset[str]


def _telling(template: str) -> bool:
    """Whether a template has fields, and enough words of its own not to fit people's sentences."""
    parts = list(Formatter().parse(template))
    # `s` stands for shares and dates, as short as numbers
    kinds = [
        form == "s" or bool(form and _NUMERIC.fullmatch(form)) for _, name, form, _ in parts if name
    ]
    letters = sum(character.isalpha() for literal, *_ in parts for character in literal)
    return bool(kinds) and (all(kinds) or letters >= FEWEST_LETTERS)


def _value(before: str, specification: str, after: str) -> str:
    """The pattern of what may stand in a field, between these literals."""
    if before[-1:] in _QUOTED and after[:1] == _QUOTED[before[-1:]]:
        return ".*?"  # its end is clear, whatever it holds
    return _NUMBER if specification and _NUMERIC.fullmatch(specification) else _VALUE


def _compiled(template: str) -> _Template:
    groups: dict[str, str] = {}
    pattern, literals, numbers = "", [""], set()
    parts = list(Formatter().parse(template))
    followers = [literal for literal, _, _, _ in parts[1:]] + [""]
    for (literal, name, specification, _), after in zip(parts, followers, strict=True):
        pattern += re.escape(literal)
        literals.append(literal)
        if name is None:
            continue
        if specification:
            numbers.add(name)
        if name in groups:
            pattern += f"(?P={groups[name]})"
        else:
            groups[name] = f"g{len(groups)}"
            pattern += f"(?P<{groups[name]}>{_value(literal, specification or '', after)})"
    return _Template(
        template,
        max(literals, key=len),
        sum(map(len, literals)),
        re.compile(pattern, re.DOTALL),
        groups,
        frozenset(numbers),
    )


class Templates:
    """All templates with fields; the one with the most literal text is taken where several fit."""

    def __init__(self, templates: Iterable[str]) -> None:
        compiled = (_compiled(template) for template in templates if _telling(template))
        self._ordered = sorted(compiled, key=lambda one: -one.fixed)

    def recognise(self, text: str) -> Recognised | None:
        """The template a text was made from, None where no template fits all of it.

        >>> Templates(["{n:,} rows of {name}"]).recognise("1,200 rows of visits").values
        {'n': '1,200', 'name': 'visits'}
        """
        for one in self._ordered:
            if one.anchor in text and (match := one.pattern.fullmatch(text)):
                values = {name: match[group] for name, group in one.groups.items()}
                return Recognised(one.text, values, one.numbers)
        return None


def openings(text: str) -> Iterable[tuple[str, str, str]]:
    """A text cut after some of its sentences, longest first: (opening, space, rest).

    >>> list(openings("One. Two."))
    [('One. Two.', '', ''), ('One.', ' ', 'Two.')]
    """
    yield text, "", ""
    for end in reversed(list(_SENTENCE_END.finditer(text))):
        yield text[: end.start()], end.group(), text[end.end() :]
