"""What of a schema a run has to learn, and what is public of a column before it does.

A steward confirms what a column *is*: its kind, how it is written and its step. What values it
takes was read from the rows, so it is forgotten here and released with noise.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from core.schema.calendar import DAY
from core.schema.column import (
    BOOLEAN_PAIRS,
    DomainSource,
    Kind,
    Learned,
    Provenance,
    SchemaColumn,
    SchemaError,
    is_open,
    is_whole,
)
from core.schema.date_text import CLOCK_DAY, is_clock
from core.schema.labels import code_levels
from core.schema.rules.rules import (
    AnyRule,
    AtMost,
    Combinations,
    Determines,
    Follows,
    IfThen,
)
from core.schema.schema import Schema

MOST_DATES = 4  # of which each is compared with each
MOST_SINGLE = 50  # columns of numbers, or of dates, of which common values are looked for
SMALL_NUMBERS = tuple(map(str, range(100)))  # which a list of whole numbers may hold
STAND_IN_VALUES = 1000.0  # of a range that is made up to plan with
_VALUES = {Determines: "mapping", Combinations: "allowed"}  # what rules say of labels
_FROM_ROWS = (Provenance.PROPOSED, Provenance.UNSTATED)


@dataclass(frozen=True)
class OpenDomain:
    """What of a schema nobody has declared, so that a run learns it.

    Attributes:
      numeric, listed: columns whose domain is open, in file order.
      made_up: identifiers and text, of which only the share of missing cells is learned.
      rules: those whose mapping or combinations are open.
      waits: two of the dates each, by name, of which the second may follow soon after the first.
    """

    numeric: tuple[SchemaColumn, ...] = ()
    listed: tuple[SchemaColumn, ...] = ()
    made_up: tuple[SchemaColumn, ...] = ()
    rules: tuple[Determines | Combinations, ...] = ()
    waits: tuple[tuple[str, str], ...] = ()

    @property
    def dated(self) -> tuple[SchemaColumn, ...]:
        """The dates among the numeric columns, which are counted by year, too."""
        return tuple(column for column in self.numeric if column.kind is Kind.DATETIME)

    @property
    def calendars(self) -> tuple[tuple[SchemaColumn, str], ...]:
        """The dates, once with each field of the calendar that they are counted by."""
        days, hours = ("month", "day", "weekday"), ("hour",)
        return tuple(
            (column, field)
            for column in self.dated
            for field in (
                *(() if is_clock(column.date_format) else days),
                *(hours if column.step < DAY else ()),
            )
        )

    @property
    def clocks(self) -> tuple[tuple[SchemaColumn, str], ...]:
        """The dates that are written with a time, which is counted by how round it is."""
        return tuple((column, "clock") for column in self.dated if column.step < DAY)

    @property
    def stepped(self) -> tuple[SchemaColumn, ...]:
        """The numbers among the numeric columns, of which steps are counted, too."""
        return tuple(column for column in self.numeric if column.kind is not Kind.DATETIME)

    @property
    def single(self) -> tuple[SchemaColumn, ...]:
        """Those of which single values are counted, too: all where noise may show any."""
        return self.stepped if len(self.stepped) <= MOST_SINGLE else ()

    @property
    def days(self) -> tuple[SchemaColumn, ...]:
        """Dates without a time, of which single days are counted, too."""
        dates = tuple(column for column in self.dated if column.step >= DAY)
        return dates if len(dates) <= MOST_SINGLE else ()

    @property
    def beginnings(self) -> tuple[tuple[SchemaColumn, int], ...]:
        """Listed columns of codes, once with each length of a beginning that is counted too."""
        return tuple((column, length) for column in self.listed for length in code_levels(column))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that something would be released of, each once."""
        ruled = (name for rule in self.rules for name in rule.columns)
        columns = (one.name for one in (*self.numeric, *self.listed, *self.made_up))
        return tuple(dict.fromkeys((*columns, *ruled)))


def as_learned(schema: Schema, names: Collection[str] | None = None) -> Schema:
    """The schema with domains to be learned where they were read from the rows.

    Columns that say whose a row is are made up anew, so nothing of them is learned, and nothing of
    tagged columns, which a histogram would show. The proposals stay for eyes inside; where a
    run learns, `open_domain` forgets them, and until it has learned a coarser step, that is the
    kind's public one (1 for integers, a day or a second for dates, none for numbers).

    Args:
      names: of the columns to learn, whoever set their domains; None for all whose domain was
        proposed from the rows or is of unknown origin.

    Raises:
      SchemaError: a name that nothing can be learned of, or a tagged column.
    """
    tagged = {name for columns in schema.sensitive.values() for name in columns}
    chosen, keys = set(names or ()), schema.key_columns
    if wrong := [n for n in chosen if n not in schema.names or not schema[n].modelled or n in keys]:
        raise SchemaError(
            "Nothing can be learned for {columns}. Identifiers, text, columns that say whose a "
            "row is and columns that are left out need no bounds or lists.",
            columns=", ".join(sorted(wrong)),
        )
    refuse_tagged(schema, chosen)
    for column in schema.columns:
        read = column.source is not DomainSource.DROP and column.provenance in _FROM_ROWS
        read = read and column.name not in tagged and column.name not in keys
        if column.name in chosen:
            schema = schema.replace(bare(column))
        elif names is None and read:
            learned = {"source": DomainSource.LEARNED}
            schema = schema.replace(column.model_copy(update=learned))
    return schema


def refuse_tagged(schema: Schema, names: Collection[str]) -> None:
    """Refuse to learn the domain of a tagged column, which would show its distribution."""
    if hidden := [n for tagged in schema.sensitive.values() for n in tagged if n in names]:
        raise SchemaError(
            "Learning a domain shows something about a column's distribution, and {columns} is "
            "tagged as hidden. Declare its domain public, or remove the tag.",
            columns=", ".join(sorted(hidden)),
        )


def open_domain(schema: Schema) -> OpenDomain:
    """What of a schema the next run learns; what the rows proposed is forgotten."""
    open_columns = [
        bare(column) if column.provenance in _FROM_ROWS else column
        for column in schema.columns
        if is_open(column) and column.name not in schema.key_columns
    ]
    whole = needed_as_they_are(schema)
    person = schema.person  # whether somebody has an event is learned with the number of events
    counted = (
        {person.counter, *(n for f in person.files if person.walked for n in (f.event, f.owner))}
        if person
        else set()
    )
    return OpenDomain(
        numeric=tuple(column for column in open_columns if column.kind.numeric),
        listed=tuple(
            column.model_copy(update={"pattern": None}) if column.name in whole else column
            for column in open_columns
            if column.kind.listed
        ),
        made_up=tuple(
            column.model_copy(update={"absent": 0.0})
            for column in schema.columns
            if column.kind.surrogate
            and column.source is DomainSource.LEARNED
            and column.learned is None
            and column.name not in {*schema.key_columns, *counted}
        ),
        rules=tuple(
            rule
            for rule in schema.rules
            if isinstance(rule, Determines | Combinations) and _open_rule(rule, schema)
        ),
        waits=_waits([c.name for c in open_columns if c.kind is Kind.DATETIME], schema),
    )


def _waits(dates: Sequence[str], schema: Schema) -> tuple[tuple[str, str], ...]:
    """Dates that may follow on one another, either way, where no rule names them.

    Both belong to a row, or both to its person; what sorts a person's rows follows on nothing. Of
    many dates, each may follow on the one before alone.
    """
    ruled = {
        name for rule in schema.rules if not isinstance(rule, Follows) for name in rule.columns
    }
    person = schema.person
    files = () if person is None else person.files
    fixed = {schema.target, *(file.order for file in files)}

    def side(name: str) -> object:
        if person is not None and name in person.constant:
            return "person"
        return next((i for i, file in enumerate(files) if name in file.own_names), None)

    free = [name for name in dates if name not in ruled]
    near = 1 if len(free) > MOST_DATES else len(free)
    pairs = ((low, high) for i, low in enumerate(free) for high in free[i + 1 : i + 1 + near])
    return tuple(
        (low, high)
        for pair in pairs
        for low, high in (pair, pair[::-1])
        if side(low) == side(high) and high not in fixed
    )


def needed_as_they_are(schema: Schema) -> frozenset[str | None]:
    """Columns whose labels must not be made up: the target, those of rules, and what says who.

    Conditions name their labels, and codes that are not listed get their results from the model.
    """
    ruled = {
        name
        for rule in schema.rules
        if not isinstance(rule, IfThen)
        for name in rule.columns
        if not (isinstance(rule, Determines) and name == rule.source)
    }
    of_person = () if schema.person is None else schema.person.named
    return frozenset({schema.target, *ruled, *of_person})


def reopened(schema: Schema) -> Schema:
    """The schema without what a run learned that it does not name, which nothing paid for here.

    Such is the schema that a run's result carries: another run has to learn it anew.
    """
    for column in schema.columns:
        if column.learned is not None and not column.learned.entry:
            schema = schema.replace(bare(column))
    rules = tuple(
        rule.model_copy(update={_VALUES[type(rule)]: None, "learned": False})
        if isinstance(rule, Determines | Combinations) and rule.learned
        else rule
        for rule in schema.rules
        if not (isinstance(rule, AtMost) and rule.learned)
    )
    return schema.model_copy(update={"rules": rules})


def without_proposals(schema: Schema) -> Schema:
    """The schema by which rows are read to learn of them: open columns hold public facts alone."""
    wanted = open_domain(schema)
    for column in (*wanted.numeric, *wanted.listed):
        schema = schema.replace(column)
    return schema


def planned_schema(schema: Schema, *, private: bool) -> Schema:
    """The schema that a plan is made for; `private`: whether the run can learn what is open."""
    return stand_in(schema) if private else schema.as_proposed()


def stand_in(schema: Schema) -> Schema:
    """The schema with made-up domains where they are still to be learned, to plan with.

    A plan made for it fits whatever is found: lists have two labels, and ranges so many values that
    any column may add up with others.
    """
    wanted = open_domain(schema)
    for column in (*wanted.numeric, *wanted.listed):
        low = CLOCK_DAY if is_clock(column.date_format) else 0.0
        most = low + STAND_IN_VALUES * (column.step or 1.0)
        made_up: dict[str, object] = {"low": low, "high": most}
        if column.kind.listed:
            made_up = {"categories": ("a", "b")}
        column = column.model_copy(update=made_up)
        found = Learned(domain=column.domain_digest)
        schema = schema.replace(column.model_copy(update={"learned": found}))

    def first(name: str) -> str:
        return "0" if schema[name].kind.numeric else (schema[name].categories or ("",))[0]

    def tried(rule: AnyRule) -> AnyRule:
        if rule not in wanted.rules:
            return rule
        if isinstance(rule, Determines):
            return rule.model_copy(update={"mapping": {first(rule.source): first(rule.result)}})
        return rule.model_copy(update={"allowed": (tuple(map(first, rule.columns)),)})

    return schema.model_copy(update={"rules": tuple(map(tried, schema.rules))})


def known_labels(column: SchemaColumn) -> tuple[str, ...]:
    """The labels of an open column that the steward knows without the rows; often none."""
    return tuple(label for label in column.categories or () if label != column.other)


def possible_labels(column: SchemaColumn) -> tuple[str, ...]:
    """Labels that an open list of whole numbers may hold whatever the rows say; () of others."""
    if column.kind is Kind.BOOLEAN or not is_whole(column.dtype):
        return ()
    return tuple(label for label in SMALL_NUMBERS if label not in known_labels(column))


def _open_rule(rule: Determines | Combinations, schema: Schema) -> bool:
    tagged = {name for columns in schema.sensitive.values() for name in columns}
    columns = [schema[name] for name in rule.columns]
    listed = all(column.modelled and column.kind.listed for column in columns)
    if isinstance(rule, Determines) and columns[1].kind in (Kind.NUMBER, Kind.INTEGER):
        listed = columns[0].modelled and columns[0].kind.listed and columns[1].modelled
    if not listed or tagged.intersection(rule.columns):
        return False
    said = rule.mapping if isinstance(rule, Determines) else rule.allowed
    return said is None


def bare(column: SchemaColumn) -> SchemaColumn:
    """What the kind says, as its own proposal: what is set later counts as the steward's."""
    labels = column.categories or ()
    pair = column.kind is Kind.BOOLEAN and {x.lower() for x in labels} in BOOLEAN_PAIRS
    bare = column.model_copy(
        update={
            "source": DomainSource.LEARNED,
            "missing": False,
            "low": None,
            "high": None,
            "step": _public_step(column),
            "scale": "linear",
            "spikes": (),
            "categories": labels if pair else None,
            "other": None,
            "note": "",
            "learned": None,
            "reference": None,
            "form": column.form and column.form.model_copy(update={"codes": ()}),
        }
    )
    return bare.as_proposed()


def _public_step(column: SchemaColumn) -> float:
    if column.kind is Kind.INTEGER:
        return 1.0
    if column.kind is not Kind.DATETIME:
        return 0.0
    written = column.date_format or ""
    clock = any(part in written for part in ("%H", "%I", "%X", "%c", "%T"))
    if written and not clock:
        return DAY
    return 60.0 if written and "%M" in written and "%S" not in written else 1.0
