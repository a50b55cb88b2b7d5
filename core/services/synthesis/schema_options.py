"""Options that change a schema: target, rules, persons, what is kept out and tagged columns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import chain

import pandas as pd
import pyarrow as pa
from pydantic import ValidationError

from core.encoding.layout.violations import count_violations, declared_from_batches
from core.models.registry import cards, synthesizer
from core.privacy.discovery.open_domain import as_learned, reopened
from core.proposing.rare import danger, rare_counts
from core.reading.tally import Tally
from core.schema.column import DomainSource, Kind, SchemaError
from core.schema.person import DEFAULT_ROWS, MOST_ROWS, History, Person
from core.schema.rules.rules import parse_rule
from core.schema.schema import Schema
from core.services.planning import as_learnable
from core.services.synthesis.options import RefusedError, SynthesisOptions
from core.services.synthesis.table_files import first_problem, say_misfits, typed_frame


def with_schema(
    options: SynthesisOptions, rows: pa.Table | pd.DataFrame, schema: Schema
) -> tuple[pd.DataFrame, Schema]:
    """Typed rows and their schema, with the target, the rules and the person that were asked for.

    Args:
      rows: all rows, raw, or typed by the schema.
      schema: declared where the options say so, else proposed from the rows.

    Raises:
      RefusedError: the schema or an option does not fit the rows.
    """
    there = rows.columns if isinstance(rows, pd.DataFrame) else rows.column_names
    missing = sorted(set(schema.names).difference(there))
    if missing:
        raise RefusedError(f"the schema names columns the table lacks: {', '.join(missing)}")
    schema = with_person(with_target(reopened(schema), options.target), options)
    schema = with_counter(schema, options.counter)
    schema = with_history(schema, options.request.model)
    schema = keep_out(schema, options.keep_out)
    frame = rows if isinstance(rows, pd.DataFrame) else typed_frame(rows, schema)
    schema = with_rules(schema, options.rule, frame if options.declare_public else None)
    if options.sensitive:
        schema = with_tags(schema, options.sensitive)
    of_tags = {"alpha", "shift", "certificate"} & options.request.model_fields_set
    if of_tags and not schema.sensitive:
        raise RefusedError("--alpha, --shift and --certificate need tagged columns: --sensitive")
    declared = schema if options.declares_domains else as_learned(schema)
    say_misfits(rows, [column for column in declared.columns if column.name not in options.learn])
    say_violations(frame, schema)
    return frame, schema


def with_target(schema: Schema, target: str | None) -> Schema:
    """The schema with another target, where one is named."""
    if target is None:
        return schema
    if target not in schema.names:
        raise RefusedError(f"no column is called '{target}'")
    return schema.model_copy(update={"target": target})


def with_rules(schema: Schema, texts: Sequence[str], frame: pd.DataFrame | None) -> Schema:
    """The schema with more rules.

    Args:
      frame: rows that may say which label each code has and which combinations there are, since
        that is declared public; None where it has to be declared in the schema.

    Raises:
      RefusedError: a rule has none of the known forms, or names no column.
    """
    try:
        rules = tuple(parse_rule(text) for text in texts)
        schema = Schema.model_validate(
            schema.model_dump() | {"rules": [rule.model_dump() for rule in (*schema.rules, *rules)]}
        )
    except ValidationError as error:
        raise RefusedError(first_problem(error)["msg"].removeprefix("Value error, ")) from None
    except ValueError as error:
        raise RefusedError(str(error)) from None
    if frame is None:
        return schema
    declared = tuple(declared_from_batches(rule, [frame]) for rule in schema.rules)
    for rule, before in zip(declared, schema.rules, strict=True):
        if rule != before:
            print(f"note: rule '{rule.text}': read from the rows and declared", file=sys.stderr)
    return schema.model_copy(update={"rules": declared})


def with_person(schema: Schema, options: SynthesisOptions) -> Schema:
    """The schema with the person that `--person` and `--rows-per-person` name.

    A single column that says who is an identifier unless a schema was given that says otherwise.
    """
    most, told = options.rows_per_person, schema.person
    if options.person is None and most is None:
        if options.order or options.constant:
            raise RefusedError("--order and --constant need --person, or --linked")
        return schema
    who = () if told is None else told.columns
    if options.person is not None:
        who = tuple(name.strip() for name in options.person.split(",") if name.strip())
        if not who:
            raise RefusedError("--person needs the name of a column")
    unknown = [name for name in who if name not in schema.names]
    if unknown:
        raise RefusedError(f"no column is called '{unknown[0]}' (--person)")
    if most is None:
        most = DEFAULT_ROWS if told is None else told.rows
    if not 1 <= most <= MOST_ROWS:
        raise RefusedError(f"--rows-per-person must lie in 1 to {MOST_ROWS}, not {most}")
    kept = told.model_dump() if told is not None and told.columns == who else {}
    kept |= _ordered(schema, options)
    try:
        person = Person.model_validate({**kept, "columns": who, "rows": most})
    except ValidationError as error:
        raise RefusedError(first_problem(error)["msg"].removeprefix("Value error, ")) from None
    schema = schema.model_copy(update={"person": person})
    if not options.declared and len(who) == 1:
        schema = schema.replace(schema[who[0]].model_copy(update={"kind": Kind.IDENTIFIER}))
    return schema


def with_counter(schema: Schema, name: str | None) -> Schema:
    """The schema with the column that `--counter` names made up: it counts a person's rows."""
    if name is None:
        return schema
    if name not in schema.names:
        raise RefusedError(f"no column is called '{name}' (--counter)")
    if schema.person is None or schema.person.order is None:
        raise RefusedError("--counter needs --order")
    try:
        person = Person.model_validate(schema.person.model_dump() | {"counter": name})
    except ValidationError as error:
        raise RefusedError(first_problem(error)["msg"].removeprefix("Value error, ")) from None
    return schema.made_up(name).model_copy(update={"person": person})


def _ordered(schema: Schema, options: SynthesisOptions) -> dict[str, object]:
    """What `--order` and `--constant` say of a person."""
    constant = (name.strip() for name in (options.constant or "").split(","))
    own = tuple(name for name in constant if name)
    if unknown := [n for n in (*own, options.order) if n is not None and n not in schema.names]:
        raise RefusedError(f"no column is called '{unknown[0]}' (--order or --constant)")
    said: dict[str, object] = {"constant": own} if own else {}
    return said if options.order is None else said | {"order": options.order, "history": History()}


def with_history(schema: Schema, model: str) -> Schema:
    """The schema as a model learns it; where that is without histories, stderr hears of it."""
    learned = as_learnable(schema, model)
    if learned != schema:
        able = " or ".join(c.id for c in cards() if synthesizer(c.id).histories)
        words = f"learns each person's rows without their order; {able} learns how they follow"
        print(f"note: {model} {words} on one another", file=sys.stderr)
    return learned


def keep_out(schema: Schema, share: float | None) -> Schema:
    """The schema with the share of records that is kept out of training, in [0, ½]."""
    if share is None:
        return schema
    if not 0.0 <= share <= 0.5:
        raise RefusedError(f"--keep-out must lie in 0 to 0.5, not {share:g}")
    return schema.model_copy(update={"holdout": share})


def with_tags(schema: Schema, groups: Sequence[str]) -> Schema:
    """The schema with one sensitive group an option, columns separated by commas."""
    columns = [tuple(name.strip() for name in group.split(",") if name.strip()) for group in groups]
    for name in chain.from_iterable(columns):
        if name not in schema.names:
            raise RefusedError(f"no column is called '{name}' (--sensitive)")
    sensitive = {f"group {i}": group for i, group in enumerate(columns, start=1)}
    try:
        return Schema.model_validate(schema.model_dump() | {"sensitive": sensitive})
    except ValidationError as error:
        raise RefusedError(first_problem(error)["msg"].removeprefix("Value error, ")) from None


def say_dangers(frame: pd.DataFrame, schema: Schema) -> None:
    """Name on stderr the lists whose declaration would publish values of few rows."""
    for column in schema.columns:
        declared = column.source is DomainSource.DECLARED and column.modelled
        if declared and column.name in frame.columns:
            counts = rare_counts(Tally.of(frame[column.name]).labels(), column)
            if words := danger(counts):
                print(f"danger: `{column.name}`: {words}", file=sys.stderr)


def say_violations(frame: pd.DataFrame, schema: Schema) -> None:
    """Count on stderr the rows that break a rule; nothing where the schema cannot be used yet."""
    if not schema.rules:
        return
    try:
        counts = count_violations(frame, schema.as_proposed().domain())
    except SchemaError:
        return  # the plan says what is wrong
    for text, rows in counts.items():
        if rows:
            moved = "is moved inside" if rows == 1 else "are moved inside"
            print(f"note: rule '{text}': {rows:,} of {len(frame):,} {moved}", file=sys.stderr)
