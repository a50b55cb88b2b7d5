"""Column: one column's kind, its public domain and how to write it back.

A domain leaves the house with every model, a schema never does: `DomainColumn` has the declared
fields and no other, `SchemaColumn` also what is for eyes inside.
"""

from __future__ import annotations

import hashlib
import math
import re
from enum import StrEnum
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from core.message import Message, ReportedError, Text, joined, to_say
from core.schema.calendar import Calendar
from core.schema.form import Form
from core.schema.magnitudes import magnitude_fault

AnyModel = TypeVar("AnyModel", bound=BaseModel)
BOOLEAN_PAIRS = ({"0", "1"}, {"no", "yes"}, {"false", "true"}, {"f", "t"}, {"n", "y"})
MAX_CATEGORIES = 10_000  # above this a column is an identifier or text in all but name


def is_whole(dtype: str) -> bool:
    """Whether a dtype holds whole numbers.

    >>> is_whole("UInt8"), is_whole("float64")
    (True, False)
    """
    return dtype.lower().startswith(("int", "uint"))


def nullable_dtype(dtype: str) -> str:
    """The dtype that has room for absent values.

    >>> nullable_dtype("int64"), nullable_dtype("uint8"), nullable_dtype("bool")
    ('Int64', 'UInt8', 'boolean')
    """
    if dtype.startswith(("int", "uint")):
        return dtype.replace("int", "Int").replace("u", "U")
    return "boolean" if dtype == "bool" else dtype


class Kind(StrEnum):
    """What a column means to a person, which decides how it is encoded."""

    NUMBER = "number"
    INTEGER = "integer"
    CATEGORY = "category"
    ORDERED = "ordered"
    BOOLEAN = "boolean"
    DATETIME = "datetime"
    IDENTIFIER = "identifier"
    TEXT = "text"

    @property
    def numeric(self) -> bool:
        """Whether values lie on a line (numbers, integers, dates)."""
        return self in (Kind.NUMBER, Kind.INTEGER, Kind.DATETIME)

    @property
    def listed(self) -> bool:
        """Whether values come from a finite list (categories, ordered, booleans)."""
        return self in (Kind.CATEGORY, Kind.ORDERED, Kind.BOOLEAN)

    @property
    def surrogate(self) -> bool:
        """Whether values are replaced by made-up ones and never modelled."""
        return self in (Kind.IDENTIFIER, Kind.TEXT)


class DomainSource(StrEnum):
    """How a column's bounds or category list become known."""

    DECLARED = "declared"  # the steward attests that they are public: costs nothing
    LEARNED = "learned"  # released with noise, as the first step of a run
    DROP = "drop"  # the column is left out of the synthetic table


class Provenance(StrEnum):
    """Where a declared domain comes from; accepting a proposal does not make it the steward's."""

    PROPOSED = "proposed"
    STEWARD = "steward"
    LEARNED = "learned"  # released with noise, which a ledger's entry paid for
    REFERENCE = "reference"  # public knowledge, by the column's name, kind and form alone
    UNSTATED = "unstated"  # in a schema file that does not say

    @property
    def words(self) -> Message:
        """For the certificate and the pages."""
        return _ORIGINS[self]


_ORIGINS = {
    Provenance.PROPOSED: Message("as proposed from the rows"),
    Provenance.STEWARD: Message("set by the steward"),
    Provenance.LEARNED: Message("learned with noise"),
    Provenance.REFERENCE: Message("public reference"),
    Provenance.UNSTATED: Message("origin not recorded"),
}


class SchemaError(ReportedError):
    """A schema that cannot be used; the message names the column and what to change."""


def changed(model: AnyModel, **fields: object) -> AnyModel:
    """A value with other fields, validated again."""
    try:
        return type(model).model_validate({**dict(model), **fields})
    except ValidationError as error:
        raise refusal(error) from None


def refusal(error: ValidationError) -> SchemaError:
    """The first fault that was found in a declaration, for the steward who made it."""
    first = error.errors(include_url=False, include_input=False)[0]
    cause = first.get("ctx", {}).get("error")  # what a check of ours raised
    return SchemaError(joined([str(cause or f"{first['msg']}."), Message("Nothing was changed.")]))


class RuleDomainError(SchemaError):
    """A rule that has no room in the bounds, labels or missing marks of its columns."""


class UndeclaredDomainError(SchemaError):
    """Columns whose bounds or categories are neither declared nor learned."""


class Column(BaseModel):
    """One column: its kind, its public domain and how to write it back; all of it may leave.

    Attributes:
      missing: whether a value may be absent, which is a state of its own.
      low, high: inclusive bounds of numeric kinds, low ≤ high; dates in seconds since 1970-01-01.
      step: resolution of numeric kinds (whole for integers, 86400 for days); 0 means continuous.
      scale: "linear", or "log" for heavy tails (asinh about a centre, so both signs work).
      spikes: values that carry an atom of their own, such as 0 in a zero-inflated column.
      categories: labels of listed kinds as text, in order for `ordered`; `dtype` writes them back.
      other: the one of `categories` that stands for values outside them.
      dtype: pandas dtype of the input ("int64", "float64", "str", "bool", "datetime64[us]", ...).
      date_format: strptime format when a date column arrived as text.
      pattern: of made-up values of identifiers and text, and of a list's codes: # stands for a
        digit, @ for a letter A–Z, a for one of a–z, * for a digit or a letter A–Z, others for
        themselves; | ends a part of a code that means something by itself (@|##|.#).
      form: how cells are written; None for plainly.
      absent: share of made-up values that are missing, in [0, 1]; identifiers and text only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    kind: Kind
    missing: bool = False
    source: DomainSource = DomainSource.DECLARED
    low: float | None = None
    high: float | None = None
    step: float = Field(default=0.0, ge=0.0)
    scale: Literal["linear", "log"] = "linear"
    spikes: tuple[float, ...] = ()
    categories: tuple[str, ...] | None = None
    other: str | None = None
    dtype: str = "str"
    date_format: str | None = None
    pattern: str | None = Field(default=None, min_length=1, max_length=64)
    form: Form | None = None
    absent: float = Field(default=0.0, ge=0.0, le=1.0)

    @field_validator("low", "high")
    @classmethod
    def _finite(cls, value: float | None) -> float | None:
        if value is not None and not math.isfinite(value):
            raise ReportedError("Bounds must be finite numbers.")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise SchemaError(
                to_say("'{name}': the lower bound {low:g} is above the upper bound {high:g}."),
                name=self.name,
                low=self.low,
                high=self.high,
            )
        if self.categories is not None:
            if len(set(self.categories)) != len(self.categories):
                raise SchemaError(to_say("'{name}' lists a category twice."), name=self.name)
            if len(self.categories) > MAX_CATEGORIES:
                raise SchemaError(
                    to_say(
                        "'{name}' has more than {most:,} categories. Make it text or an identifier."
                    ),
                    name=self.name,
                    most=MAX_CATEGORIES,
                )
        digits = self.pattern is None or re.fullmatch("#{1,18}", self.pattern.replace("|", ""))
        if is_whole(self.dtype) and not digits:
            raise SchemaError(
                to_say("'{name}': the pattern of a whole number is 1 to 18 times #."),
                name=self.name,
            )
        if self.other is not None and self.other not in (self.categories or ()):
            raise SchemaError(
                to_say("'{name}': 'other' must be one of the categories."), name=self.name
            )
        return self

    @property
    def codes(self) -> tuple[str, ...]:
        """Values in the rows that stand for missing, each a state; numeric kinds only."""
        return self.form.codes if self.form is not None and self.kind.numeric else ()

    @property
    def may_be_absent(self) -> bool:
        """Whether a cell may have no value, however that is written."""
        spellings = () if self.form is None else self.form.codes
        listed = self.kind.listed and not set(spellings).isdisjoint(self.categories or ())
        return self.missing or bool(self.codes) or listed

    @property
    def declared(self) -> bool:
        """Whether everything a model needs to know is stated here."""
        if self.kind.numeric:
            return self.low is not None and self.high is not None
        if self.kind.listed:
            return bool(self.categories)
        return True

    @property
    def modelled(self) -> bool:
        """Whether a model learns this column (not a surrogate, not dropped)."""
        return self.source is not DomainSource.DROP and not self.kind.surrogate

    def check_magnitude(self) -> None:
        """Refuse bounds that no model could compute with."""
        bounds = (self.low, self.high, *self.spikes)
        fault = magnitude_fault(bounds, dates=self.kind is Kind.DATETIME)
        if fault and self.kind.numeric and self.modelled:
            raise SchemaError(
                "Column '{name}': its bounds must {fault}. Nothing more was spent. Declare "
                "narrower bounds on the Tables page, or leave the column out.",
                name=self.name,
                fault=fault,
            )

    @property
    def domain_digest(self) -> str:
        """Names the declared fields but name, source and form, 16 hex digits."""
        domain = Column(**self.fields()).model_dump_json(
            exclude={"name", "source", "form", "absent"}
        )
        return hashlib.sha256(domain.encode()).hexdigest()[:16]

    def fields(self) -> dict[str, Any]:
        """The declared fields by name, and no others, whatever a subclass adds."""
        return {name: getattr(self, name) for name in Column.model_fields}


class Learned(BaseModel):
    """How a column's domain was learned with noise, together with those of other columns; public.

    Attributes:
      entry: of the ledger, which paid for the run that learned it; "" for the run at hand.
      epsilon, epsilon_replace, delta: of all that was learned together.
      domain: digest of the column's domain as it was learned.
      known: how many of its labels were declared beforehand.
      outside: estimated share of records that no label or bounds hold; `error`, its standard error.
      placeholders: how many made-up labels stand for those that were too rare; 0 for `other` alone.
      nearest: whether a number that is not in the list becomes the nearest that is.
      heaps: steps with the share of numbers that are multiples of each and of no coarser one.
      after, calendar: the date that dates mostly follow on, ""; how often they lie on which days.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    domain: str
    entry: str = ""
    epsilon: float = 0.0
    epsilon_replace: float = 0.0
    delta: float = 0.0
    known: int = 0
    outside: float = 0.0
    error: float = 0.0
    placeholders: int = 0
    nearest: bool = False
    heaps: tuple[tuple[float, float], ...] = ()
    after: Text = ""
    calendar: Calendar = Calendar()

    @property
    def words(self) -> Message:
        """For the certificate and the pages."""
        if not self.entry:
            return Message("learned with noise in this run")
        earlier = to_say("learned with noise in an earlier run (ledger entry {entry})")
        return Message(earlier, entry=self.entry)


class Reference(BaseModel):
    """What a public domain can be looked up in; `domain`: the digest of what stands there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: Text
    domain: str

    @property
    def words(self) -> Message:
        """For the certificate and the pages."""
        return Message("public reference: {source}", source=self.source)


class DomainColumn(Column):
    """A column of a domain: the declared fields and where they come from. It leaves the house.

    `cuts`, ascending: a cell that models see ends below each, since a rule names it.
    """

    provenance: Provenance = Provenance.UNSTATED
    learned: Learned | None = None
    reference: Reference | None = None
    cuts: tuple[float, ...] = ()

    @property
    def declared(self) -> bool:
        """Whether everything a model needs to know is stated here."""
        return super().declared and not is_open(self)

    @classmethod
    def of(cls, column: Column) -> DomainColumn:
        """The part of any column that may leave, copied field by field."""
        if not isinstance(column, DomainColumn | SchemaColumn):
            return cls(**column.fields())
        origin = column.provenance
        made_up = column.kind.surrogate  # which have no domain, but may have missing cells
        learned = column.learned if origin is Provenance.LEARNED or made_up else None
        public = column.reference if origin is Provenance.REFERENCE else None
        fields = column.fields() | {"cuts": getattr(column, "cuts", ())}
        return cls(**fields, provenance=origin, learned=learned, reference=public)


def is_open(column: DomainColumn | SchemaColumn) -> bool:
    """Whether a column's domain is to be learned in the next run."""
    to_learn = column.source is DomainSource.LEARNED and column.modelled
    return to_learn and column.provenance is not Provenance.LEARNED


def origin_words(column: DomainColumn | SchemaColumn) -> Message:
    """Where a column's domain comes from."""
    known = {Provenance.LEARNED: column.learned, Provenance.REFERENCE: column.reference}
    noted = known.get(column.provenance)
    return column.provenance.words if noted is None else noted.words


NOTHING_PROPOSED = "none"


class SchemaColumn(Column):
    """A column of a schema: the declared fields and what is for the steward alone.

    Attributes:
      proposal: digest of the domain as proposed from the rows, which depends on them even where the
        steward set another; "none" where nothing was proposed, None where nobody recorded it.
      learned, reference: how the domain was learned, or what it can be looked up in; they count
        while the domain is what it was then.
    """

    note: Text = ""
    proposal: str | None = None
    learned: Learned | None = None
    reference: Reference | None = None

    @property
    def declared(self) -> bool:
        """See `DomainColumn.declared`."""
        return super().declared and not is_open(self)

    @property
    def provenance(self) -> Provenance:
        """Found by comparing the domain with its proposal, so that no way of editing forgets it."""
        if self.kind.surrogate:  # made-up values have no domain
            return Provenance.UNSTATED
        learned = self.learned if self.source is DomainSource.LEARNED else None
        if learned is not None and learned.domain == self.domain_digest:
            return Provenance.LEARNED
        public = self.reference if self.source is DomainSource.DECLARED else None
        if public is not None and public.domain == self.domain_digest:
            return Provenance.REFERENCE
        if self.proposal is None:
            return Provenance.UNSTATED
        unchanged = self.proposal == self.domain_digest
        return Provenance.PROPOSED if unchanged else Provenance.STEWARD

    def as_proposed(self) -> Self:
        """This column, with its domain recorded as a proposal from the rows."""
        return self.model_copy(update={"proposal": self.domain_digest})
