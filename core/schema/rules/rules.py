"""Rules: what the steward declares true of every row, and where the synthetic table keeps it so.

A rule is public: it is declared from what the columns mean. What it says of values (which label a
code has, which combinations there are) is declared with it, or learned, like a category list.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from core.message import Message
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
    """low ≤ high in every row that has both."""

    PARTS = ("low", "high")
    TEXT = "{low} <= {high}"

    kind: Literal["at_most"] = "at_most"
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
            raise ValueError(Message("Every combination must name one label of each column."))
        return self

    @property
    def settled(self) -> bool:
        """See `_Rule.settled`."""
        return self.allowed is not None


class MissingTogether(_Together):
    """Where one of the columns is missing, all of them are."""

    WORDS = Message("missing together")

    kind: Literal["missing_together"] = "missing_together"


AnyRule = Determines | AtMost | Sum | Difference | Combinations | MissingTogether
Rule = Annotated[AnyRule, Field(discriminator="kind")]

_FORMS = (
    (r"(?P<result>.+?)\s*<-\s*(?P<source>.+)", "determines"),
    (r"(?P<low>.+?)\s*<=\s*(?P<high>.+)", "at_most"),
    (r"(?P<total>.+?)\s*=\s*(?P<left>.+?)\s+\+\s+(?P<right>.+)", "sum"),
    (r"(?P<result>.+?)\s*=\s*(?P<left>.+?)\s+-\s+(?P<right>.+)", "difference"),
    (r"combinations\s+(?P<names>.+)", "combinations"),
    (r"missing together\s+(?P<names>.+)", "missing_together"),
)


def parse_rule(text: str) -> AnyRule:
    """A rule from its text.

    >>> parse_rule("label <- code").columns, parse_rule("stay = end - start").text
    (('code', 'label'), 'stay = end - start')
    """
    for pattern, kind in _FORMS:
        match = re.fullmatch(pattern, text.strip())
        if match:
            parts: dict[str, object] = {k: v.strip() for k, v in match.groupdict().items()}
            if "names" in parts:
                parts["names"] = tuple(name.strip() for name in str(parts["names"]).split(","))
            try:
                rule: AnyRule = TypeAdapter(Rule).validate_python({"kind": kind, **parts})
            except ValidationError:
                break
            return rule
    raise SchemaError(
        "'{text}' is not a rule. Write 'label <- code', 'start <= end', 'total = a + b', "
        "'stay = end - start', 'combinations a, b' or 'missing together a, b'.",
        text=text,
    )
