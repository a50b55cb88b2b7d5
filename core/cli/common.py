"""What several commands share: reading, refusing, printing."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from core.encoding.layout.violations import count_violations, declared_from_batches
from core.privacy.plan import Guarantee
from core.proposing.rare import danger, rare_counts
from core.reading.tally import Tally
from core.schema.person import MOST_ROWS, Person
from core.schema.rounding_up import round_up
from core.schema.rules.rules import parse_rule
from core.schema.schema import DomainSource, Kind, Schema, SchemaError
from core.services.limits import HIDDEN

ALL = "all"  # columns, for --buy

__all__ = [
    "ALL",
    "CommandError",
    "claim_of",
    "claim_words",
    "domain_words",
    "keep_out",
    "lmdp_words",
    "out_path",
    "print_json",
    "read_schema",
    "require_declaration",
    "say_dangers",
    "say_violations",
    "with_person",
    "with_rules",
    "with_tags",
    "with_target",
]


DEFAULT_ROWS = 10  # of one person, where columns say who and nobody says how many


class CommandError(ValueError):
    """The command cannot be done; one plain line that quotes no private value."""


def require_declaration(options: argparse.Namespace) -> None:
    """Refuse to use a domain that nobody declared public, before anything is read.

    Raises:
      CommandError: neither `--schema` nor `--declare-public` was given.
    """
    if options.schema is None and not options.declare_public:
        raise CommandError(
            "nobody has declared this table's bounds and categories public, so nothing was read or "
            "spent. Either write them with `python -m core.cli schema TABLE --out FILE.json`, "
            "check them and pass --schema FILE.json, or take them unseen with --declare-public, or "
            "let synth buy them with --buy all"
        )


def say_dangers(frame: pd.DataFrame, schema: Schema) -> None:
    """Name on stderr the lists whose declaration would publish values of few rows."""
    for column in schema.columns:
        declared = column.source is DomainSource.DECLARED and column.modelled
        if declared and column.name in frame.columns:
            counts = rare_counts(Tally.of(frame[column.name]).labels(), column)
            if words := danger(column.name, counts):
                print(f"danger: {words}", file=sys.stderr)


def with_rules(options: argparse.Namespace, schema: Schema, frame: pd.DataFrame | None) -> Schema:
    """The schema with the rules that `--rule` adds.

    Args:
      frame: rows that may say which label each code has and which combinations there are, since
        that is declared public; None where it has to be declared in the schema.

    Raises:
      CommandError: a rule has none of the known forms, or names no column.
    """
    try:
        rules = tuple(parse_rule(text) for text in options.rule or ())
        schema = Schema.model_validate(
            schema.model_dump() | {"rules": [rule.model_dump() for rule in (*schema.rules, *rules)]}
        )
    except ValidationError as error:
        raise CommandError(_first(error)["msg"].removeprefix("Value error, ")) from None
    except ValueError as error:
        raise CommandError(str(error)) from None
    if frame is None:
        return schema
    declared = tuple(declared_from_batches(rule, [frame]) for rule in schema.rules)
    for rule, before in zip(declared, schema.rules, strict=True):
        if rule != before:
            print(f"note: rule '{rule.text}': read from the rows and declared", file=sys.stderr)
    return schema.model_copy(update={"rules": declared})


def say_violations(frame: pd.DataFrame, schema: Schema) -> None:
    """Count on stderr the rows that break a rule; nothing where the schema cannot be used yet."""
    if not schema.rules:
        return
    try:
        counts = count_violations(frame, schema.domain())
    except SchemaError:
        return  # the plan says what is wrong
    for text, rows in counts.items():
        if rows:
            moved = "is moved inside" if rows == 1 else "are moved inside"
            print(f"note: rule '{text}': {rows:,} of {len(frame):,} {moved}", file=sys.stderr)


def with_target(options: argparse.Namespace, schema: Schema) -> Schema:
    """The schema with the target that `--target` names."""
    if options.target is None:
        return schema
    if options.target not in schema.names:
        raise CommandError(f"no column is called '{options.target}'")
    return schema.model_copy(update={"target": options.target})


def with_person(options: argparse.Namespace, schema: Schema) -> Schema:
    """The schema with the person that `--person` and `--rows-per-person` name.

    A single column that says who is an identifier unless a schema was given that says otherwise.
    """
    most, told = options.rows_per_person, schema.person
    if options.person is None and most is None:
        return schema
    who = () if told is None else told.columns
    if options.person is not None:
        who = tuple(name.strip() for name in options.person.split(",") if name.strip())
        if not who:
            raise CommandError("--person needs the name of a column")
    unknown = [name for name in who if name not in schema.names]
    if unknown:
        raise CommandError(f"no column is called '{unknown[0]}' (--person)")
    if most is None:
        most = DEFAULT_ROWS if told is None else told.rows
    if not 1 <= most <= MOST_ROWS:
        raise CommandError(f"--rows-per-person must lie in 1 to {MOST_ROWS}, not {most}")
    kept = told.model_dump() if told is not None and told.columns == who else {}
    try:
        person = Person.model_validate({**kept, "columns": who, "rows": most})
    except ValidationError as error:
        raise CommandError(_first(error)["msg"].removeprefix("Value error, ")) from None
    schema = schema.model_copy(update={"person": person})
    if options.schema is None and len(who) == 1:
        schema = schema.replace(schema[who[0]].model_copy(update={"kind": Kind.IDENTIFIER}))
    return schema


def keep_out(options: argparse.Namespace, schema: Schema) -> Schema:
    """The schema with the share of records that `--keep-out` keeps out of training."""
    share = options.keep_out
    if share is None:
        return schema
    if not 0.0 <= share <= 0.5:
        raise CommandError(f"--keep-out must lie in 0 to 0.5, not {share:g}")
    return schema.model_copy(update={"holdout": share})


def with_tags(schema: Schema, groups: Sequence[str]) -> Schema:
    """The schema with one sensitive group an option, columns separated by commas."""
    columns = [tuple(name.strip() for name in group.split(",") if name.strip()) for group in groups]
    for name in chain.from_iterable(columns):
        if name not in schema.names:
            raise CommandError(f"no column is called '{name}' (--sensitive)")
    sensitive = {f"group {i}": group for i, group in enumerate(columns, start=1)}
    try:
        return Schema.model_validate(schema.model_dump() | {"sensitive": sensitive})
    except ValidationError as error:
        raise CommandError(_first(error)["msg"].removeprefix("Value error, ")) from None


def lmdp_words(lmdp: dict[str, Any] | None) -> list[str]:
    """What is said of tagged columns, one line a group; nothing without tags."""
    if lmdp is None:
        return []
    lines = [f"α-LMDP: {sentence}" for sentence in lmdp["attack"]]
    if not lmdp["verdicts"]:
        how = HIDDEN[lmdp["hiding"]][0]
        return [f"α-LMDP: {how}, not tested (no certificate was paid for)", *lines]
    for result in lmdp["verdicts"]:
        if "count" in result:
            evidence = (
                f"noisy count {result['count']:.0f} of {result['groups']} groups, more than "
                f"{result['threshold']:.1f} needed"
            )
        elif "p_two_sample" in result:
            evidence = f"p {result['p_two_sample']:.3f} two-sample, {result['p_stein']:.3f} Stein"
        else:
            evidence = result["test"]
        granted = "granted" if result["granted"] else "REFUSED"
        columns = ", ".join(result["columns"])
        lines.append(f"α-LMDP {granted} for {columns} ({result['kind']}: {evidence})")
    return lines


def read_schema(path: Path) -> Schema:
    """A schema from JSON; CommandError says what is wrong with it."""
    try:
        return Schema.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = _first(error)
        where = ".".join(str(part) for part in first["loc"])
        raise CommandError(f"the schema {path} is not valid: {where} {first['msg']}") from None


def _first(error: ValidationError) -> ErrorDetails:
    """The first problem, without the value that has it."""
    return error.errors(include_url=False, include_input=False)[0]


def out_path(path: Path, *, endings: Sequence[str], inputs: Sequence[Path]) -> Path:
    """The path of a file to be written, refused before anything is read or spent."""
    if path.suffix.lower() not in endings:
        raise CommandError(f"--out must end in {' or '.join(endings)}, not '{path.name}'")
    if not path.parent.is_dir():
        raise CommandError(f"there is no folder {path.parent}")
    if path.is_dir():
        raise CommandError(f"{path} is a folder")
    if path.exists() and any(other.exists() and path.samefile(other) for other in inputs):
        raise CommandError("--out would replace a table that is read")
    return path


def claim_of(guarantee: Guarantee) -> dict[str, Any]:
    """The claim for the JSON line; an infinite ε is the text "Infinity"."""
    numbers = {"epsilon", "epsilon_replace", "delta", "method"}
    return guarantee.model_dump(mode="json", include=numbers) | {"private": guarantee.private}


def claim_words(claim: dict[str, Any]) -> str:
    """The claim in one line."""
    if not claim["private"]:
        return "no differential privacy"
    return (
        f"ε {round_up(claim['epsilon'], '.4g'):.4g} (zero-out), "
        f"{round_up(claim['epsilon_replace'], '.4g'):.4g} (replace-one) "
        f"at δ {round_up(claim['delta'], '.3g'):.3g}, {claim['method']}"
    )


def domain_words(options: argparse.Namespace) -> str:
    """How the domain became known, and that the claim hangs on it."""
    if options.schema is not None:
        return f"declared public (schema {options.schema.name}); ε is conditional on it"
    if options.buy:
        rest = "" if options.buy == ALL else "; the others are declared public"
        return f"bounds and lists bought; kinds, formats and steps declared public{rest}"
    if options.declare_public:
        return "declared public (inferred, --declare-public); ε is conditional on it"
    if not math.isfinite(options.epsilon):
        return "inferred; no ε is conditional on it"
    return "inferred and not declared; synth needs --schema or --declare-public"


def print_json(value: dict[str, Any]) -> None:
    """One object on one line, for programs."""
    print(json.dumps(value, ensure_ascii=False), flush=True)
