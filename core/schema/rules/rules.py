"""Rules: what the steward declares true of every row, and where the synthetic table keeps it so.

A rule is public: it is declared from what the columns mean. What it says of values (which label a
code has, which combinations there are) is declared with it, or learned, like a category list.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from core.message import Message, ReportedError
from core.schema.column import SchemaError


class _Rule(BaseModel):
    PARTS: ClassVar[tuple[str, ...]] = ()
    TEXT: ClassVar[str] = ""
    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(getattr(self, part) for part in self.PARTS)

    @property
    def text(self) -> str:
        return self.TEXT.format(**dict(self))

    @property
    def settled(self) -> bool:
        """Whether what it says of values, if anything, was declared or learned."""
        return True


class Determines(_Rule):
    """Equal sources have equal results; `mapping` is None until it is declared or learned."""

    PARTS = ("source", "result")
    TEXT = "{result} <- {source}"

    kind: Literal["determines"] = "determines"
    source: str
    result: str
    mapping: dict[str, str] | None = None
    learned: bool = False

    @property
    def settled(self) -> bool:
        """See `_Rule.settled`."""
        return self.mapping is not None


class AtMost(_Rule):
    """low ≤ high in every row that has both; `learned` where a run found that it holds."""

    PARTS = ("low", "high")
    TEXT = "{low} <= {high}"

    kind: Literal["at_most"] = "at_most"
    low: str
    high: str
    learned: bool = False


class Equal(_Rule):
    """first = second in every row that has both."""

    PARTS = ("first", "second")
    TEXT = "{first} = {second}"

    kind: Literal["equal"] = "equal"
    first: str
    second: str


class Follows(_Rule):
    """low ≤ high of the next event of the same person, wherever both are there."""

    PARTS = ("low", "high")
    TEXT = "{high}[t+1] >= {low}[t]"

    kind: Literal["follows"] = "follows"
    low: str
    high: str


class Sum(_Rule):
    """total = left + right in every row that has all three; dates count in days."""

    PARTS = ("total", "left", "right")
    TEXT = "{total} = {left} + {right}"

    kind: Literal["sum"] = "sum"
    total: str
    left: str
    right: str


class Difference(_Rule):
    """result = left - right in every row that has all three; dates count in days."""

    PARTS = ("result", "left", "right")
    TEXT = "{result} = {left} - {right}"

    kind: Literal["difference"] = "difference"
    result: str
    left: str
    right: str


class _Together(_Rule):
    WORDS: ClassVar[str] = ""

    names: tuple[str, ...] = Field(min_length=2)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names

    @property
    def text(self) -> str:
        return f"{self.WORDS} {', '.join(self.names)}"


class Combinations(_Together):
    """Only some combinations of labels occur; `allowed` is None until declared or learned."""

    WORDS = "combinations"

    kind: Literal["combinations"] = "combinations"
    allowed: tuple[tuple[str, ...], ...] | None = None
    learned: bool = False

    @model_validator(mode="after")
    def _lengths(self) -> Self:
        if any(len(labels) != len(self.names) for labels in self.allowed or ()):
            raise ReportedError("Every combination must name one label of each column.")
        return self

    @property
    def settled(self) -> bool:
        """See `_Rule.settled`."""
        return self.allowed is not None


class MissingTogether(_Together):
    """Where one of the columns is missing, all of them are."""

    WORDS = Message("missing together")

    kind: Literal["missing_together"] = "missing_together"


class Statement(BaseModel):
    """What a row may say of one column: `values` are labels, numbers, ISO dates or missing codes.

    A missing cell is neither above nor below a number.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: str = Field(min_length=1)
    relation: Literal["<", "<=", ">", ">=", "in", "not in", "missing", "present"]
    values: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As it is written in a rule."""
        name, values = _quoted(self.column), [_quoted(value) for value in self.values]
        if not values:
            return f"{name} is {self.relation}"
        if len(values) > 1:
            return f"{name} {self.relation} ({', '.join(values)})"
        return f"{name} {_SIGNS.get(self.relation, self.relation)} {values[0]}"


class IfThen(_Rule):
    """Every row of which the condition is true has the consequence."""

    TEXT = "if {condition.text} then {consequence.text}"

    kind: Literal["if_then"] = "if_then"
    condition: Statement
    consequence: Statement

    @property
    def columns(self) -> tuple[str, ...]:
        """See `_Rule.columns`."""
        return self.condition.column, self.consequence.column


NumberRule = AtMost | Equal | Sum | Difference
AnyRule = Determines | NumberRule | Follows | Combinations | MissingTogether | IfThen
Rule = Annotated[AnyRule, Field(discriminator="kind")]

_FORMS = (
    (r"(?P<result>.+?)\s*<-\s*(?P<source>.+)", "determines"),
    (r"(?P<high>.+?)\[t ?\+ ?1\]\s*>=\s*(?P<low>.+?)\[t\]", "follows"),
    (r"(?P<low>.+?)\[t\]\s*<=\s*(?P<high>.+?)\[t ?\+ ?1\]", "follows"),
    (r"(?P<low>.+?)\s*<=\s*(?P<high>.+)", "at_most"),
    (r"(?P<total>.+?)\s*=\s*(?P<left>.+?)\s+\+\s+(?P<right>.+)", "sum"),
    (r"(?P<result>.+?)\s*=\s*(?P<left>.+?)\s+-\s+(?P<right>.+)", "difference"),
    (r"(?P<first>[^=<>]+?)\s*=\s*(?P<second>[^=<>]+)", "equal"),
    (r"combinations\s+(?P<names>.+)", "combinations"),
    (r"missing together\s+(?P<names>.+)", "missing_together"),
)
_SIGNS = {"in": "=", "not in": "!="}  # of one value
_RELATIONS = {"=": "in", "is": "in", "!=": "not in", "is not": "not in"}
_QUOTE = r'"(?:[^"\\]|\\.)*"'
_PLAIN = re.compile(r"[\w.-]+( [\w.-]+)*")
_WORDS = re.compile(r"\b(if|then|implies|is|in|not|missing|present)\b", re.IGNORECASE)
_IF_THEN = re.compile(
    rf"if\s+((?:{_QUOTE}|[^\"])+?)\s+then\s+(.+)|((?:{_QUOTE}|[^\"])+?)\s+implies\s+(.+)"
)
_STATEMENT = re.compile(
    rf"\s*({_QUOTE}|[^\"]+?)(?:\s*(<=|>=|!=|<|>|=)|\s+(is not|is|(?:not )?in(?=\s*\()))\s*(.+?)\s*"
)
_VALUE = re.compile(rf"\s*({_QUOTE}|'[^']*'|[^,\"']+?)\s*(?:,|$)")


def _quoted(text: str) -> str:
    plain = _PLAIN.fullmatch(text) and not _WORDS.search(text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def _unquoted(text: str) -> str:
    if re.fullmatch(_QUOTE, text):
        return str(json.loads(text, strict=False))
    return text[1:-1] if re.fullmatch("'[^']*'", text) else text


def _statement(text: str) -> Statement:
    """A statement from its text; ValueError where it is none."""
    if not (match := _STATEMENT.fullmatch(text)):
        raise ValueError(text)
    name, sign, word, said = match.groups()
    if word == "is" and said in ("missing", "present"):
        return Statement.model_validate({"column": _unquoted(name), "relation": said})
    many = word in ("in", "not in")
    listed = said[1:-1] if many and said.endswith(")") else said
    values = [_unquoted(value) for value in _VALUE.findall(listed)]
    if not values or _VALUE.sub("", listed) or (len(values) > 1 and not many):
        raise ValueError(text)
    relation = _RELATIONS.get(sign or word, sign or word)
    fields = {"column": _unquoted(name), "relation": relation, "values": values}
    return Statement.model_validate(fields)


def _parts(text: str) -> dict[str, object]:
    """The fields of the rule that a text says; ValueError where it says none."""
    if match := _IF_THEN.fullmatch(text):
        condition, consequence = (_statement(part) for part in match.groups() if part)
        return {"kind": "if_then", "condition": condition, "consequence": consequence}
    for pattern, kind in _FORMS:
        if match := re.fullmatch(pattern, text):
            parts: dict[str, object] = {k: v.strip() for k, v in match.groupdict().items()}
            if "names" in parts:
                parts["names"] = tuple(name.strip() for name in str(parts["names"]).split(","))
            return {"kind": kind, **parts}
    raise ValueError(text)


def parse_rule(text: str) -> AnyRule:
    """A rule from its text.

    >>> parse_rule("label <- code").columns, parse_rule("stay = end - start").text
    (('code', 'label'), 'stay = end - start')
    >>> parse_rule("status is married implies age >= 15").text
    'if status = married then age >= 15'
    >>> parse_rule("discharged[t] <= admitted[t+1]").text
    'admitted[t+1] >= discharged[t]'
    """
    try:
        rule: AnyRule = TypeAdapter(Rule).validate_python(_parts(text.strip()))
    except ValueError:
        raise SchemaError(
            "'{text}' is not a rule. Write 'label <- code', 'start <= end', 'booked = paid', "
            "'total = a + b', 'stay = end - start', 'start[t+1] >= end[t]', 'combinations a, b', "
            "'missing together a, b' or 'if age < 15 then income is missing'.",
            text=text,
        ) from None
    return rule
