"""Rules: what the steward declares true of every row, and where the synthetic table keeps it so.

A rule is public: it is declared from what the columns mean. What it says of values (which label a
code has, which combinations there are) is declared with it, or bought, like a category list.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from core.table.column import SchemaError

__all__ = [
    "AtMost",
    "Combinations",
    "Determines",
    "Difference",
    "MissingTogether",
    "Rule",
    "Sum",
    "parse_rule",
]

_FROZEN = ConfigDict(frozen=True, extra="forbid")


class Determines(BaseModel):
    """One column follows from another: equal sources have equal results.

    Attributes:
      source, result: the columns; both listed.
      mapping: result label by source label; None until it is declared or bought.
      bought: whether the mapping was released by a mechanism, not declared.
    """

    model_config = _FROZEN

    kind: Literal["determines"] = "determines"
    source: str
    result: str
    mapping: dict[str, str] | None = None
    bought: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return (self.source, self.result)

    @property
    def text(self) -> str:
        """As the command line takes it."""
        return f"{self.result} <- {self.source}"


class AtMost(BaseModel):
    """low ≤ high in every row that has both."""

    model_config = _FROZEN

    kind: Literal["at_most"] = "at_most"
    low: str
    high: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return (self.low, self.high)

    @property
    def text(self) -> str:
        """As the command line takes it."""
        return f"{self.low} <= {self.high}"


class Sum(BaseModel):
    """total = left + right in every row that has all three; dates count in days."""

    model_config = _FROZEN

    kind: Literal["sum"] = "sum"
    total: str
    left: str
    right: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return (self.total, self.left, self.right)

    @property
    def text(self) -> str:
        """As the command line takes it."""
        return f"{self.total} = {self.left} + {self.right}"


class Difference(BaseModel):
    """result = left - right in every row that has all three; dates count in days."""

    model_config = _FROZEN

    kind: Literal["difference"] = "difference"
    result: str
    left: str
    right: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return (self.result, self.left, self.right)

    @property
    def text(self) -> str:
        """As the command line takes it."""
        return f"{self.result} = {self.left} - {self.right}"


class Combinations(BaseModel):
    """Only some combinations of labels occur.

    Attributes:
      names: the columns, listed ones, two or more.
      allowed: labels in the order of `names`; None until they are declared or bought.
      bought: whether they were released by a mechanism, not declared.
    """

    model_config = _FROZEN

    kind: Literal["combinations"] = "combinations"
    names: tuple[str, ...] = Field(min_length=2)
    allowed: tuple[tuple[str, ...], ...] | None = None
    bought: bool = False

    @model_validator(mode="after")
    def _lengths(self) -> Self:
        if any(len(labels) != len(self.names) for labels in self.allowed or ()):
            raise ValueError("every combination must name one label of each column")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return self.names

    @property
    def text(self) -> str:
        """As the command line takes it."""
        return f"combinations {', '.join(self.names)}"


class MissingTogether(BaseModel):
    """Where one of the columns is missing, all of them are."""

    model_config = _FROZEN

    kind: Literal["missing_together"] = "missing_together"
    names: tuple[str, ...] = Field(min_length=2)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return self.names

    @property
    def text(self) -> str:
        """As the command line takes it."""
        return f"missing together {', '.join(self.names)}"


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

    Raises:
      SchemaError: it has none of the known forms, which are named.

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
        f"'{text}' is no rule. Write 'label <- code', 'start <= end', 'total = a + b', "
        "'stay = end - start', 'combinations a, b' or 'missing together a, b'."
    )
